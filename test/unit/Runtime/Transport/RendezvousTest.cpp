//===- RendezvousTest.cpp - Processes that know each other ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/rendezvous/Rendezvous.h"
#include "../Harness/Processes.h"

#include "absl/strings/str_cat.h"

#include <barrier>
#include <csignal>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dovetail::runtime;
using dovetail::test::freePort;
using testing::Each;
using testing::HasSubstr;
using namespace std::chrono_literals;

namespace {

/// Runs `body(rank, rendezvous)` on a thread for each of `size` ranks.
void onRanks(int size, std::chrono::milliseconds timeout, const std::function<void(int, Rendezvous &)> &body) {
  int port = freePort();
  std::vector<std::thread> threads;
  std::barrier allHaveMet(size);
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto met = Rendezvous::connect({"test", rank, size, rank, "127.0.0.1", port}, timeout);
      allHaveMet.arrive_and_wait();
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
  EXPECT_THAT(std::string(met.status().message()), HasSubstr("ranks 1, 2 did not connect to rank 0 within 0.3 s"));
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
  EXPECT_EQ(status.message(), absl::StrCat("rank 1 of job '8.0' has connected to rank 0 of job '7.0', which uses port ",
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
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 has connected to rank 0 without the token of its run"));
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

/// The tree of `size` ranks holds together, and is flat.
void checkTree(int size, int mostDepth) {
  std::vector<int> depth(size);
  for (int rank = 0; rank < size; ++rank) {
    TreePlace place = findPlace(rank, size);
    ASSERT_EQ(place.own.rank, rank);
    ASSERT_EQ(place.parent < 0, rank == 0);
    if (rank > 0) {
      // Whoever is above knows of it, and comes before.
      ASSERT_LT(place.parent, rank);
      TreePlace above = findPlace(place.parent, size);
      ASSERT_EQ(std::count_if(above.children.begin(), above.children.end(),
                              [&](const Subtree &child) { return child.rank == rank && child.end == place.own.end; }),
                1);
      depth[rank] = depth[place.parent] + 1;
    }
    ASSERT_LE(depth[rank], mostDepth);
    ASSERT_LE(place.children.size(), 4u);
    // Those below are all between this rank and its end, each once.
    int next = rank + 1;
    for (const Subtree &child : place.children) {
      ASSERT_EQ(child.rank, next);
      ASSERT_LT(child.rank, child.end);
      next = child.end;
    }
    ASSERT_EQ(next, place.own.end);
  }
}

TEST(RendezvousTree, HasAllRanksOnce) {
  for (int size = 1; size <= 100; ++size)
    checkTree(size, size <= 1 ? 0 : size <= 5 ? 1 : size <= 21 ? 2 : size <= 85 ? 3 : 4);
  checkTree(4096, 6); // 1 + 4 + 16 + ... + 4^6 = 5461.
}

/// What `rank` gives in `round`: long and short texts, some of them like those of its neighbours.
std::string gift(int rank, int round) {
  return round == 0 ? std::string() : std::string((rank / 3 * 977) % 5000, static_cast<char>('a' + rank / 3 % 26));
}

TEST(Rendezvous, GathersAlongTheTree) {
  for (int size : {6, 9, 30})
    onRanks(size, 30s, [&](int rank, Rendezvous &rendezvous) {
      for (int round = 0; round < 3; ++round) {
        auto all = rendezvous.allGather(gift(rank, round));
        ASSERT_TRUE(all.ok()) << all.status();
        ASSERT_EQ(all->size(), static_cast<size_t>(size));
        for (int peer = 0; peer < size; ++peer)
          ASSERT_EQ((*all)[peer], gift(peer, round)) << peer;
        auto first = rendezvous.gather(gift(rank, round + 1));
        ASSERT_TRUE(first.ok()) << first.status();
        ASSERT_EQ(first->size(), rank == 0 ? static_cast<size_t>(size) : 0);
        for (size_t peer = 0; peer < first->size(); ++peer)
          ASSERT_EQ((*first)[peer], gift(static_cast<int>(peer), round + 1));
        // Ranks of five keys, and some of none.
        auto key = [](int peer) { return peer % 7 > 4 ? std::string() : absl::StrCat("key", peer % 7); };
        auto alike = rendezvous.gatherAlike(key(rank), gift(rank, round));
        ASSERT_TRUE(alike.ok()) << alike.status();
        std::map<int, std::string> expected;
        for (int peer = 0; peer < size; ++peer)
          if (!key(rank).empty() && key(peer) == key(rank))
            expected[peer] = gift(peer, round);
        ASSERT_EQ(*alike, expected);
      }
    });
}

TEST(Rendezvous, FailuresReachAllRanksOfTheTree) {
  for (int culprit : {0, 6, 29}) // The root, one with ranks below it, one without.
    onRanks(30, 30s, [&](int rank, Rendezvous &rendezvous) {
      rendezvous.watch([](const absl::Status &) {});
      if (rank == culprit)
        rendezvous.fail(absl::ResourceExhaustedError("no memory"));
      EXPECT_EQ(outcome(rendezvous).message(), "no memory") << rank;
      std::this_thread::sleep_for(300ms); // Let the others hear of it.
    });
}

/// Rank 0 hears of ranks that are far from it.
TEST(Rendezvous, RanksOfTheTreeThatMakeNoProgressAreNamed) {
  onRanks(30, 2s, [](int rank, Rendezvous &rendezvous) {
    rendezvous.watch([](const absl::Status &) {});
    rendezvous.setBusy(true);
    rendezvous.enterStep("first");
    if (rank != 28)
      rendezvous.enterStep("second");
    EXPECT_EQ(outcome(rendezvous).message(),
              absl::StrCat("rank 28 on host '", hostName(), "' has made no progress for 2 s, in step 'first'; if it ",
                           "is only slow, allow more time (--timeout)"));
    std::this_thread::sleep_for(300ms);
  });
}

TEST(Rendezvous, AbsentRanksOfTheTreeAreNamed) {
  // Ranks 1 and 2 find their places; of 4 and 6, whose way is by 3 and 5, rank 0 knows that they came.
  int port = freePort();
  std::vector<std::thread> threads;
  for (int rank : {0, 1, 2, 4, 6})
    threads.emplace_back([=] {
      auto met = Rendezvous::connect({"test", rank, 9, rank, "127.0.0.1", port}, rank == 0 ? 2000ms : 1000ms);
      if (rank == 0)
        EXPECT_EQ(met.status().message(), "ranks 3, 5, 7, 8 did not connect to rank 0 within 2 s");
      if (rank == 4)
        EXPECT_THAT(std::string(met.status().message()),
                    HasSubstr("rank 4 reached rank 0, but the ranks between them did not connect within 1 s"));
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Also not that of one which has others below it.
TEST(Rendezvous, FarewellsOfTheTreeAreNoFailures) {
  onRanks(9, 20s, [](int rank, Rendezvous &rendezvous) {
    rendezvous.watch([](const absl::Status &) {});
    if (rank != 3 && rank != 0)
      std::this_thread::sleep_for(700ms);
    EXPECT_TRUE(rendezvous.failure().ok()) << rank << ": " << rendezvous.failure();
  });
}

/// More than what is in flight at once, by way of ranks between.
TEST(Rendezvous, GathersMuch) {
  onRanks(9, 60s, [](int rank, Rendezvous &rendezvous) {
    auto all = rendezvous.gather(std::string(20 << 20, static_cast<char>('a' + rank)));
    ASSERT_TRUE(all.ok()) << all.status();
    for (size_t peer = 0; peer < all->size(); ++peer)
      EXPECT_TRUE((*all)[peer].size() == 20 << 20 && (*all)[peer].back() == static_cast<char>('a' + peer)) << peer;
  });
}

TEST(RendezvousMessages, FailuresAreErrors) {
  for (const std::string &payload : {std::string(), std::string(3, '\0'), std::string(8, '\0')})
    EXPECT_EQ(unpackFailure(payload).code(), absl::StatusCode::kUnavailable);
  absl::Status status = unpackFailure(packFailure(absl::ResourceExhaustedError("no memory")));
  EXPECT_EQ(status, absl::ResourceExhaustedError("no memory"));
}

/// Whatever a payload is, it is read or refused.
TEST(RendezvousMessages, DamagedPayloadsAreRefused) {
  const std::string hello = pack(Hello{"token", 1, 4, "host", "job", 0, {1, "10.0.0.1", 4000}});
  const std::string place = pack(Place{3, "10.0.0.1,node", 4000}),
                    progress = pack(Progress{5, true, 2, 1, 3, "host", "step"});
  EXPECT_EQ(unpackHello(hello)->place.port, 4000u);
  EXPECT_EQ(unpackPlace(place)->addresses, "10.0.0.1,node");
  EXPECT_EQ(unpackProgress(progress)->step, "step");
  for (size_t size = 0; size < hello.size(); ++size)
    EXPECT_FALSE(unpackHello(hello.substr(0, size))) << size;
  for (size_t size = 0; size < place.size(); ++size)
    EXPECT_FALSE(unpackPlace(place.substr(0, size))) << size;
  for (size_t size = 0; size < progress.size(); ++size)
    EXPECT_FALSE(unpackProgress(progress.substr(0, size))) << size;
}

/// Runs 9 ranks of a tree in processes, in which `culprit` ends by `signal` when all have met, and returns what the
/// others hear.
std::vector<std::string> hearOf(int culprit, int signal) {
  std::vector<dovetail::test::Outcome> outcomes =
      dovetail::test::inProcesses(9, [&](const LaunchEnvironment &environment) -> std::string {
        auto met = Rendezvous::connect(environment, 60s);
        if (!met.ok())
          return std::string(met.status().message());
        (*met)->watch([](const absl::Status &) {});
        if (environment.rank == culprit) {
          // Whoever reads what it writes needs its end.
          if (signal == SIGSTOP && ::fork() == 0) {
            std::this_thread::sleep_for(10s);
            ::kill(::getppid(), SIGKILL);
            ::_exit(0);
          }
          ::raise(signal);
        }
        std::string heard(outcome(**met).message());
        std::this_thread::sleep_for(300ms);
        return heard;
      });
  std::vector<std::string> heard;
  for (const dovetail::test::Outcome &outcome : outcomes)
    heard.push_back(outcome.text);
  heard.erase(heard.begin() + culprit);
  return heard;
}

TEST(Rendezvous, LostRanksOfTheTreeAreNamed) {
  for (int culprit : {0, 3, 8}) // The root, one with a rank below it, one without.
    EXPECT_THAT(hearOf(culprit, SIGKILL), Each(absl::StrCat("rank ", culprit, " on host '", hostName(),
                                                            "' is gone: its process ended or its machine is away")));
}

TEST(Rendezvous, SilentRanksOfTheTreeAreNamed) {
  EXPECT_THAT(hearOf(3, SIGSTOP),
              Each(absl::StrCat("rank 3 on host '", hostName(),
                                "' has been silent for 7 s: its process has stopped or its machine is away")));
}

} // namespace
