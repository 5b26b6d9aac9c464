//===- LocalRecordingTest.cpp - Ranks that record together ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries the order of calls and what failures of single ranks do. That the recorded work itself is right is tried with
// whole programs: see DeviceSessionTest.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/LocalGroup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <thread>

using namespace dovetail::runtime;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// What all ranks have done, in order.
struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::string failing;                                    ///< The line at which a call fails,
  size_t spared = 0;                                      ///< but for so many times.
  std::function<void(const std::string &line)> hook = {}; ///< Called for each other line.
  bool hasFailed = false, hasEnded = false;

  absl::Status add(int rank, const std::string &what) {
    std::string line = absl::StrCat(rank, " ", what);
    {
      std::lock_guard lock(mutex);
      lines.push_back(line);
      hasEnded |= line == "0 ends";
      if (line == failing && std::count(lines.begin(), lines.end(), line) > static_cast<ptrdiff_t>(spared)) {
        hasFailed = true;
        return absl::InternalError(absl::StrCat("rank ", line, " fails"));
      }
      // What was recorded in part belongs to nothing any more.
      if (hasFailed && hasEnded && (what == "records" || what.starts_with("waits")))
        return absl::InternalError(absl::StrCat("rank ", line, " across the border of a recording"));
    }
    if (hook)
      hook(line);
    return absl::OkStatus();
  }
  size_t count(std::string_view what) {
    std::lock_guard lock(mutex);
    return std::count_if(lines.begin(), lines.end(), [&](const std::string &line) { return line == what; });
  }
};

struct LoggedEvent : DeviceEvent {
  LoggedEvent(Log &log, int rank) : log(log), rank(rank) {}
  absl::Status record(DeviceStream &) override { return log.add(rank, "records"); }
  Log &log;
  int rank;
};

struct LoggedStream : DeviceStream {
  LoggedStream(Log &log, int rank) : log(log), rank(rank) {}
  absl::Status wait(const DeviceEvent &event) override {
    return log.add(rank, absl::StrCat("waits for ", static_cast<const LoggedEvent &>(event).rank));
  }
  absl::Status synchronize() override { return absl::OkStatus(); }
  absl::Status call(HostTask &) override { return absl::UnimplementedError("nothing is called"); }
  Log &log;
  int rank;
};

/// Writes down what it is asked for.
class LoggingMover : public Mover {
public:
  LoggingMover(Log &log, int rank) : log(log), rank(rank), stream(log, rank) {}

  DeviceStream &getStream(StreamKind) override { return stream; }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() override {
    if (absl::Status status = log.add(rank, "creates an event"); !status.ok())
      return status;
    return std::make_unique<LoggedEvent>(log, rank);
  }
  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t) override {
    return absl::UnimplementedError("nothing is allocated");
  }
  absl::StatusOr<std::unique_ptr<Move>> prepare(std::vector<StridedBox>, std::vector<CombinationDescription>) override {
    return absl::UnimplementedError("nothing is moved");
  }
  bool canRecord() const override { return true; }
  absl::Status beginRecording() override { return log.add(rank, "begins"); }
  absl::StatusOr<std::unique_ptr<Move>> endRecording() override {
    if (absl::Status status = log.add(rank, "ends"); !status.ok())
      return status;
    struct Replay : Move {
      Replay(Log &log, int rank) : log(log), rank(rank) {}
      ~Replay() override { (void)log.add(rank, "destroys"); }
      absl::Status run() override { return log.add(rank, "replays"); }
      Log &log;
      int rank;
    };
    return std::make_unique<Replay>(log, rank);
  }

private:
  Log &log;
  int rank;
  LoggedStream stream;
};

