//===- KernelFormatsTest.cpp - Kernels read and write any format -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose tensors lie in random formats give what they give in row-major memory.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "Random.h"

#include "gtest/gtest.h"

#include <cmath>
#include <numeric>
#include <sstream>

using namespace dovetail::test;
using dovetail::layout::Random;

namespace {

/// A kernel of f32 with results of one shape.
struct Kernel {
  const char *name;
  std::vector<Index> arguments;
  Index result;
  int results;
  /// The loops that a call may run a part of, and the extents of the reductions.
  Index parallel, reductions;
  const char *body;
};

const Kernel kernels[] = {
    {"elementwise", {{2, 37, 3, 5}, {37, 1, 1}}, {2, 37, 3, 5}, 2, {0, 1, 2, 3}, {}, R"mlir(
      %0 = dovetail.mul %a0, %a1 : (tensor<2x37x3x5xf32>, tensor<37x1x1xf32>) -> tensor<2x37x3x5xf32>
      %1 = dovetail.relu %0 : (tensor<2x37x3x5xf32>) -> tensor<2x37x3x5xf32>
      plan.yield %1, %0 : tensor<2x37x3x5xf32>, tensor<2x37x3x5xf32>)mlir"},
    {"exponential", {{3, 32, 7}}, {3, 32, 7}, 1, {0, 1, 2}, {}, R"mlir(
      %0 = dovetail.exp %a0 : (tensor<3x32x7xf32>) -> tensor<3x32x7xf32>
      plan.yield %0 : tensor<3x32x7xf32>)mlir"},
    {"transpose", {{5, 6, 19}}, {19, 5, 6}, 1, {0, 1, 2}, {}, R"mlir(
      %0 = dovetail.transpose %a0 {permutation = array<i64: 2, 0, 1>} : (tensor<5x6x19xf32>) -> tensor<19x5x6xf32>
      plan.yield %0 : tensor<19x5x6xf32>)mlir"},
    {"channel_sum", {{4, 37, 9}}, {4, 1, 9}, 1, {0, 2}, {37}, R"mlir(
      %0 = dovetail.reduce %a0 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x37x9xf32>) -> tensor<4x1x9xf32>
      plan.yield %0 : tensor<4x1x9xf32>)mlir"},
    {"row_maximum", {{4, 21, 40}}, {4, 21, 1}, 1, {0, 1}, {40}, R"mlir(
      %0 = dovetail.reduce %a0 {axes = array<i64: 2>, kind = #dovetail.reduce_kind<max>} : (tensor<4x21x40xf32>) -> tensor<4x21x1xf32>
      plan.yield %0 : tensor<4x21x1xf32>)mlir"},
    {"softmax", {{3, 18, 11}}, {3, 18, 11}, 1, {0, 2}, {18}, R"mlir(
      %max, %sum = dovetail.sum_exp %a0 {axes = array<i64: 1>} : (tensor<3x18x11xf32>) -> (tensor<3x1x11xf32>, tensor<3x1x11xf32>)
      %0 = dovetail.sub %a0, %max : (tensor<3x18x11xf32>, tensor<3x1x11xf32>) -> tensor<3x18x11xf32>
      %1 = dovetail.exp %0 : (tensor<3x18x11xf32>) -> tensor<3x18x11xf32>
      %2 = dovetail.div %1, %sum : (tensor<3x18x11xf32>, tensor<3x1x11xf32>) -> tensor<3x18x11xf32>
      plan.yield %2 : tensor<3x18x11xf32>)mlir"},
    {"normalized_rows", {{3, 18, 11}}, {3, 18, 11}, 1, {0, 1, 2}, {11}, R"mlir(
      %0 = dovetail.reduce %a0 {axes = array<i64: 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<3x18x11xf32>) -> tensor<3x18x1xf32>
      %1 = dovetail.sub %a0, %0 : (tensor<3x18x11xf32>, tensor<3x18x1xf32>) -> tensor<3x18x11xf32>
      plan.yield %1 : tensor<3x18x11xf32>)mlir"},
    {"convolution", {{1, 10, 6, 7}, {19, 10, 3, 3}}, {1, 19, 6, 7}, 1, {1, 2, 3}, {10}, R"mlir(
      %0 = dovetail.conv %a0, %a1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>,
          pads_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x10x6x7xf32>, tensor<19x10x3x3xf32>) -> tensor<1x19x6x7xf32>
      plan.yield %0 : tensor<1x19x6x7xf32>)mlir"},
    {"pool", {{1, 21, 9, 5}}, {1, 21, 9, 5}, 1, {1, 2, 3}, {}, R"mlir(
      %0 = dovetail.pool %a0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 1>, strides = array<i64: 1, 1>,
          dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x21x9x5xf32>) -> tensor<1x21x9x5xf32>
      plan.yield %0 : tensor<1x21x9x5xf32>)mlir"},
    {"running_sum", {{4, 13, 6}}, {4, 13, 6}, 1, {0, 2}, {}, R"mlir(
      %0 = dovetail.scan %a0 {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<4x13x6xf32>) -> tensor<4x13x6xf32>
      plan.yield %0 : tensor<4x13x6xf32>)mlir"},
};

/// How a tensor lies in memory, and which of its extents the kernel does not know.
struct Format {
  Index order;
  std::vector<bool> isUnknown;

