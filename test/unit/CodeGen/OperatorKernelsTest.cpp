//===- OperatorKernelsTest.cpp - Kernels of windows, norms and resize against plain loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tests of the dialect fold element definitions at constant coordinates; these run them as loops. Where a rank
// holds a part of an operand, it is exactly what it needs.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace dovetail::test;

namespace {
/// The CPUs that kernels are compiled for: the host, and the oldest supported.
class OperatorKernelsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cpus, OperatorKernelsTest, testing::ValuesIn(runnableCpus({"native", "x86-64-v2"})),
                         [](const auto &info) { return testName(info.param); });

void expectNear(float actual, double expected, const Index &at, float tolerance = 1e-5f) {
  ASSERT_NEAR(actual, expected, tolerance * (1 + std::fabs(expected))) << testing::PrintToString(at);
}
} // namespace

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

TEST_P(OperatorKernelsTest, GroupedDilatedConvolution) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<1x4x20x9xf32>, %w: tensor<6x2x4x2xf32>)
        layouts [<[0, 1, 2, 3], [1, 4, ?, 9]>, <[0, 1, 2, 3], [6, 2, 4, 2]>] -> [<[0, 1, 2, 3], [1, 6, ?, 5]>] {
      %0 = dovetail.conv %x, %w {strides = array<i64: 1, 2>, dilations = array<i64: 2, 1>, pads_low = array<i64: 3, 1>,
          pads_high = array<i64: 2, 0>, groups = 2 : i64} : (tensor<1x4x20x9xf32>, tensor<6x2x4x2xf32>) -> tensor<1x6x19x5xf32>
      plan.yield %0 : tensor<1x6x19x5xf32>
    })mlir",
                        GetParam());
  // Result rows [10, 19) need operand rows [7, 23) of which [7, 20) are there.
  Piece<float> x({0, 0, 7, 0}, {1, 4, 20, 9}, {0, 1, 2, 3}), w({6, 2, 4, 2}),
      y({0, 0, 10, 0}, {1, 6, 19, 5}, {0, 1, 2, 3});
  x.fill(noise);
  w.fill(noise);
  Call({0, 1, 0, 6, 10, 19, 0, 5, 0, 2}).with(x).with(w).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    double sum = 0;
    Piece<float>::forEachIn({0, 0, 0}, {2, 4, 2}, [&](const Index &t) {
      int64_t h = i[2] - 3 + 2 * t[1], v = 2 * i[3] - 1 + t[2];
      if (h >= 0 && h < 20 && v >= 0 && v < 9)
        sum += double(x[{0, i[1] / 3 * 2 + t[0], h, v}]) * w[{i[1], t[0], t[1], t[2]}];
    });
    expectNear(y[i], sum, i);
  });
}

TEST_P(OperatorKernelsTest, TransposedConvolution) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<1x4x9x5xf32>, %w: tensor<4x3x4x2xf32>)
        layouts [<[0, 2, 3, 1], [1, 4, ?, 5]>, <[0, 1, 2, 3], [4, 3, 4, 2]>] -> [<[0, 2, 3, 1], [1, 6, ?, 10]>] {
      %0 = dovetail.conv_transpose %x, %w {strides = array<i64: 3, 2>, dilations = array<i64: 2, 1>, pads_low = array<i64: 1, 0>,
          pads_high = array<i64: 2, 1>, output_padding = array<i64: 1, 1>, groups = 2 : i64}
          : (tensor<1x4x9x5xf32>, tensor<4x3x4x2xf32>) -> tensor<1x6x29x10xf32>
      plan.yield %0 : tensor<1x6x29x10xf32>
    })mlir",
                        GetParam());
  // Row r of the operand reaches the result at 3r - 1 + 2t, t < 4: rows [11, 29) need [2, 9).
  Piece<float> x({0, 0, 2, 0}, {1, 4, 9, 5}, {0, 2, 3, 1}), w({4, 3, 4, 2});
  Piece<float> y({0, 0, 11, 0}, {1, 6, 29, 10}, {0, 2, 3, 1}), expected = y;
  x.fill(noise);
  w.fill(noise);
  expected.fill([](const Index &) { return 0.0f; });
  Piece<float>::forEachIn(x.lo, x.hi, [&](const Index &i) {
    Piece<float>::forEachIn({0, 0, 0}, {3, 4, 2}, [&](const Index &t) {
      Index at{0, i[1] / 2 * 3 + t[0], 3 * i[2] - 1 + 2 * t[1], 2 * i[3] + t[2]};
      if (at[2] >= 11 && at[2] < 29 && at[3] < 10)
        expected[at] += x[i] * w[{i[1], t[0], t[1], t[2]}];
    });
  });
  Call({0, 1, 0, 6, 11, 29, 0, 10, 0, 2}).with(x).with(w).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) { expectNear(y[i], expected[i], i); });
}

