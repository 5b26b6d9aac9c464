//===- KernelTest.cpp - Generated kernels against plain loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace dovetail::test;

namespace {
/// The CPUs that kernels are compiled for: the host, and the oldest supported.
class KernelTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cpus, KernelTest, testing::ValuesIn(runnableCpus({"native", "x86-64-v3", "x86-64-v2"})),
                         [](const auto &info) { return testName(info.param); });

void expectNear(float actual, float expected, const Index &at, float tolerance = 1e-5f) {
  ASSERT_NEAR(actual, expected, tolerance * (1 + std::fabs(expected))) << testing::PrintToString(at);
}
} // namespace

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

TEST_P(KernelTest, ElementwiseWithBroadcastAndFormats) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<2x5x7x9xf32>, %b: tensor<5x1x1xf32>, %c: tensor<2x5x7x9xf32>)
        layouts [<[0, 2, 3, 1], [2, 5, ?, 9]>, <[0, 1, 2], [5, 1, 1]>, <[0, 1, 2, 3], [2, 5, ?, 9]>]
        -> [<[0, 2, 3, 1], [2, 5, ?, 9]>, <[3, 0, 1, 2], [2, 5, ?, 9]>] attributes {static_loops = array<i64: 0, 1, 3>} {
      %0 = dovetail.mul %a, %b : (tensor<2x5x7x9xf32>, tensor<5x1x1xf32>) -> tensor<2x5x7x9xf32>
      %1 = dovetail.add %0, %c : (tensor<2x5x7x9xf32>, tensor<2x5x7x9xf32>) -> tensor<2x5x7x9xf32>
      %2 = dovetail.relu %1 : (tensor<2x5x7x9xf32>) -> tensor<2x5x7x9xf32>
      plan.yield %2, %1 : tensor<2x5x7x9xf32>, tensor<2x5x7x9xf32>
    })mlir",
                        GetParam());
  Piece<float> a({0, 0, 2, 0}, {2, 5, 7, 9}, {0, 2, 3, 1}), c({0, 0, 1, 0}, {2, 5, 6, 9}, {0, 1, 2, 3});
  Piece<float> b({5, 1, 1});
  a.fill(noise);
  b.fill([](const Index &i) { return i[0] - 2.5f; });
  c.fill([](const Index &i) { return 3 * noise(i); });
  Piece<float> y({0, 0, 2, 0}, {2, 5, 6, 9}, {0, 2, 3, 1}), z({0, 0, 3, 0}, {2, 5, 7, 9}, {3, 0, 1, 2});
  // Rows 3 and 4 only: the others must stay as they were.
  Call({0, 2, 0, 5, 3, 5, 0, 9}).with(a).with(b).with(c).with(y).with(z).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    if (i[2] < 3 || i[2] >= 5) {
      ASSERT_EQ(y[i], 77) << testing::PrintToString(i);
      return;
    }
    float sum = a[i] * b[{i[1], 0, 0}] + c[i];
    expectNear(y[i], std::max(sum, 0.0f), i);
    expectNear(z[i], sum, i);
  });
  EXPECT_EQ((z[{0, 0, 5, 0}]), 77);
}

TEST_P(KernelTest, BooleansAndIntegers) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<100xi32>, %b: tensor<100xi1>, %u: tensor<100xui8>)
        layouts [<[0], [100]>, <[0], [100]>, <[0], [100]>] -> [<[0], [100]>, <[0], [100]>] {
      %0 = dovetail.cast %u {to = i32} : (tensor<100xui8>) -> tensor<100xi32>
      %1 = dovetail.less %a, %0 : (tensor<100xi32>, tensor<100xi32>) -> tensor<100xi1>
      %2 = dovetail.and %1, %b : (tensor<100xi1>, tensor<100xi1>) -> tensor<100xi1>
      %3 = dovetail.select %2, %a, %0 : (tensor<100xi1>, tensor<100xi32>, tensor<100xi32>) -> tensor<100xi32>
      plan.yield %2, %3 : tensor<100xi1>, tensor<100xi32>
    })mlir",
                        GetParam());
  Piece<int32_t> a({100}), y({100});
  Piece<uint8_t> b({100}), u({100}), p({100});
  a.fill([](const Index &i) { return static_cast<int32_t>(i[0] * 37 % 300) - 20; });
  u.fill([](const Index &i) { return static_cast<uint8_t>(i[0] * 91); });
  b.fill([](const Index &i) { return i[0] % 3 != 0; });
  Call({0, 100}).with(a).with(b).with(u).with(p).with(y).run(kernels.get("k"));
  for (int64_t i = 0; i < 100; ++i) {
    bool expected = a[{i}] < u[{i}] && b[{i}];
    EXPECT_EQ((p[{i}]), expected) << i;
    EXPECT_EQ((y[{i}]), expected ? a[{i}] : u[{i}]) << i;
  }
}

