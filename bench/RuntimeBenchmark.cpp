//===- RuntimeBenchmark.cpp - What the runtime adds to the work -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures steps against the library calls that they make, and halo exchanges against copies of their bytes. Times are
// those of one step, call, exchange or copy.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "Threads/Cores.h"
#include "Threads/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <cstring>
#include <dnnl.hpp>
#include <thread>

using namespace dovetail;
using namespace dovetail::test;

namespace {

/// Runs `program`, whose input and output have `shape`, and sets the time of one of its `steps` steps.
void measureSteps(benchmark::State &state, const PlanBuilder &builder, const Shape &shape, int64_t steps,
                  runtime::RunnerOptions options) {
  auto runner = runtime::ProgramRunner::create(builder.program(), options);
  if (!runner.ok())
    return state.SkipWithError(runner.status().ToString().c_str());
  std::vector<float> data(volume(shape), 0.5f);
  std::vector<runtime::FullTensor> in = {{data.data(), runtime::ElementType::F32, shape}}, out = in;
  for (auto _ : state) {
    absl::StatusOr<std::chrono::nanoseconds> time = (*runner)->measure(in, out);
    if (!time.ok())
      return state.SkipWithError(time.status().ToString().c_str());
    state.SetIterationTime(std::chrono::duration<double>(*time).count() / steps);
  }
}

constexpr int64_t kSteps = 512;
constexpr int64_t kChannels = 16, kExtent = 8;

/// A chain of 1 x 1 convolutions, small enough for what surrounds them to matter.
void convolutionSteps(benchmark::State &state) {
  Shape shape = {1, kChannels, kExtent, kExtent}, weights = {kChannels, kChannels, 1, 1};
  PlanBuilder builder({1});
  Order channelsLast = {0, 2, 3, 1};
  uint32_t kernel = builder.constantValue(weights, sharding(4), std::vector<float>(volume(weights), 1.0f / kChannels));
  uint32_t first = builder.value(shape, sharding(4), channelsLast, "a");
  uint32_t second = builder.value(shape, sharding(4), channelsLast, "b");
  builder.input("in", first);
  for (int64_t i = 0; i < kSteps; ++i) {
    ConvolutionStep call;
    call.input = i % 2 ? second : first;
    call.output = i % 2 ? first : second;
    call.weights = kernel;
    call.strides = call.dilations = {1, 1};
    call.pads = {0, 0};
    call.groups = 1;
    builder.library(std::move(call));
  }
  builder.output("out", first);
  measureSteps(state, builder, shape, kSteps, {});
}

/// The same calls, by a loop over the library's interface.
void convolutionCalls(benchmark::State &state) {
  using namespace dnnl;
  engine engine(engine::kind::cpu, 0);
  stream stream(engine);
  memory::desc data({1, kChannels, kExtent, kExtent}, memory::data_type::f32, memory::format_tag::nhwc);
  memory::desc anyWeights({kChannels, kChannels, 1, 1}, memory::data_type::f32, memory::format_tag::any);
  convolution_forward::desc desc(prop_kind::forward_inference, algorithm::convolution_direct, data, anyWeights, data,
                                 {1, 1}, {0, 0}, {0, 0});
  primitive_attr attributes;
  attributes.set_scratchpad_mode(scratchpad_mode::user);
  convolution_forward::primitive_desc created(desc, attributes, engine);
  convolution_forward convolution(created);
  memory first(data, engine), second(data, engine), weights(created.weights_desc(), engine);
  memory scratchpad(created.scratchpad_desc(), engine);
  for (const memory &each : {first, second, weights})
    std::memset(each.get_data_handle(), 0, each.get_desc().get_size());
  std::vector<dnnl_exec_arg_t> arguments[2];
  for (int i : {0, 1})
    arguments[i] = {{DNNL_ARG_SRC, (i ? second : first).get()},
                    {DNNL_ARG_DST, (i ? first : second).get()},
                    {DNNL_ARG_WEIGHTS, weights.get()},
                    {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < kSteps; ++i)
      dnnl_primitive_execute(convolution.get(), stream.get(), 4, arguments[i % 2].data());
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kSteps);
  }
}