TEST_P(OperatorKernelsTest, AveragesAndNorms) {
  std::string source;
  for (const char *kind : {"average_include_pad", "average_exclude_pad", "lp"})
    source += std::string("plan.kernel @") + kind + R"mlir((%x: tensor<1x2x12x8xf32>)
        layouts [<[0, 2, 3, 1], [1, 2, ?, 8]>] -> [<[0, 2, 3, 1], [1, 2, ?, 5]>] {
      %0 = dovetail.pool %x {kind = #dovetail.pool_kind<)mlir" +
              kind + R"mlir(>, kernel = array<i64: 3, 4>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
          pads_low = array<i64: 1, 2>, pads_high = array<i64: 0, 1>, ceil, p = 3 : i64} : (tensor<1x2x12x8xf32>) -> tensor<1x2x6x5xf32>
      plan.yield %0 : tensor<1x2x6x5xf32>
    }
)mlir";
  LoadedKernels kernels(source, GetParam());
  // Result rows [2, 6) need operand rows [3, 12).
  Piece<float> x({0, 0, 3, 0}, {1, 2, 12, 8}, {0, 2, 3, 1});
  Piece<float> included({0, 0, 2, 0}, {1, 2, 6, 5}, {0, 2, 3, 1}), excluded = included, norms = included;
  x.fill(noise);
  Index loops{0, 1, 0, 2, 2, 6, 0, 5};
  Call(loops).with(x).with(included).run(kernels.get("average_include_pad"));
  Call(loops).with(x).with(excluded).run(kernels.get("average_exclude_pad"));
  Call(loops).with(x).with(norms).run(kernels.get("lp"));
  Piece<float>::forEachIn(included.lo, included.hi, [&](const Index &i) {
    double sum = 0, powers = 0;
    int inside = 0, padded = 0;
    for (int64_t h = 2 * i[2] - 1; h < 2 * i[2] + 2; ++h)
      for (int64_t w = 2 * i[3] - 2; w < 2 * i[3] + 2; ++w) {
        padded += h < 12 && w < 8 + 1;
        if (h < 0 || h >= 12 || w < 0 || w >= 8)
          continue;
        ++inside;
        double value = x[{0, i[1], h, w}];
        sum += value;
        powers += std::pow(std::fabs(value), 3);
      }
    expectNear(included[i], sum / padded, i);
    expectNear(excluded[i], sum / inside, i);
    expectNear(norms[i], std::cbrt(powers), i);
  });
}

TEST_P(OperatorKernelsTest, LocalResponse) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<1x40x3xf32>) layouts [<[0, 2, 1], [1, ?, 3]>] -> [<[0, 2, 1], [1, ?, 3]>] {
      %0 = dovetail.lrn %x {size = 4 : i64, alpha = 0.5 : f32, beta = 0.75 : f32, bias = 2.0 : f32} : (tensor<1x40x3xf32>) -> tensor<1x40x3xf32>
      plan.yield %0 : tensor<1x40x3xf32>
    })mlir",
                        GetParam());
  // Channels [20, 40) need [19, 40).
  Piece<float> x({0, 19, 0}, {1, 40, 3}, {0, 2, 1}), y({0, 20, 0}, {1, 40, 3}, {0, 2, 1});
  x.fill(noise);
  Call({0, 1, 20, 40, 0, 3}).with(x).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    double squares = 0;
    for (int64_t c = i[1] - 1; c < std::min<int64_t>(i[1] + 3, 40); ++c)
      squares += double(x[{0, c, i[2]}]) * x[{0, c, i[2]}];
    expectNear(y[i], x[i] / std::pow(2 + 0.5 / 4 * squares, 0.75), i);
  });
}