TEST_P(KernelTest, ConstantsInTheBody) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<4x6xf32>) layouts [<[0, 1], [4, 6]>] -> [<[1, 0], [4, 6]>] {
      %0 = dovetail.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
      %1 = dovetail.constant dense<2.0> : tensor<4x1xf32>
      %2 = dovetail.mul %a, %0 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
      %3 = dovetail.sub %2, %1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
      plan.yield %3 : tensor<4x6xf32>
    })mlir",
                        GetParam());
  Piece<float> a({4, 6}), y({0, 0}, {4, 6}, {1, 0});
  a.fill(noise);
  Call({0, 4, 0, 6}).with(a).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) { expectNear(y[i], a[i] * (i[1] + 1) - 2, i); });
}

/// The bits of a float as bf16, rounded to nearest even, and back.
static uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
static float fromBf16(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST_P(KernelTest, SixteenBitFloats) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @bf16(%a: tensor<200xbf16>, %b: tensor<200xbf16>) layouts [<[0], [200]>, <[0], [200]>] -> [<[0], [200]>, <[0], [200]>] {
      %0 = dovetail.add %a, %b : (tensor<200xbf16>, tensor<200xbf16>) -> tensor<200xbf16>
      %1 = dovetail.exp %a : (tensor<200xbf16>) -> tensor<200xbf16>
      plan.yield %0, %1 : tensor<200xbf16>, tensor<200xbf16>
    }
    plan.kernel @f16(%a: tensor<200xf16>, %b: tensor<200xf16>) layouts [<[0], [200]>, <[0], [200]>] -> [<[0], [200]>, <[0], [200]>] {
      %0 = dovetail.add %a, %b : (tensor<200xf16>, tensor<200xf16>) -> tensor<200xf16>
      %1 = dovetail.exp %a : (tensor<200xf16>) -> tensor<200xf16>
      plan.yield %0, %1 : tensor<200xf16>, tensor<200xf16>
    })mlir",
                        GetParam());
  Piece<uint16_t> a({200}), b({200}), sum({200}), power({200});
  a.fill([](const Index &i) { return toBf16(noise(i)); });
  b.fill([](const Index &i) { return toBf16(noise({i[0], 1})); });
  Call({0, 200}).with(a).with(b).with(sum).with(power).run(kernels.get("bf16"));
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(sum.data[i], toBf16(fromBf16(a.data[i]) + fromBf16(b.data[i]))) << i;
    EXPECT_EQ(power.data[i], toBf16(std::exp(fromBf16(a.data[i])))) << i;
  }
  Piece<_Float16> c({200}), d({200}), halfSum({200}), halfPower({200});
  c.fill([](const Index &i) { return static_cast<_Float16>(noise(i)); });
  d.fill([](const Index &i) { return static_cast<_Float16>(noise({i[0], 1})); });
  Call({0, 200}).with(c).with(d).with(halfSum).with(halfPower).run(kernels.get("f16"));
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(float(halfSum.data[i]), float(_Float16(float(c.data[i]) + float(d.data[i])))) << i;
    EXPECT_EQ(float(halfPower.data[i]), float(_Float16(std::exp(float(c.data[i]))))) << i;
  }
}