/// Two ranks, each of which writes its part of a value and then receives the other's. The time is that from the last
/// rank's beginning to the last one's end.
void haloExchanges(benchmark::State &state) {
  int64_t extent = state.range(0) / 4;
  constexpr int64_t count = 64;
  PlanBuilder builder({2});
  builder.codePath = DOVETAIL_TEST_KERNELS;
  layout::Sharding owned = sharding(1, {{0, split(0, {0, extent, 2 * extent})}});
  uint32_t first = builder.value({2 * extent}, owned, {}, "first"), buffer = builder.buffer({2 * extent}, sharding(1));
  uint32_t source = builder.tensor(buffer, owned, "own"), target = builder.tensor(buffer, sharding(1), "all");
  builder.input("in", first);
  for (int64_t i = 0; i < count; ++i) {
    builder.kernel("increment", {first}, {source}, {{2 * extent, owned.dims[0]}});
    builder.exchange(source, target);
  }
  builder.output("out", source);
  auto program = builder.program();
  auto runner = runtime::ProgramRunner::create(program, {.threads = 2, .trace = true});
  if (!runner.ok())
    return state.SkipWithError(runner.status().ToString().c_str());
  std::vector<float> data(2 * extent, 0.5f);
  std::vector<runtime::FullTensor> in = {{data.data(), runtime::ElementType::F32, {2 * extent}}}, out = in;
  const std::vector<runtime::StepInfo> &steps = program->getPlan().steps;
  for (auto _ : state) {
    if (absl::Status status = (*runner)->run(in, out); !status.ok())
      return state.SkipWithError(status.ToString().c_str());
    std::vector<double> seconds;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!std::holds_alternative<runtime::ExchangeCall>(steps[i].action))
        continue;
      const runtime::StepTime &a = (*runner)->times(0)[i], &b = (*runner)->times(1)[i];
      seconds.push_back(std::chrono::duration<double>(std::max(a.end, b.end) - std::max(a.begin, b.begin)).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    state.SetIterationTime(seconds[seconds.size() / 2]);
  }
}

/// Two threads, each of which writes memory and then copies what the other wrote, which lies in the cache of its core.
void remoteCopies(benchmark::State &state) {
  size_t bytes = state.range(0);
  constexpr int count = 64;
  std::vector<char> sources[2] = {std::vector<char>(bytes), std::vector<char>(bytes)},
                    target[2] = {sources[0], sources[0]};
  std::vector<double> seconds(count);
  for (auto _ : state) {
    std::atomic<int> arrived{0};
    auto work = [&](int self) {
      for (int i = 0; i < count; ++i) {
        auto meet = [&](int place) {
          ++arrived;
          while (arrived.load() < 2 * (2 * i + place))
            std::this_thread::yield();
        };
        std::memset(sources[self].data(), i, bytes);
        meet(1);
        auto begin = std::chrono::steady_clock::now();
        std::memcpy(target[self].data(), sources[1 - self].data(), bytes);
        benchmark::ClobberMemory();
        if (self == 0)
          seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        meet(2);
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
    state.SetIterationTime(seconds[count / 2]);
  }
}

/// Two threads are given a part each, which are done when both have begun: else one of them would do both.
void jobs(benchmark::State &state) {
  constexpr int count = 512;
  runtime::Cores::count();
  runtime::Cores::Use use(2);
  runtime::ThreadPool pool(2);
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      std::atomic<int> begun{0};
      auto meet = [](void *context, int) {
        auto &begun = *static_cast<std::atomic<int> *>(context);
        ++begun;
        while (begun.load() < 2)
          std::this_thread::yield(); // The other one may be on the same core.
      };
      pool.run(2, meet, &begun);
    }
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / count);
  }
}

} // namespace

/// The reported time is that of one step, which the framework must not wait to add up to something.
static void configure(benchmark::internal::Benchmark *benchmark) {
  benchmark->UseManualTime()->Iterations(10)->Repetitions(15)->ReportAggregatesOnly();
}
static void configureBytes(benchmark::internal::Benchmark *benchmark) {
  configure(benchmark);
  benchmark->Arg(64 << 10)->Arg(1 << 20)->Arg(8 << 20);
}

BENCHMARK(convolutionSteps)->Apply(configure);
BENCHMARK(convolutionCalls)->Apply(configure);
BENCHMARK(jobs)->Apply(configure);
BENCHMARK(haloExchanges)->Apply(configureBytes);
BENCHMARK(remoteCopies)->Apply(configureBytes);

BENCHMARK_MAIN();
