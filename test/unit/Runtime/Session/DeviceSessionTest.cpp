//===- DeviceSessionTest.cpp - Whole programs on a device -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/LocalGroup.h"
#include "dovetail/runtime/Session.h"

#include <array>
#include <cstdlib>
#include <thread>

using namespace dovetail;
using namespace dovetail::test;
using artifact::BufferKind;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::vector<float> stencil(const std::vector<float> &in, int64_t columns) {
  std::vector<float> out(in.size());
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float above = i > 0 ? in[(i - 1) * columns + j] : 0, below = i < 39 ? in[(i + 1) * columns + j] : 0;
      out[i * columns + j] = above + 2 * in[i * columns + j] + 3 * below;
    }
  return out;
}

/// Decides, while it lives, in which order the emulated device does things.
struct Seed {
  explicit Seed(const char *seed) { ::setenv("DOVETAIL_EMULATED_SEED", seed, 1); }
  ~Seed() { ::unsetenv("DOVETAIL_EMULATED_SEED"); }
};

/// Rows as cut, with one more at each side.
layout::DimSharding extended(const std::vector<int64_t> &cuts) {
  std::vector<layout::Interval> pieces;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    pieces.push_back(cuts[i] == cuts[i + 1] ? layout::Interval{}
                                            : layout::Interval{std::max<int64_t>(0, cuts[i] - 1),
                                                               std::min<int64_t>(cuts.back(), cuts[i + 1] + 1)});
  return windows(0, pieces);
}

/// Runs a program with one float input, or none, and one output.
std::vector<float> runOften(std::shared_ptr<const runtime::Program> program, const std::vector<float> &in,
                            runtime::RunnerOptions options = {}) {
  std::vector<std::vector<float>> inputs(program->getPlan().inputs.size(), in);
  auto results = runFloats(program, inputs, options);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0] : std::vector<float>();
}

/// Counts what a session asks of the ranks of a process.
class CountingCommunicator : public runtime::Communicator {
public:
  explicit CountingCommunicator(std::unique_ptr<Communicator> inner) : inner(std::move(inner)) {}

  int rank() const override { return inner->rank(); }
  int size() const override { return inner->size(); }
  absl::StatusOr<std::unique_ptr<runtime::Channel>> open(runtime::ChannelDescription description) override {
    auto opened = inner->open(std::move(description));
    if (!opened.ok())
      return opened.status();
    struct Counting : runtime::Channel {
      Counting(std::unique_ptr<Channel> inner, int &starts) : inner(std::move(inner)), starts(starts) {}
      absl::Status start() override {
        ++starts;
        return inner->start();
      }
      absl::Status finish() override { return inner->finish(); }
      absl::Status join() override { return inner->join(); }
      absl::Status fence() override { return inner->fence(); }
      std::unique_ptr<Channel> inner;
      int &starts;
    };
    return std::make_unique<Counting>(*std::move(opened), starts);
  }
  void keep(std::shared_ptr<void> memory) override { inner->keep(std::move(memory)); }
  absl::Status connect() override { return inner->connect(); }
  absl::StatusOr<std::unique_ptr<runtime::Move>> record(runtime::Mover &mover,
                                                        absl::FunctionRef<absl::Status()> issue) override {
    ++recordings;
    return inner->record(mover, issue);
  }
  absl::StatusOr<bool> decide(bool decision) override { return inner->decide(decision); }
  void enterStep(const char *name) override { inner->enterStep(name); }
  void setBusy(bool busy) override { inner->setBusy(busy); }
  absl::Status state() const override { return inner->state(); }
  absl::Status abort(const absl::Status &status) override { return inner->abort(status); }

  int starts = 0, recordings = 0;

private:
  std::unique_ptr<Communicator> inner;
};

/// A session on one of several threads.
struct OneRank {
  CountingCommunicator &communicator;
  runtime::Session &session;

  /// Runs it with the one input and output, which have as many elements.
  void run(std::vector<float> &in, std::vector<float> &out) const {
    const Shape shape = {static_cast<int64_t>(in.size())};
    layout::Box all = layout::Box::ofShape(shape);
    auto view = [&](std::vector<float> &values) {
      return runtime::MemoryView::rowMajor(runtime::ElementType::F32, all, values.data());
    };
    ASSERT_TRUE(session.writeInput(0, view(in), {session.inputBox(0)}).ok());
    ASSERT_TRUE(session.run().ok());
    ASSERT_TRUE(session.readOutput(0, view(out), {all}).ok());
  }
};