TEST_P(KernelTest, DoublesUseTheMathLibrary) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<100xf64>) layouts [<[0], [100]>] -> [<[0], [100]>] {
      %0 = dovetail.softplus %a : (tensor<100xf64>) -> tensor<100xf64>
      %1 = dovetail.erf %0 : (tensor<100xf64>) -> tensor<100xf64>
      plan.yield %1 : tensor<100xf64>
    })mlir",
                        GetParam());
  Piece<double> a({100}), y({100});
  a.fill([](const Index &i) { return 10 * double(noise(i)); });
  Call({0, 100}).with(a).with(y).run(kernels.get("k"));
  for (int64_t i = 0; i < 100; ++i) {
    double x = a.data[i], exact = std::erf(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
    EXPECT_NEAR(y.data[i], exact, 1e-14 * std::fabs(exact)) << i;
  }
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST_P(KernelTest, ReduceInnermost) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<3x5x103xf32>) layouts [<[0, 1, 2], [3, ?, 103]>] -> [<[0, 1, 2], [3, ?, 1]>] {
      %0 = dovetail.mul %a, %a : (tensor<3x5x103xf32>, tensor<3x5x103xf32>) -> tensor<3x5x103xf32>
      %1 = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 2>} : (tensor<3x5x103xf32>) -> tensor<3x5x1xf32>
      %2 = dovetail.sqrt %1 : (tensor<3x5x1xf32>) -> tensor<3x5x1xf32>
      plan.yield %2 : tensor<3x5x1xf32>
    })mlir",
                        GetParam());
  Piece<float> a({0, 2, 0}, {3, 5, 103}, {0, 1, 2}), y({0, 1, 0}, {3, 5, 1}, {0, 1, 2});
  a.fill(noise);
  // The second range is that of the reduction, which this rank executes a part of.
  Call({0, 3, 2, 5, 0, 1, 7, 100}).with(a).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn({0, 2, 0}, {3, 5, 1}, [&](const Index &i) {
    double sum = 0;
    for (int64_t k = 7; k < 100; ++k)
      sum += double(a[{i[0], i[1], k}]) * a[{i[0], i[1], k}];
    expectNear(y[i], std::sqrt(sum), i);
  });
  EXPECT_EQ((y[{0, 1, 0}]), 77);
}

TEST_P(KernelTest, ReduceOuterInChannelsLast) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<2x150x9x11xf32>) layouts [<[0, 2, 3, 1], [2, 150, ?, 11]>] -> [<[0, 2, 3, 1], [2, 150, 1, 1]>, <[0, 2, 3, 1], [2, 150, 1, 1]>]
        attributes {static_loops = array<i64: 0, 1, 5>} {
      %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 2, 3>} : (tensor<2x150x9x11xf32>) -> tensor<2x150x1x1xf32>
      %1 = dovetail.reduce %a {kind = #dovetail.reduce_kind<max>, axes = array<i64: 2, 3>} : (tensor<2x150x9x11xf32>) -> tensor<2x150x1x1xf32>
      plan.yield %0, %1 : tensor<2x150x1x1xf32>, tensor<2x150x1x1xf32>
    })mlir",
                        GetParam());
  Piece<float> a({0, 0, 4, 0}, {2, 150, 9, 11}, {0, 2, 3, 1});
  Piece<float> sums({0, 0, 0, 0}, {2, 150, 1, 1}, {0, 2, 3, 1}), maxima = sums;
  a.fill(noise);
  Call({0, 2, 0, 150, 0, 1, 0, 1, 4, 9, 0, 11, 4, 9, 0, 11}).with(a).with(sums).with(maxima).run(kernels.get("k"));
  Piece<float>::forEachIn(sums.lo, sums.hi, [&](const Index &i) {
    double sum = 0;
    float maximum = -INFINITY;
    for (int64_t h = 4; h < 9; ++h)
      for (int64_t w = 0; w < 11; ++w) {
        sum += a[{i[0], i[1], h, w}];
        maximum = std::max(maximum, a[{i[0], i[1], h, w}]);
      }
    expectNear(sums[i], sum, i);
    ASSERT_EQ(maxima[i], maximum);
  });
}

