//===- ProcessRunsTest.cpp - Programs on ranks that are processes --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Cuda/FakeNccl.h"
#include "../Harness/DevicePlan.h"
#include "../Harness/Processes.h"

#include "dovetail/dovetail.hpp"
#include "dovetail/runtime/ExitCode.h"

#include "absl/strings/str_cat.h"

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

/// Three elements for each rank, which all ranks collect.
PlanBuilder gatherer(int64_t ranks, bool onDevice = true) {
  PlanBuilder builder = onDevice ? deviceBuilder({ranks}) : hostBuilder({ranks});
  std::vector<int64_t> cuts;
  for (int64_t i = 0; i <= ranks; ++i)
    cuts.push_back(3 * i);
  layout::DimSharding dim = split(0, cuts);
  layout::Sharding cut = sharding(1, {{0, dim}});
  uint32_t in = builder.value({3 * ranks}, cut);
  uint32_t all = builder.value({3 * ranks}, sharding(1));
  builder.input("in", in);
  builder.exchange(in, all);
  builder.output("out", all);
  return builder;
}

runtime::RunnerOptions optionsOf(const runtime::LaunchEnvironment &environment, double seconds) {
  runtime::RunnerOptions options;
  options.communicator = hasKernels() ? "sockets" : "nccl";
  options.process = environment;
  options.timeout = std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  return options;
}

/// What NCCL was asked for by this process; null if it has not opened the imitation.
FakeNcclLog *ncclLog() {
  void *library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  auto *log = library ? reinterpret_cast<FakeNcclLogFunction *>(::dlsym(library, "fakeNcclLog")) : nullptr;
  return log ? log() : nullptr;
}

/// Collectives, groups of messages, splits.
std::string ncclCalls() {
  FakeNcclLog *log = ncclLog();
  if (!log)
    return "";
  return std::to_string(log->collectives) + "/" + std::to_string(log->groups) + "/" + std::to_string(log->splits);
}

/// Whether NCCL's communicators are all ended.
bool isEnded() {
  FakeNcclLog *log = ncclLog();
  return !log || log->communicators == 0;
}

/// What is said, after the exit code, by each rank that runs a program until something happens to it, for ten seconds
/// at most. `before` is called before each run.
std::vector<Outcome> runUntilEnd(std::shared_ptr<const runtime::Program> program, double timeout,
                                 const std::function<void(int rank, int run)> &before) {
  return inProcesses(program->numRanks(), [&](const runtime::LaunchEnvironment &environment) -> std::string {
    auto describe = [](const absl::Status &status) {
      return std::to_string(runtime::exitCodeOf(status)) + ": " + std::string(status.message());
    };
    auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, timeout));
    if (!runner.ok())
      return describe(runner.status());
    const runtime::PortInfo &port = program->getPlan().inputs[0];
    std::vector<float> in(volume(port.shape)), out(in.size());
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (int run = 0; std::chrono::steady_clock::now() < end; ++run) {
      before(environment.rank, run);
      absl::Status status = (*runner)->run({{in.data(), runtime::ElementType::F32, port.shape}},
                                           {{out.data(), runtime::ElementType::F32, port.shape}});
      if (!status.ok()) {
        // They end when the graphs do that use them, and before the process can.
        runner->reset();
        return isEnded() ? describe(status) : "communicators are left";
      }
    }
    return "nothing happened";
  });
}

TEST(ProcessRuns, SharesMemoryUnlessToldOtherwise) {
  if (!hasKernels())
    GTEST_SKIP() << "there is no compiler for kernels";
  auto program = gatherer(3, /*onDevice=*/false).program();
  // How many segments of others each rank has mapped.
  auto countMaps = [&](const char *limitOfRank1) {
    std::string counts;
    auto outcomes = inProcesses(3, [&](const runtime::LaunchEnvironment &environment) -> std::string {
      ::setenv("DOVETAIL_SHARED_MEMORY", environment.rank == 1 ? limitOfRank1 : "", 1);
      auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, 10));
      if (!runner.ok())
        return std::string(runner.status().message());
      std::ifstream maps("/proc/self/maps");
      int count = 0;
      for (std::string line; std::getline(maps, line);)
        count += line.find("memfd:dovetail-shared") != std::string::npos && line.find(" r--s ") != std::string::npos;
      return std::to_string(count);
    });
    for (const Outcome &outcome : outcomes)
      counts += outcome.text + " ";
    return counts;
  };
  EXPECT_EQ(countMaps(""), "2 2 2 ");
  EXPECT_EQ(countMaps("0"), "0 0 0 ");
}