void onEachRank(const std::shared_ptr<const runtime::Program> &program, absl::FunctionRef<void(const OneRank &)> body) {
  runtime::LocalGroup group(program->numRanks());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < program->numRanks(); ++rank)
    threads.emplace_back([&, rank] {
      CountingCommunicator communicator(group.communicator(rank));
      auto session = runtime::Session::create(program, communicator, {});
      ASSERT_TRUE(session.ok()) << session.status();
      body({communicator, **session});
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

TEST(DeviceSession, ExchangesArePartOfWhatIsReplayed) {
  PlanBuilder builder = deviceBuilder({3});
  auto cut = split(0, {0, 1, 3, 7});
  uint32_t part = builder.value({7}, sharding(1, {{0, cut}})), whole = builder.value({7}, sharding(1));
  uint32_t next = builder.value({7}, sharding(1, {{0, cut}})), last = builder.value({7}, sharding(1));
  builder.input("in", part);
  builder.exchange(part, whole);
  builder.kernel("incrementBlocks", {whole}, {next}, {{7, cut}});
  setBlocks(builder, 32, {0}, 32);
  builder.exchange(next, last);
  builder.output("out", last);
  auto program = builder.program();
  ASSERT_TRUE(program);
  onEachRank(program, [](const OneRank &rank) {
    for (int run = 0; run < 5; ++run) {
      float first = 10.0f * static_cast<float>(run);
      std::vector<float> in = {first, 1, 2, 3, 4, 5, 6}, out(7), expected = {first + 1, 2, 3, 4, 5, 6, 7};
      rank.run(in, out);
      EXPECT_EQ(out, expected) << "rank " << rank.communicator.rank() << ", run " << run;
      // Once when they are done, and once when they are recorded.
      EXPECT_EQ(rank.communicator.starts, run == 0 ? 2 : 4);
      EXPECT_EQ(rank.communicator.recordings, run == 0 ? 0 : 1);
    }
  });
}

TEST(DeviceSession, StepsBetweenBoundariesAreReplayed) {
  PlanBuilder builder = deviceBuilder({3});
  builder.placesWaits = false;
  auto cut = split(0, {0, 1, 3, 7});
  uint32_t part = builder.value({7}, sharding(1, {{0, cut}})), whole = builder.value({7}, sharding(1));
  uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
  auto addExchange = [&] {
    auto position = static_cast<uint32_t>(builder.plan.steps.size());
    builder.exchange(part, whole);
    builder.wait({position}, {position});
    builder.kernel("isBelowTenBlocks", {whole}, {on}, {});
    setBlocks(builder, 32, {}, 1);
  };
  builder.input("in", part);
  addExchange();
  builder.repeat(on);
  builder.kernel("incrementBlocks", {whole}, {part}, {{7, cut}});
  setBlocks(builder, 32, {0}, 32);
  addExchange();
  builder.end();
  builder.output("out", whole);
  auto program = builder.program();
  ASSERT_TRUE(program);
  onEachRank(program, [](const OneRank &rank) {
    struct Run {
      float first;
      int iterations, recordings;
    };
    // The loop is recorded in the second iteration, wherever that is; what comes before it, in the second run.
    for (Run run : {Run{9, 1, 0}, Run{20, 0, 1}, Run{4, 6, 2}, Run{12, 0, 2}, Run{1, 9, 2}}) {
      std::vector<float> in = {run.first, 1, 2, 3, 4, 5, 6}, out(7), expected = in;
      for (float &value : expected)
        value += static_cast<float>(run.iterations);
      rank.run(in, out);
      EXPECT_EQ(out, expected) << "rank " << rank.communicator.rank() << ", first " << run.first;
      EXPECT_EQ(rank.communicator.recordings, run.recordings)
          << "rank " << rank.communicator.rank() << ", first " << run.first;
    }
  });
}

TEST(DeviceSession, RepeatsWithoutKernels) {
  // As many iterations as there are conditions that hold, of which each takes the place of the one before, as do
  // values.
  constexpr size_t count = 4;
  PlanBuilder builder = deviceBuilder({3});
  builder.placesWaits = false;
  layout::Sharding cut = sharding(1, {{0, split(0, {0, 1, 3, 7})}});
  std::vector<uint32_t> conditions, values;
  for (size_t i = 0; i < count; ++i) {
    conditions.push_back(builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool));
    values.push_back(builder.value({7}, cut));
    builder.input("condition" + std::to_string(i), conditions[i]);
    builder.input("value" + std::to_string(i), values[i]);
  }
  uint32_t whole = builder.value({7}, sharding(1));
  auto addExchange = [&] {
    auto position = static_cast<uint32_t>(builder.plan.steps.size());
    builder.exchange(values[0], whole);
    builder.wait({position}, {position});
  };
  auto addCopy = [&](uint32_t source, uint32_t target) {
    artifact::ReorderT reorder;
    reorder.source = source;
    reorder.target = target;
    builder.library(std::move(reorder));
  };
  addExchange();
  builder.repeat(conditions[0]);
  for (size_t i = 0; i + 1 < count; ++i) {
    addCopy(conditions[i + 1], conditions[i]);
    addCopy(values[i + 1], values[i]);
  }
  addExchange();
  builder.end();
  builder.output("out", whole);
  auto program = builder.program();
  ASSERT_TRUE(program);
  auto runner = runtime::ProgramRunner::create(program);
  ASSERT_TRUE(runner.ok()) << runner.status();
  for (size_t iterations : {0, 2, 3, 1, 3}) {
    std::array<uint8_t, count> holds = {};
    std::vector<std::vector<float>> given(count);
    std::vector<runtime::FullTensor> inputs;
    for (size_t i = 0; i < count; ++i) {
      holds[i] = i < iterations;
      for (int element = 0; element < 7; ++element)
        given[i].push_back(static_cast<float>(10 * i + element));
      inputs.push_back({&holds[i], runtime::ElementType::Bool, {}});
      inputs.push_back({given[i].data(), runtime::ElementType::F32, {7}});
    }
    std::vector<float> out(7);
    absl::Status status = (*runner)->run(inputs, {{out.data(), runtime::ElementType::F32, {7}}});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out, given[iterations]) << iterations;
  }
}