  std::string str(const Index &shape) const {
    std::ostringstream text;
    text << "<[";
    for (size_t i = 0; i < order.size(); ++i)
      text << (i ? ", " : "") << order[i];
    text << "], [";
    for (size_t dim = 0; dim < shape.size(); ++dim)
      text << (dim ? ", " : "") << (isUnknown[dim] ? "?" : std::to_string(shape[dim]));
    text << "]>";
    return text.str();
  }
};

Format rowMajor(const Index &shape) {
  Format format{Index(shape.size()), std::vector<bool>(shape.size())};
  std::iota(format.order.begin(), format.order.end(), 0);
  return format;
}

Format randomFormat(Random &random, const Index &shape) {
  Format format = rowMajor(shape);
  if (random.chance(80))
    random.shuffle(format.order);
  return format;
}

std::string typeOf(const Index &shape) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + "f32>";
}

std::string sourceOf(const Kernel &kernel, const std::vector<Format> &arguments, const std::vector<Format> &results,
                     const Index &staticLoops) {
  std::ostringstream text;
  text << "plan.kernel @k(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text << (i ? ", " : "") << "%a" << i << ": " << typeOf(kernel.arguments[i]);
  text << ") layouts [";
  for (size_t i = 0; i < arguments.size(); ++i)
    text << (i ? ", " : "") << arguments[i].str(kernel.arguments[i]);
  text << "] -> [";
  for (size_t i = 0; i < results.size(); ++i)
    text << (i ? ", " : "") << results[i].str(kernel.result);
  text << "]";
  if (!staticLoops.empty()) {
    text << " attributes {static_loops = array<i64: ";
    for (size_t i = 0; i < staticLoops.size(); ++i)
      text << (i ? ", " : "") << staticLoops[i];
    text << ">}";
  }
  text << " {" << kernel.body << "\n}";
  return text.str();
}

/// Runs the kernel on loops [lo, hi); results hold [heldLo, heldHi).
std::vector<Piece<float>> run(const Kernel &kernel, const std::vector<Format> &arguments,
                              const std::vector<Format> &results, const Index &staticLoops, const Index &lo,
                              const Index &hi, const Index &heldLo, const Index &heldHi, const std::string &cpu) {
  LoadedKernels loaded(sourceOf(kernel, arguments, results, staticLoops), cpu);
  Index loops;
  for (size_t dim = 0; dim < lo.size(); ++dim)
    loops.insert(loops.end(), {lo[dim], hi[dim]});
  for (int64_t extent : kernel.reductions)
    loops.insert(loops.end(), {0, extent});
  std::vector<Piece<float>> inputs, outputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Index &shape = kernel.arguments[i];
    inputs.emplace_back(Index(shape.size(), 0), shape, arguments[i].order);
    inputs.back().fill(noise);
  }
  for (const Format &format : results)
    outputs.emplace_back(heldLo, heldHi, format.order);
  Call call(loops);
  for (Piece<float> &input : inputs)
    call.with(input);
  for (Piece<float> &output : outputs)
    call.with(output);
  call.run(loaded.get("k"));
  return outputs;
}

} // namespace

class KernelFormats : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cpus, KernelFormats, testing::ValuesIn(runnableCpus({"native", "x86-64-v3"})),
                         [](const auto &info) { return testName(info.param); });

TEST_P(KernelFormats, GiveWhatRowMajorOnesGive) {
  for (const Kernel &kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    size_t rank = kernel.result.size();
    std::vector<Format> plain, plainResults(kernel.results, rowMajor(kernel.result));
    for (const Index &shape : kernel.arguments)
      plain.push_back(rowMajor(shape));
    Index zero(rank, 0);
    std::vector<Piece<float>> expected =
        run(kernel, plain, plainResults, {}, zero, kernel.result, zero, kernel.result, GetParam());
    dovetail::layout::forRandomCases(6, [&](Random &random) {
      std::vector<Format> arguments, results;
      for (const Index &shape : kernel.arguments)
        arguments.push_back(randomFormat(random, shape));
      for (int i = 0; i < kernel.results; ++i)
        results.push_back(random.chance(50) && i > 0 ? results.front() : randomFormat(random, kernel.result));
      // Parts of loops, in memory that holds as much or more.
      Index lo = zero, hi = kernel.result, heldLo = zero, heldHi = kernel.result, staticLoops;
      for (int64_t loop : kernel.parallel) {
        if (random.chance(50)) {
          if (random.chance(50))
            staticLoops.push_back(loop);
          continue;
        }
        int64_t extent = kernel.result[loop];
        lo[loop] = random.between(0, extent - 1);
        hi[loop] = random.chance(50) ? extent : random.between(lo[loop] + 1, extent);
        heldLo[loop] = random.between(0, lo[loop]);
        heldHi[loop] = random.between(hi[loop], extent);
        for (Format &format : results)
          format.isUnknown[loop] = true;
      }
      std::vector<Piece<float>> got = run(kernel, arguments, results, staticLoops, lo, hi, heldLo, heldHi, GetParam());
      for (int number = 0; number < kernel.results; ++number) {
        Piece<float> &result = got[number];
        std::string where = sourceOf(kernel, arguments, results, staticLoops);
        Piece<float> wanted = result;
        std::fill(wanted.data.begin(), wanted.data.end(), 77);
        Piece<float>::forEachIn(lo, hi, [&](const Index &index) { wanted[index] = expected[number][index]; });
        for (size_t i = 0; i < wanted.data.size(); ++i)
          ASSERT_NEAR(result.data[i], wanted.data[i], 1e-5f * (1 + std::fabs(wanted.data[i])))
              << "result " << number << ", position " << i << "\n"
              << where;
      }
    });
    if (HasFailure())
      return;
  }
}
