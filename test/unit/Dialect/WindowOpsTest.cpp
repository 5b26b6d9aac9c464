//===- WindowOpsTest.cpp - Convolutions, pooling and LRN against brute force -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random operators on random boxes: each value against a definition written in another way, and each read inside of the
// box that the relation says is needed.
//
//===----------------------------------------------------------------------===//

#include "RandomOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::forRandomCases;
using layout::Random;

/// The loops of `op`, those of the result cut at random.
static Box randomPart(Random &random, Operation *op) {
  Box part = getLoopBox(op);
  for (int dim = 0; dim < cast<RankedTensorType>(op->getResult(0).getType()).getRank(); ++dim) {
    int64_t a = random.between(0, part[dim].hi), b = random.between(0, part[dim].hi);
    part[dim] = {std::min(a, b), std::max(a, b)};
  }
  return part;
}

/// Random windows over random spatial dimensions.
struct RandomWindows {
  int rank;
  Shape extents, kernel, strides, dilations, low, high;

  RandomWindows(Random &random, int64_t leastPad) : rank(random.below(3) == 0 ? 2 : 1) {
    for (int dim = 0; dim < rank; ++dim) {
      kernel.push_back(random.between(1, 4));
      strides.push_back(random.between(1, 3));
      dilations.push_back(random.between(1, 3));
      low.push_back(random.between(leastPad, 3));
      high.push_back(random.between(leastPad, 3));
      // Large enough for one window.
      int64_t span = (kernel[dim] - 1) * dilations[dim] + 1;
      extents.push_back(std::max<int64_t>(span - low[dim] - high[dim], 1) + random.between(0, 6));
    }
  }
  std::string attributes() const {
    return "strides = " + array(strides) + ", dilations = " + array(dilations) + ", pads_low = " + array(low) +
           ", pads_high = " + array(high);
  }
  Shape shape(int64_t n, int64_t c, ArrayRef<int64_t> spatial) const {
    Shape shape{n, c};
    shape.append(spatial.begin(), spatial.end());
    return shape;
  }
};

/// `tensor` [N, C, spatial...] surrounded by `value`; negative pads crop.
static TestTensor pad(const TestTensor &tensor, ArrayRef<int64_t> low, ArrayRef<int64_t> high, double value) {
  Shape shape(tensor.shape.begin(), tensor.shape.end());
  for (auto [dim, pads] : llvm::enumerate(llvm::zip_equal(low, high)))
    shape[dim + 2] += std::get<0>(pads) + std::get<1>(pads);
  TestTensor padded(shape, value);
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    Shape source(index);
    for (auto [dim, before] : llvm::enumerate(low))
      source[dim + 2] -= before;
    if (tensor.contains(source))
      padded.at(index) = tensor.at(source);
  });
  return padded;
}