TEST_P(KernelTest, ReduceLongColumns) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<3x45x2100xf32>) layouts [<[0, 1, 2], [3, ?, ?]>] -> [<[0, 1, 2], [3, 1, ?]>, <[0, 1, 2], [3, 1, ?]>]
        attributes {static_loops = array<i64: 0>} {
      %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<3x45x2100xf32>) -> tensor<3x1x2100xf32>
      %1 = dovetail.reduce %a {kind = #dovetail.reduce_kind<max>, axes = array<i64: 1>} : (tensor<3x45x2100xf32>) -> tensor<3x1x2100xf32>
      plan.yield %0, %1 : tensor<3x1x2100xf32>, tensor<3x1x2100xf32>
    })mlir",
                        GetParam());
  // Several rows of accumulators of which the last one is not whole, and groups of terms with some left over or none.
  for (int64_t last : {5, 9, 12, 21, 44}) {
    Piece<float> a({0, 5, 0}, {3, 45, 2100}, {0, 1, 2});
    Piece<float> sums({0, 0, 2}, {3, 1, 2090}, {0, 1, 2}), maxima = sums;
    a.fill(noise);
    Call({0, 3, 0, 1, 3, 2081, 5, last, 5, last}).with(a).with(sums).with(maxima).run(kernels.get("k"));
    Piece<float>::forEachIn(sums.lo, sums.hi, [&](const Index &i) {
      bool isComputed = i[2] >= 3 && i[2] < 2081;
      double sum = isComputed ? 0 : 77;
      float maximum = isComputed ? -INFINITY : 77;
      for (int64_t h = 5; isComputed && h < last; ++h) {
        sum += a[{i[0], h, i[2]}];
        maximum = std::max(maximum, a[{i[0], h, i[2]}]);
      }
      expectNear(sums[i], sum, i);
      ASSERT_EQ(maxima[i], maximum);
    });
  }
}

TEST_P(KernelTest, EmptyReductionGivesTheInitialValue) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<4x8xf32>) layouts [<[0, 1], [4, ?]>] -> [<[0, 1], [4, 1]>] {
      %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
      plan.yield %0 : tensor<4x1xf32>
    })mlir",
                        GetParam());
  Piece<float> a({0, 3}, {4, 3}, {0, 1}), y({4, 1});
  Call({0, 4, 0, 1, 3, 3}).with(a).with(y).run(kernels.get("k"));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ((y[{i, 0}]), 0.0f);
}