TEST(DeviceSession, StencilsWithExchanges) {
  std::mt19937_64 random(1);
  for (int64_t columns : {1, 7, 300}) {
    std::vector<float> in = randomFloats(random, 40 * columns), expected = in;
    for (int i = 0; i < 4; ++i)
      expected = stencil(expected, columns);
    for (std::vector<int64_t> cuts :
         std::vector<std::vector<int64_t>>{{0, 40}, {0, 13, 40}, {0, 1, 2, 40}, {0, 20, 20, 40}})
      for (const char *seed : {"0", "1", "2", "3"})
        for (bool trace : {false, true}) {
          SCOPED_TRACE(testing::Message() << cuts.size() - 1 << " ranks, " << columns << " columns, seed " << seed);
          Seed guard(seed);
          Order order = columns == 7 ? Order{1, 0} : Order{0, 1};
          PlanBuilder builder = deviceBuilder({static_cast<int64_t>(cuts.size()) - 1});
          layout::Sharding cut = sharding(2, {{0, split(0, cuts)}}), held = sharding(2, {{0, extended(cuts)}});
          Shape shape = {40, columns};
          uint32_t buffer = builder.buffer(shape, held, order);
          builder.input("in", builder.tensor(buffer, cut, "in"));
          for (int i = 0; i < 4; ++i) {
            uint32_t owned = builder.tensor(buffer, cut, "owned"), wide = builder.tensor(buffer, held, "wide");
            builder.exchange(owned, wide);
            buffer = builder.buffer(shape, held, order);
            builder.kernel("stencilBlocks", {wide}, {builder.tensor(buffer, cut, "result")},
                           {{40, split(0, cuts)}, {columns, {}}}, 0);
            setBlocks(builder, 64, {0, 1}, 64);
          }
          builder.output("out", builder.tensor(buffer, cut, "out"));
          runtime::RunnerOptions options;
          options.trace = trace;
          EXPECT_EQ(runOften(builder.program(), in, options), expected);
        }
  }
}

