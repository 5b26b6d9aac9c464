//===- RegistryTest.cpp - Transports by name ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/RankGroup.h"

#include <algorithm>
#include <cstdlib>

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

/// With the stubs among the plug-ins: `stub` moves memory of the host, `abacus` another kind, `old` is of another
/// version, `stale` of another build.
class Registry : public testing::Test {
protected:
  void SetUp() override { ::setenv("DOVETAIL_PLUGINS", DOVETAIL_TEST_TRANSPORTS, 1); }
  void TearDown() override { ::unsetenv("DOVETAIL_PLUGINS"); }

  /// How running a program of one rank with a transport fails.
  static absl::Status problem(const std::string &transport, const std::string &target = "emulated") {
    PlanBuilder builder({1});
    builder.plan.target = target;
    builder.output("out", builder.constantValue({1}, sharding(1), {1}));
    runtime::RunnerOptions options;
    options.communicator = transport;
    options.process = {"the test", 0, 1, 0, "127.0.0.1", 1};
    return runtime::ProgramRunner::create(builder.program(), options).status();
  }

  static const runtime::TransportInfo *find(const std::vector<runtime::TransportInfo> &list, const std::string &name) {
    auto it = std::find_if(list.begin(), list.end(), [&](const auto &info) { return info.name == name; });
    return it == list.end() ? nullptr : &*it;
  }
};

TEST_F(Registry, ListsItsOwnAndPlugins) {
  std::vector<runtime::TransportInfo> list = runtime::listTransports();
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.front().name, "local");
  EXPECT_FALSE(list.front().connectsProcesses);
  const runtime::TransportInfo *stub = find(list, "stub");
  ASSERT_NE(stub, nullptr);
  EXPECT_EQ(stub->description, "connects nobody");
  EXPECT_EQ(stub->memory, "host");
  EXPECT_TRUE(stub->connectsProcesses && stub->isUsable);
  EXPECT_EQ(stub->libraries, (std::vector<std::pair<std::string, std::string>>{{"libstub", "7"}}));
  // Only tests name them.
  for (const char *name : {"sockets", "mpi_parts", "mpi_late"})
    EXPECT_EQ(find(list, name), nullptr) << name;
  const runtime::TransportInfo *old = find(list, "old");
  ASSERT_NE(old, nullptr);
  EXPECT_FALSE(old->isUsable);
  EXPECT_THAT(old->description, HasSubstr("libdovetail_transport_old.so has version 0 of its interface"));
}

TEST_F(Registry, UnknownNamesAreToldWhatThereIs) {
  for (const char *name : {"pigeons", "", "../lib/libdovetail"}) {
    absl::Status status = problem(name);
    EXPECT_EQ(runtime::exitCodeOf(status), 2) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(std::string("there is no transport '") + name + "'"), HasSubstr("but local, abacus, "),
                      HasSubstr("stub"), Not(HasSubstr("sockets"))));
  }
  EXPECT_THAT(std::string(problem("pigeons").message()), HasSubstr("libdovetail_transport_pigeons.so"));
  // A near name is answered by what was meant.
  absl::Status near = problem("Local");
  EXPECT_EQ(runtime::exitCodeOf(near), 2) << near;
  EXPECT_THAT(std::string(near.message()),
              AllOf(HasSubstr("there is no transport 'Local'"), HasSubstr("did you mean 'local'?")));
}

TEST_F(Registry, OtherKindsOfMemoryAreRefused) {
  absl::Status status = problem("abacus");
  EXPECT_EQ(runtime::exitCodeOf(status), 2) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("transport 'abacus' moves memory of kind 'beads', but programs for target 'emulated' keep "
                      "theirs in memory of kind 'host'; connect the ranks with local, "),
            HasSubstr("stub"), Not(HasSubstr("sockets")), Not(HasSubstr("old"))));
}

TEST_F(Registry, OtherVersionsAreRefused) {
  absl::Status status = problem("old");
  EXPECT_EQ(runtime::exitCodeOf(status), 7) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("install the two from the same release"));
}

TEST_F(Registry, OtherBuildsAreRefused) {
  absl::Status status = problem("stale");
  EXPECT_EQ(runtime::exitCodeOf(status), 7) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("the plug-in libdovetail_transport_stale.so is of another build (0123) than this runtime ("),
            HasSubstr("; install the two from the same release, or build both again")));
}

/// All that a transport has to do to be reached is to be there.
TEST_F(Registry, StubIsJoined) {
  absl::Status status = problem("stub");
  EXPECT_EQ(runtime::exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()), HasSubstr("joins 'a group' as 0 of 1 with a device"));
}

TEST_F(Registry, LocalIsForAnyMemory) {
  for (const char *target : {"emulated", "cpu"})
    EXPECT_TRUE(problem("local", target).ok()) << problem("local", target);
  EXPECT_FALSE(*runtime::connectsProcesses("local"));
  EXPECT_TRUE(*runtime::connectsProcesses("stub"));
}

} // namespace
