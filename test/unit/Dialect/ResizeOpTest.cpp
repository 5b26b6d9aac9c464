//===- ResizeOpTest.cpp - Resize against ONNX Runtime -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomOps.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::DimMap;
using layout::forRandomCases;
using layout::Random;

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

static const ResizeCase resizeCases[] = {
#include "ResizeCases.inc"
};

static std::string floats(ArrayRef<double> values) {
  std::string text = "array<f64";
  llvm::raw_string_ostream stream(text);
  for (auto [i, value] : llvm::enumerate(values))
    stream << (i ? ", " : ": ") << llvm::format("%.17e", value);
  return text + ">";
}

static Operation *parseResize(ElementTester &tester, const ResizeCase &resize, StringRef elementType = "f32") {
  return tester.parse(
      "dovetail.resize <{sizes = " + array(resize.sizes) + ", scales = " + floats(resize.scales) +
          ", mode = #dovetail.resize_mode<" + resize.mode + ">, coordinates = #dovetail.coordinate_mode<" +
          resize.coordinates + ">, nearest = #dovetail.nearest_mode<" + resize.nearest +
          ">, roi = " + floats(resize.roi) + ", cubic_coeff_a = " + std::to_string(resize.cubicCoefficient) +
          " : f32, extrapolation_value = 7.5 : f32" + (resize.excludeOutside ? ", exclude_outside" : "") + "}>",
      {ElementTester::type(resize.shape, elementType)});
}

TEST(ResizeTest, MatchesOnnxRuntime) {
  ElementTester tester;
  for (auto [number, resize] : llvm::enumerate(resizeCases)) {
    Operation *op = parseResize(tester, resize);
    ASSERT_TRUE(op) << tester.getErrors();
    SCOPED_TRACE("case " + std::to_string(number) + ": " + debugString(*op));
    TestTensor operand(resize.shape);
    for (auto [i, value] : llvm::enumerate(operand.values))
      value = static_cast<double>(i * 37 % 101) / 4 - 10;
    expectNear(tester.compute(op, operand), TestTensor(resize.sizes, resize.expected),
               resize.mode == "nearest" ? 0 : 1e-5);
  }
}

/// Random operators on random boxes: reads stay inside of what is needed, and all of that is read.
TEST(ResizeTest, ReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(200, [&](Random &random) {
    ResizeCase resize = resizeCases[random.below(std::size(resizeCases))];
    for (auto [dim, extent] : llvm::enumerate(resize.shape)) {
      if (resize.scales[dim] == 1)
        continue;
      extent = random.between(1, 9);
      double &scale = resize.scales[dim];
      if (random.chance(50)) {
        resize.sizes[dim] = random.between(1, 12);
        scale = static_cast<float>(resize.sizes[dim]) / static_cast<float>(extent);
      } else {
        scale = static_cast<float>(static_cast<double>(random.between(10, 300)) / 100);
        resize.sizes[dim] = static_cast<int64_t>(scale * static_cast<double>(extent));
      }
    }
    Operation *op = parseResize(tester, resize);
    ASSERT_TRUE(op) << tester.getErrors();
    SCOPED_TRACE(debugString(*op));
    TestTensor operand = randomTensor(random, resize.shape);
    TestTensor whole = tester.compute(op, operand);
    Box part = randomLoops(random, op);
    TestTensor computed = tester.compute(op, operand, part);
    forEachIndex(part, [&](ArrayRef<int64_t> index) { EXPECT_EQ(computed.at(index), whole.at(index)); });
    expectTight(op, part, tester.getReads());
  });
}

/// The map of the only dimension of a nearest, asymmetric resize with rounding down.
static DimMap getNearestMap(ElementTester &tester, int64_t extent, int64_t size, double scale) {
  Operation *op =
      parseResize(tester, {"nearest", "asymmetric", "floor", {extent}, {size}, {scale}, {}, -0.75, false, {}});
  EXPECT_TRUE(op) << tester.getErrors();
  return cast<ResizeOp>(op).getRelation().operands[0][0].map;
}

TEST(ResizeTest, WholeFactorsAreIntegerMaps) {
  ElementTester tester;
  EXPECT_EQ(getNearestMap(tester, 5, 10, 2), DimMap::merge(2));
  EXPECT_EQ(getNearestMap(tester, 5, 5, 1), DimMap::identity());
  EXPECT_EQ(getNearestMap(tester, 9, 3, 1.0 / 3), DimMap::slice(0, 3));
  EXPECT_EQ(getNearestMap(tester, 4, 6, 1.5), DimMap::table({0, 0, 1, 2, 2, 3}, {0, 0, 1, 2, 2, 3}));
}

TEST(ResizeTest, IntegersAreInterpolatedAndTruncated) {
  ElementTester tester;
  ResizeCase resize{"linear", "align_corners", "floor", {2}, {4}, {2}, {}, -0.75, false, {}};
  Operation *op = parseResize(tester, resize, "ui8");
  ASSERT_TRUE(op) << tester.getErrors();
  // 0, 66.67, 133.33, 200.
  EXPECT_EQ(tester.compute(op, TestTensor(2, {0., 200.})).values, (std::vector<double>{0, 66, 133, 200}));
}