TEST_P(KernelTest, RowSoftmax) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<5x61xf32>) layouts [<[0, 1], [?, 61]>] -> [<[0, 1], [?, 61]>] attributes {static_loops = array<i64: 1, 2, 3>} {
      %max = dovetail.reduce %a {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<5x61xf32>) -> tensor<5x1xf32>
      %shifted = dovetail.sub %a, %max : (tensor<5x61xf32>, tensor<5x1xf32>) -> tensor<5x61xf32>
      %exp = dovetail.exp %shifted : (tensor<5x61xf32>) -> tensor<5x61xf32>
      %sum = dovetail.reduce %exp {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<5x61xf32>) -> tensor<5x1xf32>
      %0 = dovetail.div %exp, %sum : (tensor<5x61xf32>, tensor<5x1xf32>) -> tensor<5x61xf32>
      plan.yield %0 : tensor<5x61xf32>
    }
    plan.kernel @columns(%a: tensor<61x5xf32>) layouts [<[0, 1], [61, ?]>] -> [<[0, 1], [61, ?]>] attributes {static_loops = array<i64: 0, 2, 3>} {
      %max = dovetail.reduce %a {axes = array<i64: 0>, kind = #dovetail.reduce_kind<max>} : (tensor<61x5xf32>) -> tensor<1x5xf32>
      %shifted = dovetail.sub %a, %max : (tensor<61x5xf32>, tensor<1x5xf32>) -> tensor<61x5xf32>
      %exp = dovetail.exp %shifted : (tensor<61x5xf32>) -> tensor<61x5xf32>
      %sum = dovetail.reduce %exp {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<61x5xf32>) -> tensor<1x5xf32>
      %0 = dovetail.div %exp, %sum : (tensor<61x5xf32>, tensor<1x5xf32>) -> tensor<61x5xf32>
      plan.yield %0 : tensor<61x5xf32>
    })mlir",
                        GetParam());
  auto value = [](int64_t row, int64_t i) { return 20 * noise({row, i}); };
  auto expected = [&](int64_t row, int64_t i) {
    double maximum = -1e30, sum = 0;
    for (int64_t k = 0; k < 61; ++k)
      maximum = std::max<double>(maximum, value(row, k));
    for (int64_t k = 0; k < 61; ++k)
      sum += std::exp(value(row, k) - maximum);
    return static_cast<float>(std::exp(value(row, i) - maximum) / sum);
  };
  Piece<float> a({1, 0}, {4, 61}, {0, 1}), y = a;
  a.fill([&](const Index &i) { return value(i[0], i[1]); });
  Call({1, 4, 0, 61, 0, 61, 0, 61}).with(a).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) { expectNear(y[i], expected(i[0], i[1]), i, 2e-6f); });

  Piece<float> b({0, 1}, {61, 4}, {0, 1}), z = b;
  b.fill([&](const Index &i) { return value(i[1], i[0]); });
  Call({0, 61, 1, 4, 0, 61, 0, 61}).with(b).with(z).run(kernels.get("columns"));
  Piece<float>::forEachIn(z.lo, z.hi, [&](const Index &i) { expectNear(z[i], expected(i[1], i[0]), i, 2e-6f); });
}

//===----------------------------------------------------------------------===//
// Windows and contractions
//===----------------------------------------------------------------------===//

TEST_P(KernelTest, PoolWithHalo) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<1x70x17x13xf32>) layouts [<[0, 2, 3, 1], [1, 70, ?, 13]>] -> [<[0, 2, 3, 1], [1, 70, ?, 7]>]
        attributes {static_loops = array<i64: 0, 1, 3>} {
      %0 = dovetail.pool %a {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
          pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x70x17x13xf32>) -> tensor<1x70x9x7xf32>
      plan.yield %0 : tensor<1x70x9x7xf32>
    })mlir",
                        GetParam());
  // Result rows [4, 9) need operand rows [7, 17).
  Piece<float> a({0, 0, 7, 0}, {1, 70, 17, 13}, {0, 2, 3, 1}), y({0, 0, 4, 0}, {1, 70, 9, 7}, {0, 2, 3, 1});
  a.fill(noise);
  Call({0, 1, 0, 70, 4, 9, 0, 7}).with(a).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    float maximum = -INFINITY;
    for (int64_t h = 2 * i[2] - 1; h < 2 * i[2] + 2; ++h)
      for (int64_t w = 2 * i[3] - 1; w < 2 * i[3] + 2; ++w)
        if (h >= 0 && h < 17 && w >= 0 && w < 13)
          maximum = std::max(maximum, a[{0, i[1], h, w}]);
    ASSERT_EQ(y[i], maximum) << testing::PrintToString(i);
  });
}

