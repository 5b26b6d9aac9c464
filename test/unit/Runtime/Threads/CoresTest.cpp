//===- CoresTest.cpp - Tests of counted cores -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads/Cores.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <thread>

using namespace dovetail::runtime;

namespace {

/// A folder with these files, until it is destroyed.
class Root {
public:
  explicit Root(const std::map<std::string, std::string> &files) {
    std::string name = (std::filesystem::temp_directory_path() / "dovetail-cores-XXXXXX").string();
    path = ::mkdtemp(name.data());
    for (const auto &[file, text] : files) {
      std::filesystem::create_directories((path / file).parent_path());
      std::ofstream(path / file) << text;
    }
  }
  ~Root() { std::filesystem::remove_all(path); }
  int cores() const { return countCores(path.string()); }

private:
  std::filesystem::path path;
};

constexpr const char *kSecond = "24 1 0:21 / /proc rw - proc proc rw\n"
                                "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup rw,nsdelegate\n";

/// What affinity allows is the most in any case.
int atMost(int cores) { return std::min(cores, static_cast<int>(allowedProcessors().size())); }

} // namespace

TEST(Cores, AreThoseOfTheMask) {
  EXPECT_EQ(Root({}).cores(), atMost(1 << 20));
  int got = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowedProcessors().back(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    got = countCores();
  }).join();
  EXPECT_EQ(got, 1);
}

TEST(Cores, AreLimitedByControlGroups) {
  auto cores = [](const std::string &own, const std::string &outer) {
    return Root({{"proc/self/cgroup", "0::/outer/own\n"},
                 {"proc/self/mountinfo", kSecond},
                 {"sys/fs/cgroup/outer/own/cpu.max", own},
                 {"sys/fs/cgroup/outer/cpu.max", outer}})
        .cores();
  };
  EXPECT_EQ(cores("max 100000\n", "max 100000\n"), atMost(1 << 20));
  EXPECT_EQ(cores("200000 100000\n", "max 100000\n"), atMost(2));
  EXPECT_EQ(cores("max 100000\n", "150000 50000\n"), atMost(3));
  EXPECT_EQ(cores("190000 100000\n", "400000 100000\n"), 1);
  EXPECT_EQ(cores("10000 100000\n", "max 100000\n"), 1);
  EXPECT_EQ(cores("damaged", ""), atMost(1 << 20));
  EXPECT_EQ(cores("0 0", "-5 3"), atMost(1 << 20));
}

TEST(Cores, AreLimitedInContainers) {
  // The root of the group's own name space, and a group whose name is that outside of the container.
  std::string mount = "31 23 0:28 /outer/own /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  for (const char *group : {"0::/\n", "0::/outer/own\n"})
    EXPECT_EQ(
        Root(
            {{"proc/self/cgroup", group}, {"proc/self/mountinfo", mount}, {"sys/fs/cgroup/cpu.max", "100000 100000\n"}})
            .cores(),
        1);
}

TEST(Cores, AreLimitedByTheFirstVersion) {
  std::string mounts = "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                       "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
  auto cores = [&](const std::string &quota) {
    return Root({{"proc/self/cgroup", "5:cpuset:/elsewhere\n4:cpu,cpuacct:/own\n"},
                 {"proc/self/mountinfo", mounts},
                 {"sys/fs/cgroup/cpu/own/cpu.cfs_quota_us", quota},
                 {"sys/fs/cgroup/cpu/own/cpu.cfs_period_us", "50000\n"}})
        .cores();
  };
  EXPECT_EQ(cores("-1\n"), atMost(1 << 20));
  EXPECT_EQ(cores("100000\n"), atMost(2));
}

TEST(Cores, SufficeForAnnouncedThreads) {
  Cores::count();
  int cores = Cores::available();
  EXPECT_EQ(cores, countCores());
  // Ranks that tests left behind as they hang are still announced.
  int free = cores;
  while (!Cores::suffice(free))
    --free;
  EXPECT_FALSE(Cores::suffice(free + 1));
  {
    Cores::Use use(cores);
    EXPECT_TRUE(Cores::suffice(free - cores));
    EXPECT_FALSE(Cores::suffice(free - cores + 1));
    Cores::Use another(1);
    EXPECT_FALSE(Cores::suffice(free - cores));
  }
  EXPECT_TRUE(Cores::suffice(free));
  Cores::count(2 * cores);
  EXPECT_EQ(Cores::available(), 1);
  Cores::count();
}
