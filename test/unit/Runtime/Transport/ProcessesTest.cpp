//===- ProcessesTest.cpp - Ranks as processes --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Processes.h"
#include "Transport/Rendezvous.h"

#include "absl/strings/str_cat.h"

#include <csignal>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dovetail::runtime;
using dovetail::test::freePort;
using testing::AnyOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchEnvironment> read(const Variables &variables) {
  return readLaunchEnvironment([&](const char *name) -> const char * {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string problem(const Variables &variables) { return std::string(read(variables).status().message()); }

TEST(LaunchEnvironment, Torchrun) {
  auto result = read({{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "10.0.0.7"},
                      {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->launcher, "torchrun");
  EXPECT_EQ(result->rank, 3);
  EXPECT_EQ(result->size, 8);
  EXPECT_EQ(result->localRank, 1);
  EXPECT_EQ(result->localSize, 2);
  EXPECT_EQ(result->address, "10.0.0.7");
  EXPECT_EQ(result->port, 29501); // torchrun listens on its port itself.
}

TEST(LaunchEnvironment, MpirunOnOneMachine) {
  auto result = read({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rank, 1);
  EXPECT_EQ(result->localSize, 2);
  EXPECT_EQ(result->address, "127.0.0.1");
}

TEST(LaunchEnvironment, MpirunOnMoreNeedsAnAddress) {
  Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_THAT(problem(variables), HasSubstr("DOVETAIL_ADDRESS is not set, and mpirun does not say"));
  variables["DOVETAIL_ADDRESS"] = "head";
  variables["DOVETAIL_PORT"] = "4000";
  EXPECT_EQ(read(variables)->address, "head");
  EXPECT_EQ(read(variables)->port, 4000);
}

TEST(LaunchEnvironment, SrunTakesTheFirstHost) {
  for (auto [list, first] : std::map<std::string, std::string>{{"node7", "node7"},
                                                               {"node7,node9", "node7"},
                                                               {"node[07-09,12],login1", "node07"},
                                                               {"gpu-a[3,5]", "gpu-a3"},
                                                               {"r[1-2]-ib,x", "r1-ib"}})
    EXPECT_EQ(
        read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NODELIST", list}})
            ->address,
        first);
}

TEST(LaunchEnvironment, JobsAreTheLaunchers) {
  Variables slurm{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_EQ(read(slurm)->job, "4711.2");
  // Without srun, several launches of one allocation are told apart by their own launcher.
  slurm.insert({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "night"}});
  EXPECT_EQ(read(slurm)->job, "night");
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "11@1"}})->job,
            "11@1");
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}})->job, "");
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}, {"DOVETAIL_TOKEN", "abc"}})->token, "abc");
  EXPECT_THAT(
      problem({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "1"}, {"DOVETAIL_TOKEN", std::string(1025, 'a')}}),
      HasSubstr("DOVETAIL_TOKEN has more than 1024 characters"));
  // Nobody says how many processes this machine has.
  EXPECT_EQ(read({{"DOVETAIL_RANK", "0"}, {"DOVETAIL_WORLD_SIZE", "3"}, {"DOVETAIL_ADDRESS", "head"}})->localSize, 3);
}