/// Records so many things, replaying each twice, and then all once more, on each rank of a group, as sessions do, on
/// threads. Returns the statuses.
std::vector<absl::Status> recordOn(LocalGroup &group, int ranks, Log &log, const std::set<int> &absent = {},
                                   int recordings = 1) {
  std::vector<absl::Status> results(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank, communicator = group.communicator(rank)] {
      if (absent.count(rank))
        return;
      communicator->setBusy(true);
      LoggingMover mover(log, rank);
      auto body = [&] {
        std::vector<std::unique_ptr<Move>> recorded;
        absl::Status status;
        for (int number = 0; number < recordings && status.ok(); ++number) {
          auto recording = communicator->record(mover, [&] { return log.add(rank, "issues"); });
          if (!recording.ok())
            return recording.status();
          recorded.push_back(*std::move(recording));
          for (int i = 0; i < 2 && status.ok(); ++i)
            status = recorded.back()->run();
        }
        for (size_t number = 0; recordings > 1 && number < recorded.size() && status.ok(); ++number)
          status = recorded[number]->run();
        return status;
      };
      absl::Status status = body();
      results[rank] = status.ok() ? status : communicator->abort(status);
      communicator->setBusy(false);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

} // namespace

TEST(LocalRecording, OneRankRecordsForAll) {
  for (int ranks : {1, 2, 5}) {
    SCOPED_TRACE(ranks);
    Log log;
    LocalGroup group(ranks);
    for (const absl::Status &status : recordOn(group, ranks, log))
      EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(log.count("0 begins"), 1);
    EXPECT_EQ(log.count("0 ends"), 1);
    EXPECT_EQ(log.count("0 replays"), 2);
    EXPECT_EQ(log.count("0 destroys"), 1);
    // Between both, all ranks issue what they have, after a wait for rank 0 and before an event that it waits for.
    std::vector<std::string> recorded;
    auto begin = std::find(log.lines.begin(), log.lines.end(), "0 begins");
    auto end = std::find(log.lines.begin(), log.lines.end(), "0 ends");
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> own;
      // Events may be created while others begin.
      std::copy_if(begin, end, std::back_inserter(own), [&](const std::string &line) {
        return absl::StartsWith(line, absl::StrCat(rank, " ")) && !absl::EndsWith(line, "creates an event");
      });
      std::string prefix = absl::StrCat(rank, " ");
      if (rank > 0) {
        EXPECT_THAT(own, ElementsAre(prefix + "waits for 0", prefix + "issues", prefix + "records"));
        continue;
      }
      std::vector<std::string> expected = {"0 begins", "0 records", "0 issues"};
      for (int peer = 1; peer < ranks; ++peer)
        expected.push_back(absl::StrCat("0 waits for ", peer));
      EXPECT_EQ(own, expected);
    }
    // Each replay comes after an event of all ranks.
    size_t replays = 0;
    std::vector<size_t> records(ranks);
    for (auto line = end; line != log.lines.end(); ++line) {
      for (int rank = 1; rank < ranks; ++rank)
        records[rank] += *line == absl::StrCat(rank, " records");
      if (*line != "0 replays")
        continue;
      ++replays;
      for (int rank = 1; rank < ranks; ++rank)
        EXPECT_GE(records[rank], replays);
    }
  }
}

TEST(LocalRecording, SeveralAreReplayedInTurns) {
  for (int ranks : {1, 2, 5}) {
    SCOPED_TRACE(ranks);
    Log log;
    LocalGroup group(ranks);
    for (const absl::Status &status : recordOn(group, ranks, log, {}, /*recordings=*/3))
      EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(log.count("0 begins"), 3);
    EXPECT_EQ(log.count("0 ends"), 3);
    EXPECT_EQ(log.count("0 replays"), 9);
    EXPECT_EQ(log.count("0 destroys"), 3);
    // What is recorded and each replay come after an event of all ranks that nothing before has waited for.
    size_t events = 0;
    std::vector<size_t> records(ranks);
    for (const std::string &line : log.lines) {
      for (int rank = 1; rank < ranks; ++rank)
        records[rank] += line == absl::StrCat(rank, " records");
      if (line != "0 replays" && line != "0 ends")
        continue;
      ++events;
      for (int rank = 1; rank < ranks; ++rank)
        EXPECT_GE(records[rank], events);
    }
  }
}

TEST(LocalRecording, AFailureInTheSecondOneIsThatOfAll) {
  // Rank 0 records an event when it spreads, others when they gather: each three, or two, times for the first.
  struct Failure {
    const char *line;
    size_t spared;
  };
  for (Failure failure : {Failure{"0 begins", 1}, Failure{"0 issues", 1}, Failure{"2 issues", 1}, Failure{"0 ends", 1},
                          Failure{"2 records", 3}, Failure{"0 records", 4}, Failure{"0 waits for 2", 3},
                          Failure{"2 waits for 0", 4}, Failure{"0 replays", 2}, Failure{"0 replays", 4}}) {
    SCOPED_TRACE(failure.line);
    for (int round = 0; round < 50; ++round) {
      Log log;
      log.failing = failure.line;
      log.spared = failure.spared;
      LocalGroup group(3);
      for (const absl::Status &status : recordOn(group, 3, log, {}, /*recordings=*/2))
        EXPECT_EQ(status.message(), absl::StrCat("rank ", failure.line, " fails"));
      size_t began = log.count("0 begins") - (std::string_view(failure.line) == "0 begins");
      EXPECT_EQ(log.count("0 ends"), began);
      EXPECT_EQ(log.count("0 destroys"), began - (std::string_view(failure.line) == "0 ends"))
          << testing::PrintToString(log.lines);
    }
  }
}