TEST(ProcessRuns, ARankThatNeverComesIsNamed) {
  auto program = gatherer(3).program();
  auto outcomes = inProcesses(3, [&](const runtime::LaunchEnvironment &environment) -> std::string {
    if (environment.rank == 1)
      return "";
    auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, 0.5));
    return std::to_string(runtime::exitCodeOf(runner.status())) + ": " + std::string(runner.status().message());
  });
  EXPECT_THAT(outcomes[0].text, HasSubstr("8: rank 1 did not connect to rank 0 within 0.5 s"));
  EXPECT_EQ(outcomes[2].text, outcomes[0].text);
}

/// On devices and CPUs.
class LostRanks : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    if (!GetParam() && !hasKernels())
      GTEST_SKIP() << "nothing but sockets connects CPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(ProcessRuns, LostRanks, testing::Bool(),
                         [](const auto &info) { return info.param ? "Device" : "Cpu"; });

TEST_P(LostRanks, ARankThatDiesIsNamedByAll) {
  auto program = gatherer(3, GetParam()).program();
  for (int culprit : {0, 1, 2}) {
    auto outcomes = runUntilEnd(program, 20, [&](int rank, int run) {
      if (rank == culprit && run == 4)
        ::kill(::getpid(), SIGKILL);
    });
    EXPECT_EQ(outcomes[culprit].code, -SIGKILL);
    for (int rank = 0; rank < 3; ++rank)
      if (rank != culprit)
        EXPECT_THAT(outcomes[rank].text, HasSubstr("8: rank " + std::to_string(culprit) + " on host '")) << rank;
  }
}

TEST_P(LostRanks, ARankThatStopsIsNamedByAll) {
  auto program = gatherer(3, GetParam()).program();
  for (int culprit : {0, 1}) {
    auto outcomes = runUntilEnd(program, 1, [&](int rank, int run) {
      if (rank != culprit || run != 2)
        return;
      // It goes on when the others have given up.
      pid_t self = ::getpid();
      if (::fork() == 0) {
        std::this_thread::sleep_for(std::chrono::seconds(4));
        ::kill(self, SIGCONT);
        ::_exit(0);
      }
      ::kill(self, SIGSTOP);
    });
    for (int rank = 0; rank < 3; ++rank)
      if (rank != culprit)
        EXPECT_THAT(outcomes[rank].text, ContainsRegex(absl::StrCat("8: rank ", culprit, " on host '.*' has ")))
            << rank;
  }
}

TEST(ProcessRuns, AnErrorOfOneRankIsThatOfAll) {
  if (!hasKernels())
    GTEST_SKIP() << "a kernel is to fail";
  for (const Outcome &outcome : runUntilEnd(misbehavingBuilder().program(), 20, [](int, int) {}))
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("9: rank 0, kernel 'misbehave': thread 3 of block 0 writes 4 bytes"),
                                    HasSubstr("of tensor 'target'")));
}