//===----------------------------------------------------------------------===//
// Statistics and norms
//===----------------------------------------------------------------------===//

TEST_P(OperatorKernelsTest, MomentsOfAPart) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<2x30x41xf32>) layouts [<[0, 1, 2], [2, ?, 41]>]
        -> [<[0, 1, 2], [2, 1, 1]>, <[0, 1, 2], [2, 1, 1]>, <[0, 1, 2], [2, 1, 1]>] {
      %0:3 = dovetail.moments %x {axes = array<i64: 1, 2>}
          : (tensor<2x30x41xf32>) -> (tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>)
      plan.yield %0#0, %0#1, %0#2 : tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<2x1x1xf32>
    })mlir",
                        GetParam());
  Piece<float> x({0, 11, 0}, {2, 30, 41}, {0, 1, 2}), counts({2, 1, 1}), means = counts, squares = counts;
  x.fill([](const Index &i) { return 1000 + noise(i); });
  Call({0, 2, 0, 1, 0, 1, 11, 30, 0, 41}).with(x).with(counts).with(means).with(squares).run(kernels.get("k"));
  for (int64_t n = 0; n < 2; ++n) {
    double sum = 0, deviations = 0, count = 19 * 41;
    Piece<float>::forEachIn({n, 11, 0}, {n + 1, 30, 41}, [&](const Index &i) { sum += x[i]; });
    Piece<float>::forEachIn({n, 11, 0}, {n + 1, 30, 41},
                            [&](const Index &i) { deviations += (x[i] - sum / count) * (x[i] - sum / count); });
    EXPECT_EQ((counts[{n, 0, 0}]), count);
    expectNear(means[{n, 0, 0}], sum / count, {n, 1}, 1e-6f);
    expectNear(squares[{n, 0, 0}], deviations, {n, 2}, 1e-4f);
  }
  // A rank without elements.
  Call({0, 2, 0, 1, 0, 1, 30, 30, 0, 41}).with(x).with(counts).with(means).with(squares).run(kernels.get("k"));
  for (int64_t n = 0; n < 2; ++n)
    for (Piece<float> *each : {&counts, &means, &squares})
      EXPECT_EQ(((*each)[{n, 0, 0}]), 0);
}

TEST_P(OperatorKernelsTest, MomentsOfLargeNumbers) {
  // More terms than one block has; the square of a number is beyond f32.
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<1x200x300xf32>) layouts [<[0, 1, 2], [1, 200, 300]>]
        -> [<[0, 1, 2], [1, 1, 1]>, <[0, 1, 2], [1, 1, 1]>, <[0, 1, 2], [1, 1, 1]>] {
      %0:3 = dovetail.moments %x {axes = array<i64: 1, 2>}
          : (tensor<1x200x300xf32>) -> (tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>)
      plan.yield %0#0, %0#1, %0#2 : tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>
    })mlir",
                        GetParam());
  Piece<float> x({1, 200, 300}), counts({1, 1, 1}), means = counts, squares = counts;
  x.fill([](const Index &i) { return 1e20f + 1e16f * noise(i); });
  Call({0, 1, 0, 1, 0, 1, 0, 200, 0, 300}).with(x).with(counts).with(means).with(squares).run(kernels.get("k"));
  double sum = 0, deviations = 0, count = 60000;
  Piece<float>::forEachIn({0, 0, 0}, {1, 200, 300}, [&](const Index &i) { sum += x[i]; });
  Piece<float>::forEachIn({0, 0, 0}, {1, 200, 300},
                          [&](const Index &i) { deviations += (x[i] - sum / count) * (x[i] - sum / count); });
  EXPECT_EQ((counts[{0, 0, 0}]), count);
  EXPECT_NEAR((means[{0, 0, 0}]), sum / count, 1e-5 * sum / count);
  EXPECT_NEAR((squares[{0, 0, 0}]), deviations, 2e-2 * deviations);
}