TEST(LocalRecording, AFailureOfOneRankIsThatOfAll) {
  for (const char *failing : {"0 creates an event", "2 creates an event", "0 begins", "0 issues", "2 issues",
                              "0 records", "2 records", "0 ends", "2 waits for 0", "0 waits for 2", "0 replays"}) {
    SCOPED_TRACE(failing);
    // Now and then the others come to know in different places.
    for (int round = 0; round < 50; ++round) {
      Log log;
      log.failing = failing;
      LocalGroup group(3);
      for (const absl::Status &status : recordOn(group, 3, log))
        EXPECT_EQ(status.message(), absl::StrCat("rank ", failing, " fails"));
      // What has begun is ended, once, and what was recorded is destroyed.
      bool begins = log.count("0 begins") == 1 && std::string_view(failing) != "0 begins";
      EXPECT_EQ(log.count("0 ends"), begins ? 1 : 0);
      bool recorded = log.count("0 ends") == 1 && std::string_view(failing) != "0 ends";
      EXPECT_EQ(log.count("0 destroys"), recorded ? 1 : 0) << testing::PrintToString(log.lines);
      EXPECT_LE(log.count("0 replays"), 1);
    }
  }
}

TEST(LocalRecording, ARankThatDoesNotComeIsNamed) {
  for (int absent : {0, 1}) {
    Log log;
    LocalGroup group(3, std::chrono::milliseconds(200));
    std::vector<absl::Status> results = recordOn(group, 3, log, {absent});
    for (int rank = 0; rank < 3; ++rank)
      if (rank != absent)
        EXPECT_THAT(std::string(results[rank].message()),
                    StartsWith(absl::StrCat("rank ", absent, " made no progress")));
    EXPECT_EQ(log.count("0 ends"), log.count("0 begins"));
  }
}

TEST(LocalRecording, NothingIsReplayedAfterTheEndOfTheRun) {
  LocalGroup group(2);
  Log log;
  std::promise<void> ended;
  auto run = [&](int rank) {
    auto communicator = group.communicator(rank);
    LoggingMover mover(log, rank);
    auto recording = communicator->record(mover, [&] { return log.add(rank, "issues"); });
    ASSERT_TRUE(recording.ok()) << recording.status();
    if (rank == 0)
      ended.get_future().wait();
    EXPECT_EQ((*recording)->run().message(), "it is over");
  };
  std::thread first(run, 0), second(run, 1);
  // Rank 1 has given its consent to the replay, and rank 0 comes too late.
  while (log.count("1 records") < 2)
    std::this_thread::yield();
  group.abort(absl::CancelledError("it is over"));
  second.join();
  ended.set_value();
  first.join();
  EXPECT_EQ(log.count("0 replays"), 0);
}

TEST(LocalRecording, ARankThatHangsInItsTurnIsNamed) {
  for (int culprit : {0, 2}) {
    Log log;
    log.hook = [&](const std::string &line) {
      if (line == absl::StrCat(culprit, " issues"))
        std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    };
    LocalGroup group(4, std::chrono::milliseconds(200));
    for (const absl::Status &status : recordOn(group, 4, log))
      EXPECT_THAT(std::string(status.message()), StartsWith(absl::StrCat("rank ", culprit, " made no progress")));
    EXPECT_EQ(log.count("0 ends"), 1);
    EXPECT_EQ(log.count("0 replays"), 0);
  }
}

TEST(LocalRecording, WhatWasIssuedBeforeTheEndIsWaitedFor) {
  LocalGroup group(2);
  Log log;
  log.hook = [&](const std::string &line) {
    if (line != "0 replays")
      return;
    group.abort(absl::CancelledError("it is over"));
    // Rank 1 hears of it first.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  for (const absl::Status &status : recordOn(group, 2, log))
    EXPECT_EQ(status.message(), "it is over");
  EXPECT_EQ(log.count("0 replays"), 1);
  // Twice when they recorded.
  EXPECT_EQ(log.count("1 waits for 0"), 3);
}