TEST(ProcessRuns, WrongRequestsAreRefused) {
  if (!hasKernels())
    GTEST_SKIP() << "messages name the emulated device";
  auto program = gatherer(2).program();
  runtime::RunnerOptions options = optionsOf({"torchrun", 0, 3, 0, "127.0.0.1", 1}, 1);
  auto problem = [&](std::shared_ptr<const runtime::Program> program) {
    absl::Status status = runtime::ProgramRunner::create(program, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(problem(program), HasSubstr("the program is for 2 ranks, but torchrun says that there are 3"));
  options.communicator = "nccl";
  EXPECT_THAT(problem(program),
              HasSubstr("'nccl' moves memory of kind 'cuda', but programs for target 'emulated' keep theirs in memory "
                        "of kind 'host'; connect the ranks with local"));
  PlanBuilder cpu({1});
  cpu.output("out", cpu.constantValue({1}, sharding(1), {1}));
  cpu.plan.target = "cpu";
  EXPECT_THAT(problem(cpu.program()), HasSubstr("programs for target 'cpu' keep theirs in memory of kind 'host'"));
}

/// The imitated machine has two devices, for the third process the first one once more.
TEST(ProcessRuns, RanksDoNotShareADeviceUnasked) {
  if (hasKernels())
    GTEST_SKIP() << "the devices are those of NCCL's ranks";
  for (int ranks : {2, 3}) {
    auto program = gatherer(ranks).program();
    auto outcomes = inProcesses(ranks, [&](const runtime::LaunchEnvironment &environment) {
      ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
      absl::Status status = runtime::ProgramRunner::create(program, optionsOf(environment, 20)).status();
      return std::to_string(runtime::exitCodeOf(status)) + ": " + std::string(status.message());
    });
    for (const Outcome &outcome : outcomes)
      EXPECT_THAT(outcome.text,
                  ranks == 2
                      ? testing::Matcher<std::string>("0: ")
                      : AllOf(HasSubstr("2: "), HasSubstr("ranks 0 and 2 have the same device, "
                                                          "GPU-00000000-0000-0000-0000-000000000001, and nccl needs")));
  }
}

TEST(ProcessRuns, AsynchronousErrorsEndTheRunOnAllRanks) {
  if (hasKernels())
    GTEST_SKIP() << "the error is NCCL's";
  auto outcomes = runUntilEnd(gatherer(3).program(), 20, [](int rank, int run) {
    if (rank == 1 && run == 3)
      ::setenv("FAKE_NCCL_ERROR_AFTER", "3", 1);
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("8: rank 1: NCCL 2.28.9: the communication failed: remote process exited")));
}

/// Runs a program five times with other inputs on a process for each rank. Returns what each asked NCCL for.
std::vector<Outcome> runFiveTimes(std::shared_ptr<const runtime::Program> program) {
  return inProcesses(program->numRanks(), [&](const runtime::LaunchEnvironment &environment) {
    auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, 20));
    EXPECT_TRUE(runner.ok()) << runner.status();
    const Shape &shape = program->getPlan().inputs[0].shape;
    for (int run = 0; run < 5 && runner.ok(); ++run) {
      std::vector<float> in(volume(shape)), out(in.size());
      for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(100 * run + i);
      absl::Status status = (*runner)->run({{in.data(), runtime::ElementType::F32, shape}},
                                           {{out.data(), runtime::ElementType::F32, shape}});
      EXPECT_TRUE(status.ok()) << status;
      if (environment.rank == 0)
        EXPECT_EQ(out, in);
    }
    return ncclCalls();
  });
}

/// NCCL is called in the first run and when the second is recorded; what follows are replays.
TEST(ProcessRuns, ExchangesAreRecordedWithTheirRun) {
  for (const Outcome &outcome : runFiveTimes(gatherer(4).program())) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.text, hasKernels() ? "" : "2/0/0");
  }
  PlanBuilder uneven = deviceBuilder({3});
  uint32_t in = uneven.value({9}, sharding(1, {{0, split(0, {0, 2, 3, 9})}})), all = uneven.value({9}, sharding(1));
  uneven.input("in", in);
  uneven.exchange(in, all);
  uneven.output("out", all);
  for (const Outcome &outcome : runFiveTimes(uneven.program())) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.text, hasKernels() ? "" : "0/2/0");
  }
}

/// Several moves are one group of messages: NCCL is asked once, and not for each.
TEST(ProcessRuns, SeveralMovesAreOneGroup) {
  PlanBuilder builder = deviceBuilder({3});
  layout::Sharding cut = sharding(1, {{0, split(0, {0, 3, 6, 9})}});
  uint32_t in = builder.value({9}, cut), all = builder.value({9}, sharding(1));
  uint32_t windowed = builder.value({9}, sharding(1, {{0, windows(0, {{0, 5}, {2, 7}, {5, 9}})}}));
  builder.input("in", in);
  builder.exchange(in, all);
  builder.addMove(in, windowed);
  builder.output("out", all);
  builder.output("windows", windowed);
  auto program = builder.program();
  for (const Outcome &outcome : inProcesses(3, [&](const runtime::LaunchEnvironment &environment) {
         auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, 20));
         EXPECT_TRUE(runner.ok()) << runner.status();
         for (int run = 0; run < 5 && runner.ok(); ++run) {
           std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8, static_cast<float>(run)}, out(9), again(9);
           absl::Status status = (*runner)->run(
               {{in.data(), runtime::ElementType::F32, {9}}},
               {{out.data(), runtime::ElementType::F32, {9}}, {again.data(), runtime::ElementType::F32, {9}}});
           EXPECT_TRUE(status.ok()) << status;
           if (environment.rank == 0) {
             EXPECT_EQ(out, in);
             EXPECT_EQ(again, in);
           }
         }
         return ncclCalls();
       })) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.text, hasKernels() ? "" : "0/2/0");
  }
}