TEST_P(KernelTest, ConvolutionWithEpilogue) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%x: tensor<1x6x12x9xf32>, %w: tensor<70x6x3x3xf32>, %b: tensor<70x1x1xf32>)
        layouts [<[0, 2, 3, 1], [1, 6, ?, 9]>, <[2, 3, 1, 0], [70, 6, 3, 3]>, <[0, 1, 2], [70, 1, 1]>] -> [<[0, 2, 3, 1], [1, 70, ?, 9]>]
        attributes {static_loops = array<i64: 0, 1, 3, 4>} {
      %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>,
          pads_high = array<i64: 1, 1>} : (tensor<1x6x12x9xf32>, tensor<70x6x3x3xf32>) -> tensor<1x70x12x9xf32>
      %1 = dovetail.add %0, %b : (tensor<1x70x12x9xf32>, tensor<70x1x1xf32>) -> tensor<1x70x12x9xf32>
      %2 = dovetail.relu %1 : (tensor<1x70x12x9xf32>) -> tensor<1x70x12x9xf32>
      plan.yield %2 : tensor<1x70x12x9xf32>
    })mlir",
                        GetParam());
  Piece<float> x({0, 0, 4, 0}, {1, 6, 12, 9}, {0, 2, 3, 1}), y({0, 0, 5, 0}, {1, 70, 12, 9}, {0, 2, 3, 1});
  Piece<float> w({0, 0, 0, 0}, {70, 6, 3, 3}, {2, 3, 1, 0}), b({70, 1, 1});
  x.fill(noise);
  w.fill([](const Index &i) { return noise({i[3], i[2], i[1], i[0]}); });
  b.fill(noise);
  Call({0, 1, 0, 70, 5, 12, 0, 9, 0, 6}).with(x).with(w).with(b).with(y).run(kernels.get("k"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    double sum = b[{i[1], 0, 0}];
    for (int64_t c = 0; c < 6; ++c)
      for (int64_t kh = 0; kh < 3; ++kh)
        for (int64_t kw = 0; kw < 3; ++kw) {
          int64_t h = i[2] + kh - 1, v = i[3] + kw - 1;
          if (h < 12 && v >= 0 && v < 9)
            sum += double(x[{0, c, h, v}]) * w[{i[1], c, kh, kw}];
        }
    expectNear(y[i], std::max(sum, 0.0), i);
  });
}

TEST_P(KernelTest, MatMulBothOrders) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @k(%a: tensor<7x40xf32>, %b: tensor<40x90xf32>) layouts [<[0, 1], [?, 40]>, <[0, 1], [40, 90]>] -> [<[0, 1], [?, 90]>] {
      %0 = dovetail.matmul %a, %b : (tensor<7x40xf32>, tensor<40x90xf32>) -> tensor<7x90xf32>
      plan.yield %0 : tensor<7x90xf32>
    }
    plan.kernel @transposed(%a: tensor<7x40xf32>, %b: tensor<40x90xf32>) layouts [<[0, 1], [?, 40]>, <[1, 0], [40, 90]>] -> [<[0, 1], [?, 90]>] {
      %0 = dovetail.matmul %a, %b : (tensor<7x40xf32>, tensor<40x90xf32>) -> tensor<7x90xf32>
      plan.yield %0 : tensor<7x90xf32>
    })mlir",
                        GetParam());
  Piece<float> a({2, 0}, {7, 40}, {0, 1}), b({40, 90}), bt({0, 0}, {40, 90}, {1, 0});
  a.fill(noise);
  b.fill([](const Index &i) { return noise({i[1], i[0], 3}); });
  bt.fill([&](const Index &i) { return b[i]; });
  Piece<float> y({2, 0}, {7, 90}, {0, 1}), z = y;
  Call({2, 7, 0, 90, 0, 40}).with(a).with(b).with(y).run(kernels.get("k"));
  Call({2, 7, 0, 90, 0, 40}).with(a).with(bt).with(z).run(kernels.get("transposed"));
  Piece<float>::forEachIn(y.lo, y.hi, [&](const Index &i) {
    double sum = 0;
    for (int64_t k = 0; k < 40; ++k)
      sum += double(a[{i[0], k}]) * b[{k, i[1]}];
    expectNear(y[i], sum, i);
    expectNear(z[i], sum, i);
  });
}