TEST(DeviceSession, PartialSumsOverRanks) {
  std::mt19937_64 random(3);
  // Few elements, and so many that they are combined in two phases.
  for (int64_t count : {5, 20'000})
    for (std::vector<int64_t> cuts : std::vector<std::vector<int64_t>>{{0, 6}, {0, 2, 6}, {0, 3, 3, 6}, {0, 1, 3, 6}}) {
      int64_t ranks = static_cast<int64_t>(cuts.size()) - 1;
      std::vector<float> in(6 * count), expected(count);
      for (int64_t i = 0; i < 6 * count; ++i)
        expected[i % count] += in[i] = static_cast<float>(static_cast<int>(random() % 100));
      PlanBuilder builder = deviceBuilder({ranks});
      auto rows = split(0, cuts);
      uint32_t matrix = builder.value({6, count}, sharding(2, {{0, rows}}));
      uint32_t partial = builder.value({count}, sharding(1, {}, {0}, layout::ReductionKind::Sum));
      uint32_t total = builder.value({count}, sharding(1)), more = builder.value({count}, sharding(1));
      uint32_t most = builder.value({count}, sharding(1));
      builder.input("in", matrix);
      builder.kernel("sumRowsBlocks", {matrix}, {partial}, {{count, {}}, {6, rows}});
      setBlocks(builder, 32, {0}, 32);
      builder.exchange(partial, total);
      for (auto [from, to] : {std::pair(total, more), std::pair(more, most)}) {
        builder.kernel("incrementBlocks", {from}, {to}, {{count, {}}});
        setBlocks(builder, 32, {0}, 32);
      }
      builder.output("out", most);
      for (float &value : expected)
        value += 2;
      for (const char *seed : {"0", "1", "2", "3"}) {
        Seed guard(seed);
        EXPECT_EQ(runOften(builder.program(), in), expected) << ranks << " ranks, " << count << ", seed " << seed;
      }
    }
}

TEST(DeviceSession, KernelsGetNoCounts) {
  PlanBuilder builder = deviceBuilder({2});
  layout::Sharding cut = sharding(1, {{0, split(0, {0, 30, 100})}});
  uint32_t in = builder.value({100}, cut), out = builder.value({100}, cut);
  builder.input("in", in);
  builder.kernel("incrementWithoutCountsBlocks", {in}, {out}, {{100, split(0, {0, 30, 100})}});
  setBlocks(builder, 32, {0}, 32);
  builder.output("out", out);
  EXPECT_EQ(runOften(builder.program(), std::vector<float>(100, 2)), std::vector<float>(100, 3));
}

TEST(DeviceSession, ConstantsAndPrologue) {
  PlanBuilder builder = deviceBuilder({2});
  auto dim = split(0, {0, 1, 4});
  layout::Sharding cut = sharding(1, {{0, dim}}), whole = sharding(1);
  uint32_t one = builder.constantValue({4}, cut, {1, 2, 3, 4});
  uint32_t temporary = builder.value({4}, cut);
  uint32_t kept = builder.tensor(builder.buffer({4}, whole, {}, BufferKind::Persistent), whole, "kept");
  uint32_t out = builder.value({4}, whole);
  builder.kernel("incrementBlocks", {one}, {temporary}, {{4, dim}}, -1, /*inPrologue=*/true);
  setBlocks(builder, 32, {0}, 32, 0, /*inPrologue=*/true);
  builder.exchange(temporary, kept, /*inPrologue=*/true);
  builder.kernel("incrementBlocks", {kept}, {out}, {{4, {}}});
  setBlocks(builder, 32, {0}, 32);
  builder.output("out", out);
  EXPECT_EQ(runOften(builder.program(), {}), (std::vector<float>{3, 4, 5, 6}));
}

TEST(DeviceSession, ReordersAndTransposedConstants) {
  std::mt19937_64 random(4);
  std::vector<float> in = randomFloats(random, 12 * 5);
  PlanBuilder builder = deviceBuilder({3});
  auto dim = split(0, {0, 2, 3, 5});
  layout::Sharding cut = sharding(2, {{1, dim}});
  artifact::ReorderT reorder;
  reorder.source = builder.constantValue({12, 5}, cut, in, {1, 0});
  reorder.target = builder.value({12, 5}, cut, {0, 1});
  uint32_t out = reorder.target;
  builder.library(std::move(reorder));
  builder.output("out", out);
  EXPECT_EQ(runOften(builder.program(), {}), in);
}

TEST(DeviceSession, ErrorsNameRankAndKernel) {
  auto results = runFloats(misbehavingBuilder().program(), {std::vector<float>(100)});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal) << results.status();
  EXPECT_THAT(std::string(results.status().message()),
              AllOf(HasSubstr("rank 0, kernel 'misbehave': thread 3 of block 0 writes 4 bytes at offset -4"),
                    HasSubstr("of tensor 'target', which has 200 bytes")));
}

TEST(DeviceSession, LibrariesAreRefused) {
  PlanBuilder builder = deviceBuilder({1});
  PoolStep call;
  call.input = builder.value({1, 1, 4, 4}, sharding(4));
  call.output = builder.value({1, 1, 4, 4}, sharding(4));
  call.kernel = call.strides = call.dilations = {1, 1};
  call.pads = {0, 0};
  builder.input("in", call.input);
  builder.output("out", call.output);
  builder.library(std::move(call));
  absl::Status status = runtime::ProgramRunner::create(builder.program()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("pool 'library0'"), HasSubstr("--no-libraries")));
}

TEST(DeviceSession, AMissingPluginIsNamed) {
  PlanBuilder builder = deviceBuilder({1});
  builder.plan.target = "absent";
  builder.output("out", builder.constantValue({1}, sharding(1), {1}));
  auto program = builder.program();
  ::setenv("DOVETAIL_PLUGINS", "/no/such:/folder", 1);
  absl::Status status = runtime::ProgramRunner::create(program).status();
  ::unsetenv("DOVETAIL_PLUGINS");
  EXPECT_EQ(runtime::exitCodeOf(status), 8);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("target 'absent'"), HasSubstr("libdovetail_absent.so"), HasSubstr("/bin"),
                    HasSubstr("/no/such, /folder"), HasSubstr("DOVETAIL_PLUGINS")));
}