/// Exchanges within groups of ranks along an axis, and among all.
PlanBuilder groupGatherer() {
  PlanBuilder builder = deviceBuilder({2, 3});
  layout::Sharding cut = sharding(1, {{0, split(1, {0, 2, 4, 6})}}), other = sharding(1, {{0, split(0, {0, 3, 6})}});
  uint32_t in = builder.value({6}, cut), all = builder.value({6}, sharding(1));
  uint32_t half = builder.value({6}, other), whole = builder.value({6}, sharding(1));
  builder.input("in", in);
  builder.exchange(in, all);
  builder.exchange(all, half);
  builder.exchange(half, whole);
  builder.output("out", whole);
  return builder;
}

TEST(ProcessRuns, GroupsOfAnAxisHaveCollectivesOfTheirOwn) {
  for (const Outcome &outcome : runFiveTimes(groupGatherer().program())) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.text, hasKernels() ? "" : "4/0/2");
  }
}

/// Ranks wait in groups that differ, and to end one may take the end of another.
TEST(ProcessRuns, ALostRankEndsAllGroups) {
  if (hasKernels())
    GTEST_SKIP() << "the groups are NCCL's";
  auto program = groupGatherer().program();
  for (int last : {1, 4}) {
    auto outcomes = runUntilEnd(program, 60, [&](int rank, int run) {
      ::setenv("FAKE_NCCL_ENDS_SLOWLY", "1", 1);
      if (rank == 4 && run == last)
        ::setenv("FAKE_NCCL_DIES", "1", 1);
    });
    for (int rank = 0; rank < 6; ++rank)
      if (rank != 4)
        EXPECT_THAT(outcomes[rank].text, ContainsRegex("8: rank 4 on host '.*' is gone")) << rank << " after " << last;
  }
}

TEST(ProcessRuns, TheEnvironmentSaysTheRankInTheCInterface) {
  std::vector<std::byte> bytes = gatherer(3).artifact();
  auto outcomes = inProcesses(3, [&](const runtime::LaunchEnvironment &environment) {
    ::setenv("DOVETAIL_RANK", std::to_string(environment.rank).c_str(), 1);
    ::setenv("DOVETAIL_WORLD_SIZE", std::to_string(environment.size).c_str(), 1);
    ::setenv("DOVETAIL_ADDRESS", environment.address.c_str(), 1);
    ::setenv("DOVETAIL_PORT", std::to_string(environment.port).c_str(), 1);
    dovetail::Program program(bytes.data(), bytes.size());
    dovetail::Runner runner(program, 1, 20, false, hasKernels() ? "sockets" : "nccl");
    std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8, 9}, out(9);
    dovetail::Port x = program.inputs()[0], y = program.outputs()[0];
    std::vector<DLTensor> outputs;
    if (environment.rank == 0)
      outputs.push_back(y.tensor(out.data()));
    runner.run({x.tensor(in.data())}, outputs);
    if (environment.rank == 0)
      EXPECT_EQ(out, in);
    return std::string();
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.code, 0);
}

TEST(ProcessRuns, OtherRanksNeedNoOutputs) {
  auto program = gatherer(3).program();
  auto outcomes = inProcesses(3, [&](const runtime::LaunchEnvironment &environment) {
    auto runner = runtime::ProgramRunner::create(program, optionsOf(environment, 20));
    EXPECT_TRUE(runner.ok()) << runner.status();
    EXPECT_EQ((*runner)->isFirst(), environment.rank == 0);
    std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8, 9}, out(9);
    std::vector<runtime::FullTensor> outputs;
    if ((*runner)->isFirst())
      outputs.push_back({out.data(), runtime::ElementType::F32, {9}});
    absl::Status status = (*runner)->run({{in.data(), runtime::ElementType::F32, {9}}}, outputs);
    EXPECT_TRUE(status.ok()) << status;
    if (environment.rank == 0)
      EXPECT_EQ((*runner)->run({{in.data(), runtime::ElementType::F32, {9}}}, {}).code(),
                absl::StatusCode::kInvalidArgument);
    return std::string();
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.code, 0);
}

} // namespace