TEST_P(OperatorKernelsTest, MomentsWithWhatTheyNormalise) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<2x6x5x7xf32>, %b: tensor<7xf32>)
        layouts [<[0, 1, 2, 3], [?, 6, 5, 7]>, <[0], [7]>] -> [<[0, 1, 2, 3], [?, 6, 5, 7]>] {
      %count, %mean, %squares = dovetail.moments %x {axes = array<i64: 2, 3>}
          : (tensor<2x6x5x7xf32>) -> (tensor<2x6x1x1xf32>, tensor<2x6x1x1xf32>, tensor<2x6x1x1xf32>)
      %variance = dovetail.div %squares, %count : (tensor<2x6x1x1xf32>, tensor<2x6x1x1xf32>) -> tensor<2x6x1x1xf32>
      %epsilon = dovetail.constant dense<0.01> : tensor<f32>
      %sum = dovetail.add %variance, %epsilon : (tensor<2x6x1x1xf32>, tensor<f32>) -> tensor<2x6x1x1xf32>
      %factor = dovetail.rsqrt %sum : (tensor<2x6x1x1xf32>) -> tensor<2x6x1x1xf32>
      %shifted = dovetail.sub %x, %mean : (tensor<2x6x5x7xf32>, tensor<2x6x1x1xf32>) -> tensor<2x6x5x7xf32>
      %scaled = dovetail.mul %shifted, %factor : (tensor<2x6x5x7xf32>, tensor<2x6x1x1xf32>) -> tensor<2x6x5x7xf32>
      %y = dovetail.add %scaled, %b : (tensor<2x6x5x7xf32>, tensor<7xf32>) -> tensor<2x6x5x7xf32>
      plan.yield %y : tensor<2x6x5x7xf32>
    })mlir",
                        GetParam());
  Piece<float> c({7}), x({1, 0, 0, 0}, {2, 6, 5, 7}, {0, 1, 2, 3}), y = x;
  c.fill([](const Index &i) { return 0.5f * i[0]; });
  x.fill([](const Index &i) { return 30 + noise(i); });
  Call({1, 2, 0, 6, 0, 5, 0, 7, 0, 5, 0, 7}).with(x).with(c).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &at) {
    double sum = 0, deviations = 0;
    Index lo{at[0], at[1], 0, 0}, hi{at[0] + 1, at[1] + 1, 5, 7};
    Piece<float>::forEachIn(lo, hi, [&](const Index &i) { sum += x[i]; });
    Piece<float>::forEachIn(lo, hi, [&](const Index &i) { deviations += std::pow(x[i] - sum / 35, 2); });
    double value = (x[at] - sum / 35) / std::sqrt(deviations / 35 + 0.01);
    expectNear(y[at], value + c[{at[3]}], at, 1e-4f);
  });
}

TEST_P(OperatorKernelsTest, PartsOfADimension) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @sums(%x: tensor<3x50xf32>) layouts [<[0, 1], [3, ?]>] -> [<[0, 1], [3, ?]>] {
      %0 = dovetail.reduce_parts %x {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>, restarts = array<i64: 7, 8, 30>}
          : (tensor<3x50xf32>) -> tensor<3x4xf32>
      plan.yield %0 : tensor<3x4xf32>
    }
    plan.kernel @moments(%x: tensor<3x50xf32>) layouts [<[1, 0], [3, ?]>]
        -> [<[1, 0], [3, ?]>, <[1, 0], [3, ?]>, <[1, 0], [3, ?]>] {
      %0:3 = dovetail.moments %x {axes = array<i64: 1>, restarts = [array<i64: 7, 8, 30>]}
          : (tensor<3x50xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
      plan.yield %0#0, %0#1, %0#2 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
    })mlir",
                        GetParam());
  const int64_t ends[] = {0, 7, 8, 30, 50};
  // A rank with the second and third part, and what they consist of.
  Piece<float> x({0, 7}, {3, 30}, {0, 1}), columns({0, 7}, {3, 30}, {1, 0}), y({0, 1}, {3, 3}, {0, 1});
  Piece<float> counts({0, 1}, {3, 3}, {1, 0}), means = counts, squares = counts;
  x.fill(noise);
  columns.fill(noise);
  Call({0, 3, 1, 3, 0, 50}).with(x).with(y).run(kernels.get("sums"));
  Call({0, 3, 1, 3, 0, 50}).with(columns).with(counts).with(means).with(squares).run(kernels.get("moments"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &at) {
    int64_t lo = ends[at[1]], hi = ends[at[1] + 1];
    double sum = 0, deviations = 0, count = static_cast<double>(hi - lo);
    for (int64_t i = lo; i < hi; ++i)
      sum += x[{at[0], i}];
    for (int64_t i = lo; i < hi; ++i)
      deviations += std::pow(x[{at[0], i}] - sum / count, 2);
    expectNear(y[at], sum, at, 1e-5f);
    EXPECT_EQ(counts[at], count);
    expectNear(means[at], sum / count, at, 1e-6f);
    expectNear(squares[at], deviations, at, 1e-4f);
  });
}