TEST_P(KernelTest, MomentsOfUnevenParts) {
  LoadedKernels kernels(R"mlir(
    plan.kernel @rows(%a: tensor<2x70x9x11xf32>) layouts [<[0, 2, 3, 1], [2, 70, ?, 11]>] -> [<[0, 1, 2, 3], [2, 70, 1, 1]>, <[0, 1, 2, 3], [2, 70, 1, 1]>, <[0, 1, 2, 3], [2, 70, 1, 1]>]
        attributes {static_loops = array<i64: 0, 1, 2, 3, 5>} {
      %0:3 = dovetail.moments %a {axes = array<i64: 2, 3>}
          : (tensor<2x70x9x11xf32>) -> (tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>)
      plan.yield %0#0, %0#1, %0#2 : tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>
    }
    plan.kernel @planes(%a: tensor<2x70x9x11xf32>) layouts [<[0, 1, 2, 3], [2, 70, ?, 11]>] -> [<[0, 1, 2, 3], [2, 70, 1, 1]>, <[0, 1, 2, 3], [2, 70, 1, 1]>, <[0, 1, 2, 3], [2, 70, 1, 1]>]
        attributes {static_loops = array<i64: 0, 1, 2, 3, 5>} {
      %0:3 = dovetail.moments %a {axes = array<i64: 2, 3>}
          : (tensor<2x70x9x11xf32>) -> (tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>)
      plan.yield %0#0, %0#1, %0#2 : tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>, tensor<2x70x1x1xf32>
    })mlir",
                        GetParam());
  for (const char *name : {"rows", "planes"}) {
    Index order = name[0] == 'r' ? Index{0, 2, 3, 1} : Index{0, 1, 2, 3};
    Piece<float> a({0, 0, 4, 0}, {2, 70, 9, 11}, order), counts({2, 70, 1, 1}), means = counts, squares = counts;
    Piece<float> none = counts, noMean = counts, noSquares = counts;
    a.fill([](const Index &i) { return 1000 + noise(i); });
    Call({0, 2, 0, 70, 0, 1, 0, 1, 4, 9, 0, 11}).with(a).with(counts).with(means).with(squares).run(kernels.get(name));
    Call({0, 2, 0, 70, 0, 1, 0, 1, 4, 4, 0, 11}).with(a).with(none).with(noMean).with(noSquares).run(kernels.get(name));
    Piece<float>::forEachIn({0, 0}, {2, 70}, [&](const Index &i) {
      double mean = 0, deviations = 0;
      auto forEachElement = [&](auto body) {
        Piece<float>::forEachIn({4, 0}, {9, 11}, [&](const Index &j) { body(a[{i[0], i[1], j[0], j[1]}]); });
      };
      forEachElement([&](double x) { mean += x / 55; });
      forEachElement([&](double x) { deviations += (x - mean) * (x - mean); });
      Index at{i[0], i[1], 0, 0};
      EXPECT_EQ(counts[at], 55);
      expectNear(means[at], mean, i, 1e-6f);
      expectNear(squares[at], deviations, i, 1e-4f);
      for (Piece<float> *each : {&none, &noMean, &noSquares})
        EXPECT_EQ((*each)[at], 0);
    });
  }
}

TEST_P(KernelTest, LongChainsOfSharedValues) {
  // Each value is used twice by the next one: 2^40 paths lead to the argument.
  std::string source = "plan.kernel @k(%v0: tensor<3x33xf32>) layouts [<[0, 1], [?, 33]>] -> [<[0, 1], [?, 1]>] {\n";
  for (int i = 0; i < 40; ++i) {
    std::string from = "%v" + std::to_string(i), to = "%v" + std::to_string(i + 1);
    source += to + (i % 2 ? " = dovetail.sub " : " = dovetail.max ") + from + ", " + from +
              " : (tensor<3x33xf32>, tensor<3x33xf32>) -> tensor<3x33xf32>\n";
    if (i % 2)
      source += to + "a = dovetail.add " + to + ", %v0 : (tensor<3x33xf32>, tensor<3x33xf32>) -> tensor<3x33xf32>\n";
  }
  source += R"mlir(
    %r = dovetail.reduce %v40a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<3x33xf32>) -> tensor<3x1xf32>
    plan.yield %r : tensor<3x1xf32> })mlir";
  LoadedKernels kernels(source, GetParam());
  Piece<float> a({3, 33}), y({3, 1});
  a.fill(noise);
  Call({0, 3, 0, 1, 0, 33}).with(a).with(y).run(kernels.get("k"));
  for (int64_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 33; ++k)
      sum += a[{i, k}];
    expectNear(y[{i, 0}], sum, {i});
  }
}