TEST(LaunchEnvironment, WrongValuesAreNamed) {
  EXPECT_THAT(problem({}), HasSubstr("start it with torchrun, mpirun or srun"));
  EXPECT_THAT(problem({{"RANK", "1"}}), HasSubstr("the variable WORLD_SIZE is not set"));
  EXPECT_THAT(problem({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is '2', not a number from 0 to 1"));
  EXPECT_THAT(problem({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK is 'x'"));
  EXPECT_THAT(problem({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "65535"}}), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(problem({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_WORLD_SIZE", "2"}}),
              HasSubstr("LOCAL_WORLD_SIZE is '2', not a number from 1 to 1"));
}

/// Runs `body(rank, rendezvous)` on a thread for each of `size` ranks.
void onRanks(int size, std::chrono::milliseconds timeout, const std::function<void(int, Rendezvous &)> &body) {
  int port = freePort();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([=] {
      auto met = Rendezvous::connect({"test", rank, size, rank, "127.0.0.1", port}, timeout);
      ASSERT_TRUE(met.ok()) << met.status();
      body(rank, **met);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Waits until the run has ended with an error, and returns that.
absl::Status outcome(const Rendezvous &rendezvous) {
  for (int i = 0; i < 1000 && rendezvous.failure().ok(); ++i)
    std::this_thread::sleep_for(10ms);
  return rendezvous.failure();
}

TEST(Rendezvous, GathersFromAll) {
  onRanks(4, 20s, [](int rank, Rendezvous &rendezvous) {
    for (int round = 0; round < 3; ++round) {
      auto all = rendezvous.allGather(std::string(1000 * rank * round, static_cast<char>('a' + rank)));
      ASSERT_TRUE(all.ok()) << all.status();
      for (int peer = 0; peer < 4; ++peer)
        EXPECT_EQ((*all)[peer], std::string(1000 * peer * round, static_cast<char>('a' + peer)));
    }
  });
}

TEST(Rendezvous, AbsentRanksAreNamed) {
  auto met = Rendezvous::connect({"test", 0, 3, 0, "127.0.0.1", freePort()}, 300ms);
  EXPECT_EQ(met.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(met.status().message()), HasSubstr("ranks 1, 2 did not come to rank 0 within 0.3 s"));
  auto alone = Rendezvous::connect({"test", 1, 3, 0, "127.0.0.1", freePort()}, 300ms);
  EXPECT_THAT(std::string(alone.status().message()), HasSubstr("rank 1 did not reach rank 0 at 127.0.0.1"));
}

TEST(Rendezvous, RanksOfOtherJobsAreRefused) {
  int port = freePort();
  std::thread first([&] {
    auto met = Rendezvous::connect({"test", 0, 2, 0, "127.0.0.1", port, "7.0"}, 20s);
    ASSERT_TRUE(met.ok()) << met.status();
    EXPECT_EQ((*met)->gather("zero")->back(), "one");
  });
  // Takes nobody's place.
  absl::Status status = Rendezvous::connect({"test", 1, 2, 0, "127.0.0.1", port, "8.0"}, 20s).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), absl::StrCat("rank 1 of job '8.0' has come to rank 0 of job '7.0', which uses port ",
                                           port, "; give each job a port of its own with DOVETAIL_PORT or --address"));
  auto second = Rendezvous::connect({"test", 1, 2, 0, "127.0.0.1", port, "7.0"}, 20s);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->gather("one").ok());
  first.join();
}

TEST(Rendezvous, TokensAreCompared) {
  int port = freePort();
  std::thread first([&] {
    auto met = Rendezvous::connect({"test", 0, 2, 0, "127.0.0.1", port, "", 1, "secret"}, 20s);
    ASSERT_TRUE(met.ok()) << met.status();
    EXPECT_EQ((*met)->gather("zero")->back(), "one");
  });
  for (const char *token : {"", "secre", "secret ", "Secret"}) {
    absl::Status status = Rendezvous::connect({"test", 1, 2, 0, "127.0.0.1", port, "", 1, token}, 20s).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has come to rank 0 without the token of its run"));
  }
  // Of several addresses that which answers is taken.
  auto second =
      Rendezvous::connect({"test", 1, 2, 0, "127.0.0.9,nowhere.invalid,127.0.0.1", port, "", 1, "secret"}, 20s);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->gather("one").ok());
  first.join();
}

/// A connection with rank 0, once that listens.
int visit(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  for (int i = 0; i < 1000; ++i) {
    int visitor = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(visitor, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0)
      return visitor;
    ::close(visitor);
    std::this_thread::sleep_for(10ms);
  }
  return -1;
}

/// Neither those who say nothing, nor those who say too much, keep rank 0 from its ranks.
TEST(Rendezvous, StrangersHoldNobodyUp) {
  int port = freePort();
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::thread first([&] {
    auto met = Rendezvous::connect({"test", 0, 2, 0, "127.0.0.1", port}, 20s);
    ASSERT_TRUE(met.ok()) << met.status();
    EXPECT_EQ((*met)->gather("zero")->back(), "one");
  });
  std::vector<int> visitors;
  for (int i = 0; i < 300; ++i)
    visitors.push_back(visit(port));
  // A greeting of 1 GiB, one cut short, something else of a known length, and another language.
  const uint32_t huge[] = {0, 1u << 30}, cut[] = {0, 64}, other[] = {2, 8, 0, 0}, garbage[] = {0, 16, 1, 2, 3, 4};
  const char *http = "GET / HTTP/1.1\r\n\r\n";
  std::vector<std::pair<const void *, size_t>> texts = {{huge, sizeof(huge)},
                                                        {cut, sizeof(cut)},
                                                        {other, sizeof(other)},
                                                        {garbage, sizeof(garbage)},
                                                        {http, strlen(http)}};
  std::vector<int> talkers;
  for (const auto &[data, size] : texts) {
    talkers.push_back(visit(port));
    ASSERT_EQ(::send(talkers.back(), data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  // All but the one that may go on are shown the door at once.
  for (size_t i = 0; i < talkers.size(); ++i) {
    timeval limit{i == 1 ? 0 : 10, 100'000};
    char byte;
    ::setsockopt(talkers[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t count = ::recv(talkers[i], &byte, 1, 0);
    EXPECT_EQ(count < 0 && errno == EAGAIN, i == 1) << i;
  }
  auto second = Rendezvous::connect({"test", 1, 2, 0, "127.0.0.1", port}, 20s);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->gather("one").ok());
  first.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  for (std::vector<int> *sockets : {&visitors, &talkers})
    for (int socket : *sockets)
      ::close(socket);
}

TEST(Rendezvous, FailuresReachAllRanks) {
  for (int culprit : {0, 2})
    onRanks(3, 20s, [&](int rank, Rendezvous &rendezvous) {
      std::atomic<int> calls = 0;
      rendezvous.watch([&](const absl::Status &) { ++calls; });
      if (rank == culprit)
        rendezvous.fail(absl::ResourceExhaustedError("no memory"));
      absl::Status status = outcome(rendezvous);
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(status.message(), "no memory");
      for (int i = 0; i < 500 && calls == 0; ++i)
        std::this_thread::sleep_for(10ms);
      EXPECT_EQ(calls, 1);
      std::this_thread::sleep_for(100ms); // Let the others hear of it.
    });
}

TEST(Rendezvous, RanksThatMakeNoProgressAreNamed) {
  onRanks(3, 700ms, [](int rank, Rendezvous &rendezvous) {
    rendezvous.watch([](const absl::Status &) {});
    rendezvous.setBusy(true);
    // Rank 1 is behind; the others wait for it.
    rendezvous.enterStep("first");
    if (rank != 1)
      rendezvous.enterStep("second");
    absl::Status status = outcome(rendezvous);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(status.message(),
              absl::StrCat("rank 1 on host '", hostName(), "' has made no progress for 0.7 s, in step 'first'; if it ",
                           "is only slow, allow more time (--timeout)"));
    std::this_thread::sleep_for(100ms);
  });
}

TEST(Rendezvous, IdleRanksMayTakeTheirTime) {
  onRanks(2, 300ms, [](int, Rendezvous &rendezvous) {
    rendezvous.watch([](const absl::Status &) {});
    rendezvous.setBusy(true);
    rendezvous.setBusy(false);
    std::this_thread::sleep_for(1s);
    EXPECT_TRUE(rendezvous.failure().ok()) << rendezvous.failure();
  });
}

/// A process that ends without a word.
TEST(Rendezvous, LostRanksAreNamed) {
  int port = freePort();
  pid_t child = ::fork();
  if (child == 0) {
    auto met = Rendezvous::connect({"test", 1, 2, 0, "127.0.0.1", port}, 20s);
    ::_exit(met.ok() && (*met)->allGather("").ok() ? 0 : 1);
  }
  auto met = Rendezvous::connect({"test", 0, 2, 0, "127.0.0.1", port}, 20s);
  ASSERT_TRUE(met.ok()) << met.status();
  ASSERT_TRUE((*met)->allGather("").ok());
  (*met)->watch([](const absl::Status &) {});
  EXPECT_EQ(outcome(**met).message(),
            absl::StrCat("rank 1 on host '", hostName(), "' is gone: its process ended or ", "its machine is away"));
}

/// A process that is stopped is not waited for until the timeout.
TEST(Rendezvous, SilentRanksAreNamed) {
  for (int silent : {0, 1}) {
    int port = freePort();
    pid_t child = ::fork();
    if (child == 0) {
      auto met = Rendezvous::connect({"test", silent, 2, 0, "127.0.0.1", port}, 60s);
      bool ok = met.ok() && (*met)->allGather("").ok();
      ::raise(SIGSTOP);
      ::_exit(ok ? 0 : 1);
    }
    auto met = Rendezvous::connect({"test", 1 - silent, 2, 0, "127.0.0.1", port}, 60s);
    ASSERT_TRUE(met.ok()) << met.status();
    ASSERT_TRUE((*met)->allGather("").ok());
    (*met)->watch([](const absl::Status &) {});
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    EXPECT_EQ(outcome(**met).message(),
              absl::StrCat("rank ", silent, " on host '", hostName(), "' has been silent for 7 s: its process has ",
                           "stopped or its machine is away"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

/// The end of a rank that has done its work is no failure.
TEST(Rendezvous, FarewellsAreNoFailures) {
  onRanks(3, 20s, [](int rank, Rendezvous &rendezvous) {
    rendezvous.watch([](const absl::Status &) {});
    if (rank == 0)
      std::this_thread::sleep_for(500ms);
    EXPECT_TRUE(rendezvous.failure().ok()) << rendezvous.failure();
  });
}

} // namespace