//===----------------------------------------------------------------------===//
// Resize
//===----------------------------------------------------------------------===//

namespace {
struct ResizeCase {
  std::string mode, coordinates, nearest;
  std::vector<int64_t> shape, sizes;
  std::vector<double> scales, roi;
  double cubicCoefficient;
  bool excludeOutside;
  std::vector<double> expected;
};
} // namespace

/// What ONNX Runtime computes; see the dialect's test of resize.
static const std::vector<ResizeCase> resizeCases = {
#include "../Dialect/ResizeCases.inc"
};

static std::string list(const std::vector<int64_t> &values, const char *separator = ", ") {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : separator) + std::to_string(value);
  return text;
}

static std::string floats(const std::vector<double> &values) {
  std::string text;
  for (double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%.17e", value);
    text += (text.empty() ? ": " : ", ") + std::string(number);
  }
  return "array<f64" + text + ">";
}

TEST_P(OperatorKernelsTest, ResizeMatchesOnnxRuntime) {
  std::string source;
  for (size_t number = 0; number < resizeCases.size(); ++number) {
    const ResizeCase &resize = resizeCases[number];
    std::vector<int64_t> order;
    std::string extents;
    for (size_t dim = 0; dim < resize.shape.size(); ++dim) {
      order.push_back(static_cast<int64_t>(dim));
      extents += dim ? ", ?" : "?";
    }
    std::string operandType = "tensor<" + list(resize.shape, "x") + "xf32>";
    std::string resultType = "tensor<" + list(resize.sizes, "x") + "xf32>";
    std::string layout = "<[" + list(order) + "], [" + extents + "]>";
    source += "plan.kernel @k" + std::to_string(number) + "(%x: " + operandType + ") layouts [" + layout + "] -> [" +
              layout + "] {\n  %0 = dovetail.resize %x {sizes = array<i64: " + list(resize.sizes) +
              ">, scales = " + floats(resize.scales) + ", mode = #dovetail.resize_mode<" + resize.mode +
              ">, coordinates = #dovetail.coordinate_mode<" + resize.coordinates +
              ">, nearest = #dovetail.nearest_mode<" + resize.nearest + ">, roi = " + floats(resize.roi) +
              ", cubic_coeff_a = " + std::to_string(resize.cubicCoefficient) +
              " : f32, extrapolation_value = 7.5 : f32" + (resize.excludeOutside ? ", exclude_outside" : "") + "} : (" +
              operandType + ") -> " + resultType + "\n  plan.yield %0 : " + resultType + "\n}\n";
  }
  LoadedKernels kernels(source, GetParam());
  for (size_t number = 0; number < resizeCases.size(); ++number) {
    const ResizeCase &resize = resizeCases[number];
    SCOPED_TRACE("case " + std::to_string(number));
    Piece<float> x(resize.shape), y(resize.sizes);
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = static_cast<float>(i * 37 % 101) / 4 - 10;
    Index loops;
    for (int64_t extent : resize.sizes)
      loops.insert(loops.end(), {0, extent});
    Call(loops).with(x).with(y).run(kernels.get(("k" + std::to_string(number)).c_str()));
    ASSERT_EQ(y.data.size(), resize.expected.size());
    for (size_t i = 0; i < y.data.size(); ++i)
      if (resize.mode == "nearest")
        ASSERT_EQ(y.data[i], resize.expected[i]) << "element number " << i;
      else
        ASSERT_NEAR(y.data[i], resize.expected[i], 2e-4) << "element number " << i;
  }
}