/// Computes `op` as a whole and in part.
static void check(Random &random, ElementTester &tester, Operation *op, ArrayRef<TestTensor> operands,
                  TestTensor expected) {
  SCOPED_TRACE(debugString(*op));
  expectNear(tester.compute(op, operands), expected);
  Box part = randomPart(random, op);
  forEachIndex(expected.shape, [&](ArrayRef<int64_t> index) {
    for (auto [dim, coordinate] : llvm::enumerate(index))
      if (!part[static_cast<int>(dim)].contains(coordinate))
        expected.at(index) = std::nan("");
  });
  expectNear(tester.compute(op, operands, part), expected);
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

static TestTensor convolve(const TestTensor &input, const TestTensor &weights, const RandomWindows &windows,
                           int64_t groups, ArrayRef<int64_t> resultShape) {
  TestTensor padded = pad(input, windows.low, windows.high, 0);
  int64_t perGroup = weights.shape[1], outPerGroup = weights.shape[0] / groups;
  TestTensor result(resultShape);
  forEachIndex(resultShape, [&](ArrayRef<int64_t> out) {
    forEachIndex(ArrayRef(weights.shape).drop_front(), [&](ArrayRef<int64_t> tap) {
      Shape source{out[0], out[1] / outPerGroup * perGroup + tap[0]}, weight{out[1]};
      weight.append(tap.begin(), tap.end());
      for (int dim = 0; dim < windows.rank; ++dim)
        source.push_back(out[dim + 2] * windows.strides[dim] + tap[dim + 1] * windows.dilations[dim]);
      result.at(out) += padded.at(source) * weights.at(weight);
    });
  });
  return result;
}

TEST(ConvTest, MatchesBruteForceAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(200, [&](Random &random) {
    RandomWindows windows(random, -1);
    int64_t groups = random.between(1, 3), perGroup = random.between(1, 2), outPerGroup = random.between(1, 2);
    Shape input = windows.shape(random.between(1, 2), groups * perGroup, windows.extents);
    Shape weights = windows.shape(groups * outPerGroup, perGroup, windows.kernel);
    Operation *op =
        tester.parse("dovetail.conv <{" + windows.attributes() + ", groups = " + std::to_string(groups) + " : i64}>",
                     {ElementTester::type(input), ElementTester::type(weights)});
    ASSERT_TRUE(op) << tester.getErrors();
    SmallVector<TestTensor> operands{randomTensor(random, input), randomTensor(random, weights)};
    TestTensor expected = convolve(operands[0], operands[1], windows, groups, cast<ConvOp>(op).getType().getShape());
    check(random, tester, op, operands, expected);
  });
}

TEST(ConvTest, PartsOfTheInputChannelsAddUp) {
  ElementTester tester;
  Operation *op = tester.parse("dovetail.conv <{strides = array<i64: 1>, dilations = array<i64: 1>, "
                               "pads_low = array<i64: 1>, pads_high = array<i64: 1>}>",
                               {"tensor<1x3x4xf32>", "tensor<2x3x3xf32>"});
  ASSERT_TRUE(op) << tester.getErrors();
  EXPECT_EQ(cast<ConvOp>(op).getRelation().loops.back().kind, LoopKind::Reduction);
  Random random(1);
  SmallVector<TestTensor> operands{randomTensor(random, {1, 3, 4}), randomTensor(random, {2, 3, 3})};
  Box first = getLoopBox(op), second = first, none = first;
  first[3] = {0, 1};
  second[3] = {1, 3};
  none[3] = {3, 3};
  TestTensor sum = tester.compute(op, operands, first);
  TestTensor rest = tester.compute(op, operands, second), empty = tester.compute(op, operands, none);
  for (size_t i = 0; i < sum.values.size(); ++i) {
    EXPECT_EQ(empty.values[i], 0);
    sum.values[i] += rest.values[i];
  }
  expectNear(sum, tester.compute(op, operands));
}

TEST(ConvTest, AccumulatesHalfPrecisionInSingle) {
  // 2048 + 1 is not a number in half precision; 2048 + 1 + 1 is.
  ElementTester tester;
  Operation *op = tester.parse("dovetail.conv <{strides = array<i64: 1>, dilations = array<i64: 1>, "
                               "pads_low = array<i64: 0>, pads_high = array<i64: 0>}>",
                               {"tensor<1x3x1xf16>", "tensor<1x3x1xf16>"});
  ASSERT_TRUE(op) << tester.getErrors();
  TestTensor result = tester.compute(op, {TestTensor({1, 3, 1}, {2048., 1., 1.}), TestTensor({1, 3, 1}, 1.)});
  EXPECT_EQ(result.values, std::vector<double>{2050});
}

//===----------------------------------------------------------------------===//
// Transposed convolution
//===----------------------------------------------------------------------===//

/// Each input element adds a weighted window to the result.
static TestTensor scatter(const TestTensor &input, const TestTensor &weights, const RandomWindows &windows,
                          int64_t groups, ArrayRef<int64_t> resultShape) {
  int64_t perGroup = input.shape[1] / groups, outPerGroup = weights.shape[1];
  TestTensor result(resultShape);
  forEachIndex(input.shape, [&](ArrayRef<int64_t> in) {
    forEachIndex(ArrayRef(weights.shape).drop_front(), [&](ArrayRef<int64_t> tap) {
      Shape target{in[0], in[1] / perGroup * outPerGroup + tap[0]}, weight{in[1]};
      weight.append(tap.begin(), tap.end());
      for (int dim = 0; dim < windows.rank; ++dim)
        target.push_back(in[dim + 2] * windows.strides[dim] + tap[dim + 1] * windows.dilations[dim] - windows.low[dim]);
      if (result.contains(target))
        result.at(target) += input.at(in) * weights.at(weight);
    });
  });
  return result;
}

TEST(ConvTransposeTest, MatchesBruteForceAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(100, [&](Random &random) {
    RandomWindows windows(random, -1);
    Shape outputPadding;
    for (int dim = 0; dim < windows.rank; ++dim) {
      outputPadding.push_back(random.between(0, 2));
      windows.extents[dim] = random.between(1, 4);
      windows.low[dim] = std::min<int64_t>(windows.low[dim], windows.kernel[dim] / 2);
      windows.high[dim] = std::min<int64_t>(windows.high[dim], windows.kernel[dim] / 2);
    }
    int64_t groups = random.between(1, 3), perGroup = random.between(1, 2), outPerGroup = random.between(1, 2);
    Shape input = windows.shape(random.between(1, 2), groups * perGroup, windows.extents);
    Shape weights = windows.shape(groups * perGroup, outPerGroup, windows.kernel);
    Operation *op = tester.parse("dovetail.conv_transpose <{" + windows.attributes() + ", output_padding = " +
                                     array(outputPadding) + ", groups = " + std::to_string(groups) + " : i64}>",
                                 {ElementTester::type(input), ElementTester::type(weights)});
    ASSERT_TRUE(op) << tester.getErrors();
    Shape expectedShape = windows.shape(input[0], groups * outPerGroup, {});
    for (int dim = 0; dim < windows.rank; ++dim)
      expectedShape.push_back(windows.strides[dim] * (windows.extents[dim] - 1) + outputPadding[dim] +
                              (windows.kernel[dim] - 1) * windows.dilations[dim] + 1 - windows.low[dim] -
                              windows.high[dim]);
    SmallVector<TestTensor> operands{randomTensor(random, input), randomTensor(random, weights)};
    TestTensor expected = scatter(operands[0], operands[1], windows, groups, expectedShape);
    check(random, tester, op, operands, expected);
  });
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// How many windows there are along one dimension whose pads are smaller than the window.
static int64_t countWindows(const RandomWindows &windows, int dim, bool ceil) {
  int64_t span = (windows.kernel[dim] - 1) * windows.dilations[dim] + 1;
  int64_t padded = windows.low[dim] + windows.extents[dim] + windows.high[dim];
  int64_t count = 0, start = 0;
  for (; start + span <= padded; start += windows.strides[dim])
    ++count;
  // One more that reaches beyond the end, if something is left and it starts inside of the tensor or its leading pad.
  bool isSomethingLeft = count == 0 || start - windows.strides[dim] + span < padded;
  return count + (ceil && isSomethingLeft && start < windows.low[dim] + windows.extents[dim]);
}

TEST(PoolTest, MatchesBruteForceAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(400, [&](Random &random) {
    RandomWindows windows(random, 0);
    for (int dim = 0; dim < windows.rank; ++dim) {
      windows.low[dim] = std::min(windows.low[dim], windows.kernel[dim] - 1);
      windows.high[dim] = std::min(windows.high[dim], windows.kernel[dim] - 1);
      windows.extents[dim] = std::max(windows.extents[dim], (windows.kernel[dim] - 1) * windows.dilations[dim] + 1);
    }
    bool ceil = random.chance(50);
    int64_t p = random.between(1, 3);
    StringRef kind = ArrayRef<StringRef>{"max", "average_include_pad", "average_exclude_pad", "lp"}[random.below(4)];
    Shape input = windows.shape(1, 2, windows.extents);
    Operation *op = tester.parse("dovetail.pool <{kind = #dovetail.pool_kind<" + kind.str() +
                                     ">, kernel = " + array(windows.kernel) + ", " + windows.attributes() +
                                     ", p = " + std::to_string(p) + " : i64" + (ceil ? ", ceil" : "") + "}>",
                                 {ElementTester::type(input)});
    ASSERT_TRUE(op) << tester.getErrors();
    Shape resultShape = windows.shape(1, 2, {});
    for (int dim = 0; dim < windows.rank; ++dim)
      resultShape.push_back(countWindows(windows, dim, ceil));

    TestTensor operand = randomTensor(random, input);
    // Padded by what windows read at most; marks say what lies inside of the tensor, and inside of its pads.
    Shape reach(windows.rank, 16);
    TestTensor inTensor = pad(TestTensor(input, 1), windows.low, reach, 0);
    TestTensor inPads = pad(pad(TestTensor(input, 1), windows.low, windows.high, 1), Shape(windows.rank, 0), reach, 0);
    TestTensor padded = pad(operand, windows.low, reach, 0);
    TestTensor expected(resultShape);
    forEachIndex(resultShape, [&](ArrayRef<int64_t> out) {
      double most = -INFINITY, sum = 0, powers = 0, insideCount = 0, paddedCount = 0;
      forEachIndex(windows.kernel, [&](ArrayRef<int64_t> tap) {
        Shape source{out[0], out[1]};
        for (int dim = 0; dim < windows.rank; ++dim)
          source.push_back(out[dim + 2] * windows.strides[dim] + tap[dim] * windows.dilations[dim]);
        paddedCount += inPads.at(source);
        if (inTensor.at(source) == 0)
          return;
        insideCount += 1;
        most = std::max(most, padded.at(source));
        sum += padded.at(source);
        powers += std::pow(std::abs(padded.at(source)), p);
      });
      expected.at(out) = kind == "max"                   ? most
                         : kind == "average_include_pad" ? sum / paddedCount
                         : kind == "average_exclude_pad" ? sum / insideCount
                                                         : std::pow(powers, 1.0 / p);
    });
    check(random, tester, op, operand, expected);
  });
}

TEST(PoolTest, MaximumOfIntegersMindsTheSign) {
  ElementTester tester;
  StringRef text = "dovetail.pool <{kind = #dovetail.pool_kind<max>, kernel = array<i64: 2>, strides = array<i64: 2>, "
                   "dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>}>";
  Operation *bytes = tester.parse(text, {"tensor<1x1x4xui8>"});
  ASSERT_TRUE(bytes) << tester.getErrors();
  EXPECT_EQ(tester.compute(bytes, TestTensor({1, 1, 4}, {200., 3., 255., 0.})).values, (std::vector<double>{200, 255}));
  Operation *integers = tester.parse(text, {"tensor<1x1x4xi8>"});
  ASSERT_TRUE(integers) << tester.getErrors();
  EXPECT_EQ(tester.compute(integers, TestTensor({1, 1, 4}, {-128., -3., -1., -2.})).values,
            (std::vector<double>{-3, -1}));
}

TEST(PoolTest, MaximumSkipsNaN) {
  ElementTester tester;
  Operation *op = tester.parse("dovetail.pool <{kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, "
                               "strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, "
                               "pads_high = array<i64: 0>}>",
                               {"tensor<1x1x3xf32>"});
  ASSERT_TRUE(op) << tester.getErrors();
  for (int position = 0; position < 3; ++position) {
    TestTensor operand({1, 1, 3}, {1., 1., 1.});
    operand.values[position] = std::nan("");
    EXPECT_EQ(tester.compute(op, operand).values, std::vector<double>{1});
  }
}

//===----------------------------------------------------------------------===//
// Local response normalisation
//===----------------------------------------------------------------------===//

TEST(LrnTest, MatchesTheFormulaAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    int64_t size = random.between(1, 6), channels = random.between(1, 7);
    double beta = random.chance(50) ? 0.75 : 0.5, alpha = 0.25, bias = 1.5;
    Shape shape{1, channels, 2};
    Operation *op =
        tester.parse("dovetail.lrn <{size = " + std::to_string(size) +
                         " : i64, alpha = 0.25 : f32, beta = " + std::to_string(beta) + " : f32, bias = 1.5 : f32}>",
                     {ElementTester::type(shape)});
    ASSERT_TRUE(op) << tester.getErrors();
    TestTensor operand = randomTensor(random, shape), expected(shape);
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      double squares = 0;
      int64_t first = index[1] - static_cast<int64_t>(std::floor((size - 1) / 2.0));
      int64_t last = index[1] + static_cast<int64_t>(std::ceil((size - 1) / 2.0));
      for (int64_t c = std::max<int64_t>(first, 0); c <= std::min(last, channels - 1); ++c)
        squares += operand.at({index[0], c, index[2]}) * operand.at({index[0], c, index[2]});
      expected.at(index) = operand.at(index) / std::pow(bias + alpha / size * squares, beta);
    });
    check(random, tester, op, operand, expected);
  });
}
