//===- ReductionOpsTest.cpp - Matrix products, reductions and norms against brute force -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomOps.h"

#include "dovetail/Transforms/Passes.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::forRandomCases;
using layout::Random;

/// Numbers small enough for their exponentials.
static TestTensor smallTensor(Random &random, ArrayRef<int64_t> shape, double offset = 0) {
  TestTensor tensor(shape);
  for (double &value : tensor.values)
    value = offset + static_cast<double>(random.between(-40, 40)) / 8;
  return tensor;
}

/// Calls `visit` with all indices of `shape` that agree with `index` in all dimensions but `axes`.
static void forEachAlong(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes, ArrayRef<int64_t> index,
                         function_ref<void(ArrayRef<int64_t>)> visit) {
  Box box = Box::ofShape({shape.data(), shape.size()});
  for (auto [dim, coordinate] : llvm::enumerate(index))
    if (!llvm::is_contained(axes, static_cast<int64_t>(dim)))
      box[static_cast<int>(dim)] = {coordinate, coordinate + 1};
  forEachIndex(box, visit);
}

static Shape randomAxes(Random &random, int rank) {
  Shape axes;
  for (int dim = 0; dim < rank; ++dim)
    if (random.chance(50))
      axes.push_back(dim);
  return axes;
}

//===----------------------------------------------------------------------===//
// Matrix product
//===----------------------------------------------------------------------===//

TEST(MatMulTest, MatchesBruteForceAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(200, [&](Random &random) {
    // Batches of either operand may be missing or have extent 1.
    Shape batch = randomShape(random, random.below(3), 1, 3);
    int64_t m = random.between(1, 4), n = random.between(1, 4), k = random.between(0, 4);
    auto randomBatch = [&] {
      Shape part(ArrayRef(batch).drop_front(random.between(0, batch.size())));
      for (int64_t &extent : part)
        extent = random.chance(30) ? 1 : extent;
      return part;
    };
    Shape lhs = randomBatch(), rhs = randomBatch();
    Shape resultShape;
    for (size_t i = 0; i < std::max(lhs.size(), rhs.size()); ++i) {
      auto extentOf = [&](const Shape &shape) {
        size_t missing = std::max(lhs.size(), rhs.size()) - shape.size();
        return i < missing ? 1 : shape[i - missing];
      };
      resultShape.push_back(std::max(extentOf(lhs), extentOf(rhs)));
    }
    lhs.append({m, k});
    rhs.append({k, n});
    resultShape.append({m, n});
    Operation *op = tester.parse("dovetail.matmul ", {ElementTester::type(lhs), ElementTester::type(rhs)});
    ASSERT_TRUE(op) << tester.getErrors();
    SCOPED_TRACE(debugString(*op));
    SmallVector<TestTensor> operands{smallTensor(random, lhs), smallTensor(random, rhs)};

    /// The terms of the product for k in a box of loops.
    auto multiply = [&](const Box &loops) {
      TestTensor result(resultShape, std::nan(""));
      int rank = resultShape.size();
      forEachIndex(Box(std::vector<layout::Interval>(loops.begin(), loops.begin() + rank)),
                   [&](ArrayRef<int64_t> index) {
                     double sum = 0;
                     for (int64_t i = loops[rank].lo; i < loops[rank].hi; ++i) {
                       auto at = [&](const TestTensor &tensor, int64_t row, int64_t column) {
                         Shape source(index.take_back(tensor.shape.size()));
                         for (auto [coordinate, extent] : llvm::zip(source, tensor.shape))
                           coordinate = extent == 1 ? 0 : coordinate;
                         source[source.size() - 2] = row;
                         source[source.size() - 1] = column;
                         return tensor.at(source);
                       };
                       sum += at(operands[0], index[rank - 2], i) * at(operands[1], i, index[rank - 1]);
                     }
                     result.at(index) = sum;
                   });
      return result;
    };
    expectNear(tester.compute(op, operands), multiply(getLoopBox(op)));
    Box part = randomLoops(random, op);
    expectNear(tester.compute(op, operands, part), multiply(part));
    expectTight(op, part, tester.getReads());
  });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST(ReduceTest, MatchesBruteForceAndReadsWhatItNeeds) {
  ElementTester tester;
  forRandomCases(300, [&](Random &random) {
    int rank = static_cast<int>(random.between(0, 3));
    Shape shape = randomShape(random, rank, 0, 4), axes = randomAxes(random, rank), resultShape = shape;
    for (int64_t axis : axes)
      resultShape[axis] = 1;
    StringRef kind = ArrayRef<StringRef>{"sum", "prod", "max", "min"}[random.below(4)];
    Operation *op =
        tester.parse("dovetail.reduce <{kind = #dovetail.reduce_kind<" + kind.str() + ">, axes = " + array(axes) + "}>",
                     {ElementTester::type(shape)});
    ASSERT_TRUE(op) << tester.getErrors();
    SCOPED_TRACE(debugString(*op));
    TestTensor operand = smallTensor(random, shape);
    auto reduce = [&](const Box &loops) {
      TestTensor result(resultShape, std::nan(""));
      forEachIndex(Box(std::vector<layout::Interval>(loops.begin(), loops.begin() + rank)),
                   [&](ArrayRef<int64_t> index) {
                     double value = kind == "sum" ? 0 : kind == "prod" ? 1 : kind == "max" ? -INFINITY : INFINITY;
                     forEachAlong(shape, axes, index, [&](ArrayRef<int64_t> source) {
                       for (auto [i, axis] : llvm::enumerate(axes))
                         if (!loops[rank + static_cast<int>(i)].contains(source[axis]))
                           return;
                       double x = operand.at(source);
                       value = kind == "sum"    ? value + x
                               : kind == "prod" ? value * x
                               : kind == "max"  ? std::max(value, x)
                                                : std::min(value, x);
                     });
                     result.at(index) = value;
                   });
      return result;
    };
    expectNear(tester.compute(op, operand), reduce(getLoopBox(op)));
    Box part = randomLoops(random, op);
    expectNear(tester.compute(op, operand, part), reduce(part));
    expectTight(op, part, tester.getReads());
  });
}

TEST(ReduceTest, IntegersKeepTheirTypeAndSign) {
  ElementTester tester;
  auto reduce = [&](StringRef kind, StringRef type, std::vector<double> values) {
    Operation *op =
        tester.parse("dovetail.reduce <{kind = #dovetail.reduce_kind<" + kind.str() + ">, axes = array<i64: 0>}>",
                     {ElementTester::type(static_cast<int64_t>(values.size()), type)});
    EXPECT_TRUE(op) << tester.getErrors();
    return op ? tester.compute(op, TestTensor(static_cast<int64_t>(values.size()), values)).values.front() : 0;
  };
  EXPECT_EQ(reduce("max", "ui8", {200, 100}), 200);
  EXPECT_EQ(reduce("max", "i8", {-56, 100}), 100);
  EXPECT_EQ(reduce("min", "ui8", {200, 100}), 100);
  EXPECT_EQ(reduce("max", "i8", {}), -128);
  EXPECT_EQ(reduce("min", "ui8", {}), 255);
  EXPECT_EQ(reduce("sum", "i32", {2147483647, -7}), 2147483640);
  EXPECT_EQ(reduce("prod", "i64", {3037000499, 3037000499}), 9223372030926249001.);
  EXPECT_EQ(reduce("max", "i1", {0, 1}), 1);
  EXPECT_EQ(reduce("min", "i1", {0, 1}), 0);
  EXPECT_EQ(reduce("max", "i1", {}), 0);
}

/// Count, mean and sum of squared deviations.
static std::array<double, 3> momentsOf(const std::vector<double> &numbers) {
  double sum = 0, deviations = 0, count = static_cast<double>(numbers.size());
  for (double x : numbers)
    sum += x;
  double mean = numbers.empty() ? 0 : sum / count;
  for (double x : numbers)
    deviations += (x - mean) * (x - mean);
  return {count, mean, deviations};
}

TEST(MomentsTest, CountsAndDeviationsOfWhatARankReduces) {
  ElementTester tester;
  forRandomCases(100, [&](Random &random) {
    int rank = static_cast<int>(random.between(1, 3));
    Shape shape = randomShape(random, rank, 1, 4), axes = randomAxes(random, rank);
    Operation *op = tester.parse("dovetail.moments <{axes = " + array(axes) + "}>", {ElementTester::type(shape)});
    ASSERT_TRUE(op) << tester.getErrors();
    SCOPED_TRACE(debugString(*op));
    TestTensor operand = smallTensor(random, shape, 100);
    Box loops = randomLoops(random, op);
    for (unsigned number = 0; number < 3; ++number) {
      TestTensor expected(cast<RankedTensorType>(op->getResult(number).getType()).getShape(), std::nan(""));
      Box elements(std::vector<layout::Interval>(loops.begin(), loops.begin() + rank));
      forEachIndex(elements, [&](ArrayRef<int64_t> index) {
        std::vector<double> part;
        forEachAlong(shape, axes, index, [&](ArrayRef<int64_t> source) {
          for (auto [i, axis] : llvm::enumerate(axes))
            if (!loops[rank + static_cast<int>(i)].contains(source[axis]))
              return;
          part.push_back(operand.at(source));
        });
        expected.at(index) = momentsOf(part)[number];
      });
      expectNear(tester.compute(op, operand, loops, number), expected);
    }
  });
}

TEST(MomentsTest, PartsCombineToTheWhole) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    int rank = static_cast<int>(random.between(1, 3));
    Shape shape = randomShape(random, rank, 1, 7), axes = randomAxes(random, rank), divided;
    std::string restarts;
    for (int64_t axis : axes) {
      Shape positions;
      for (int64_t position = 1; position < shape[axis]; ++position)
        if (random.between(0, 2) == 0)
          positions.push_back(position);
      if (!positions.empty())
        divided.push_back(axis);
      restarts += (restarts.empty() ? "" : ", ") + array(positions);
    }
    Operation *parts = tester.parse("dovetail.moments <{axes = " + array(axes) + ", restarts = [" + restarts + "]}>",
                                    {ElementTester::type(shape)});
    ASSERT_TRUE(parts) << tester.getErrors();
    SCOPED_TRACE(debugString(*parts));
    TestTensor operand = smallTensor(random, shape, 100);
    std::vector<TestTensor> moments;
    for (unsigned number = 0; number < 3; ++number)
      moments.push_back(tester.compute(parts, operand, number));
    std::string type = ElementTester::type(cast<RankedTensorType>(parts->getResult(0).getType()).getShape());
    Operation *whole = tester.parse("dovetail.moments <{axes = " + array(divided) + "}>", {type, type, type});
    ASSERT_TRUE(whole) << tester.getErrors();
    for (unsigned number = 0; number < 3; ++number) {
      TestTensor expected(cast<RankedTensorType>(whole->getResult(number).getType()).getShape(), std::nan(""));
      forEachIndex(Box::ofShape(expected.shape), [&](ArrayRef<int64_t> index) {
        std::vector<double> all;
        forEachAlong(shape, axes, index, [&](ArrayRef<int64_t> source) { all.push_back(operand.at(source)); });
        expected.at(index) = momentsOf(all)[number];
      });
      expectNear(tester.compute(whole, moments, number), expected, 1e-5);
    }
  });
}

TEST(MomentsTest, HalfPrecisionGivesMomentsInSingle) {
  ElementTester tester;
  Operation *op = tester.parse("dovetail.moments <{axes = array<i64: 0>}>", {"tensor<2xf16>"});
  ASSERT_TRUE(op) << tester.getErrors();
  const double expected[] = {2, 0, 720000};
  for (unsigned number = 0; number < 3; ++number)
    EXPECT_EQ(tester.compute(op, TestTensor(2, {-600., 600.}), number).values, std::vector<double>{expected[number]});
}

//===----------------------------------------------------------------------===//
// Other folds that only the operation can combine
//===----------------------------------------------------------------------===//

/// The results of `text` ("dovetail.op <{...") of `operand`, taken in parts of `axis` and then combined; the whole of
/// them at once if there is no place to divide it.
static std::vector<TestTensor> computeInParts(ElementTester &tester, Random &random, const std::string &text,
                                              const TestTensor &operand, int64_t axis,
                                              const std::string &elementType = "f32") {
  Shape restarts;
  for (int64_t position = 1; position < operand.shape[axis]; ++position)
    if (random.between(0, 2) == 0)
      restarts.push_back(position);
  std::string axes = (text.back() == '{' ? "axes = " : ", axes = ") + array(axis);
  Operation *parts = tester.parse(text + axes + ", restarts = [" + array(restarts) + "]}>",
                                  {ElementTester::type(operand.shape, elementType)});
  EXPECT_TRUE(parts) << tester.getErrors();
  std::vector<TestTensor> results;
  std::vector<std::string> types;
  for (OpResult result : parts->getResults()) {
    results.push_back(tester.compute(parts, operand, result.getResultNumber()));
    llvm::raw_string_ostream(types.emplace_back()) << result.getType();
  }
  if (restarts.empty())
    return results;
  Operation *whole = tester.parse(text + axes + "}>", types);
  EXPECT_TRUE(whole) << tester.getErrors();
  std::vector<TestTensor> combined;
  for (unsigned number = 0; number < results.size(); ++number)
    combined.push_back(tester.compute(whole, results, number));
  return combined;
}

TEST(SumExpTest, PartsCombineToTheWhole) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    Shape shape = randomShape(random, static_cast<int>(random.between(1, 3)), 1, 6);
    int64_t axis = random.below(static_cast<int>(shape.size()));
    // Exponentials of these numbers overflow in f32 unless the maximum is taken off.
    TestTensor operand = smallTensor(random, shape, 120);
    for (double &value : operand.values)
      if (random.chance(20))
        value = -std::numeric_limits<double>::infinity();
    std::vector<TestTensor> results = computeInParts(tester, random, "dovetail.sum_exp <{", operand, axis);
    forEachIndex(results[0].shape, [&](ArrayRef<int64_t> index) {
      // Of nothing but minus infinity the maximum is finite, so that exponentials of differences are numbers.
      double most = std::numeric_limits<float>::lowest(), sum = 0;
      forEachAlong(shape, axis, index, [&](ArrayRef<int64_t> at) { most = std::max(most, operand.at(at)); });
      forEachAlong(shape, axis, index, [&](ArrayRef<int64_t> at) { sum += std::exp(operand.at(at) - most); });
      EXPECT_EQ(results[0].at(index), most);
      // Minus infinity adds nothing, whatever else there is: alone it comes to zero.
      EXPECT_NEAR(results[1].at(index), sum, 1e-5 * sum);
    });
  });
}

TEST(ArgReduceTest, PartsCombineToTheWhole) {
  ElementTester tester;
  forRandomCases(120, [&](Random &random) {
    Shape shape = randomShape(random, static_cast<int>(random.between(1, 3)), 1, 7);
    int64_t axis = random.below(static_cast<int>(shape.size()));
    bool isMax = random.chance(50), last = random.chance(50);
    const std::string types[] = {"f32", "f32", "f16", "i32", "i1", "ui8"};
    std::string type = types[random.below(6)];
    bool isFloat = type[0] == 'f', isUnsigned = type == "i1" || type == "ui8";
    // Few different numbers, so that there are equals.
    TestTensor operand(shape);
    for (double &value : operand.values)
      value = isFloat && random.chance(8) ? std::nan("")
              : type == "i1"              ? static_cast<double>(random.between(0, 1))
              : isUnsigned                ? 127 + static_cast<double>(random.between(-1, 2))
                                          : static_cast<double>(random.between(-2, 2));
    std::string text = std::string("dovetail.arg_reduce <{kind = #dovetail.reduce_kind<") + (isMax ? "max" : "min") +
                       ">" + (last ? ", last" : "");
    std::vector<TestTensor> results = computeInParts(tester, random, text, operand, axis, type);
    forEachIndex(results[0].shape, [&](ArrayRef<int64_t> index) {
      double best = 0;
      int64_t position = -1;
      forEachAlong(shape, axis, index, [&](ArrayRef<int64_t> at) {
        double value = operand.at(at);
        bool isBetter = !std::isnan(best) && (std::isnan(value) || (isMax ? value > best : value < best));
        bool isSame = value == best || (std::isnan(value) && std::isnan(best));
        if (position < 0 || isBetter || (isSame && last)) {
          best = value;
          position = at[axis];
        }
      });
      EXPECT_EQ(results[1].at(index), static_cast<double>(position));
      EXPECT_TRUE(results[0].at(index) == best || (std::isnan(best) && std::isnan(results[0].at(index))));
    });
  });
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Computes a norm by what it is expanded to.
static void checkNorm(ElementTester &tester, Operation *op, ArrayRef<TestTensor> operands, const TestTensor &expected,
                      double tolerance) {
  ASSERT_TRUE(op) << tester.getErrors();
  SCOPED_TRACE(debugString(*op));
  expectNear(tester.computeAfter(createExpandNorms(), op, operands), expected, tolerance);
}

TEST(SoftmaxTest, MatchesTheFormula) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    Shape shape = randomShape(random, static_cast<int>(random.between(1, 3)));
    int64_t axis = random.below(static_cast<int>(shape.size()));
    bool log = random.chance(50);
    Operation *op =
        tester.parse("dovetail.softmax <{axis = " + std::to_string(axis) + " : i64" + (log ? ", log" : "") + "}>",
                     {ElementTester::type(shape)});
    // Exponentials of these numbers overflow in f32 unless the maximum is taken off.
    TestTensor operand = smallTensor(random, shape, 120), expected(shape);
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      double sum = 0;
      forEachAlong(shape, axis, index,
                   [&](ArrayRef<int64_t> source) { sum += std::exp(operand.at(source) - operand.at(index)); });
      expected.at(index) = log ? -std::log(sum) : 1 / sum;
    });
    checkNorm(tester, op, operand, expected, 1e-5);
  });
}

/// The mean of numbers around 1000 has a rounding error of 3e-5, which deviations may magnify.
static constexpr double normTolerance = 1e-3;

/// (x - mean) / sqrt(variance + epsilon) over the elements that `forEachPeer` visits.
static double normalise(const TestTensor &operand, ArrayRef<int64_t> index, double epsilon,
                        function_ref<void(function_ref<void(ArrayRef<int64_t>)>)> forEachPeer) {
  double count = 0, sum = 0, deviations = 0;
  forEachPeer([&](ArrayRef<int64_t> peer) {
    count += 1;
    sum += operand.at(peer);
  });
  double mean = sum / count;
  forEachPeer([&](ArrayRef<int64_t> peer) { deviations += (operand.at(peer) - mean) * (operand.at(peer) - mean); });
  return (operand.at(index) - mean) / std::sqrt(deviations / count + epsilon);
}

/// `operandSegmentSizes` and the rest of the properties of a norm.
static std::string normProperties(bool hasScale, bool hasBias, const std::string &rest) {
  return "<{operandSegmentSizes = array<i32: 1, " + std::string(hasScale ? "1" : "0") + ", " + (hasBias ? "1" : "0") +
         ">, epsilon = 0.001 : f32, " + rest + "}>";
}

TEST(LayerNormTest, MatchesTheFormula) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    Shape shape = randomShape(random, static_cast<int>(random.between(1, 3)));
    int64_t axis = random.below(static_cast<int>(shape.size()));
    bool hasScale = random.chance(60), hasBias = random.chance(60);
    Shape normalised(ArrayRef(shape).drop_front(axis));
    std::vector<std::string> types{ElementTester::type(shape)};
    // A mean much larger than the deviations, which a variance from squares would lose.
    SmallVector<TestTensor> operands{smallTensor(random, shape, 1000)};
    for (bool present : {hasScale, hasBias}) {
      if (!present)
        continue;
      types.push_back(ElementTester::type(normalised));
      operands.push_back(smallTensor(random, normalised));
    }
    Operation *op = tester.parse(
        "dovetail.layer_norm " + normProperties(hasScale, hasBias, "axis = " + std::to_string(axis) + " : i64"), types);
    Shape axes = llvm::to_vector(llvm::seq<int64_t>(axis, shape.size()));
    TestTensor expected(shape);
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      double value = normalise(operands[0], index, 0.001, [&](auto visit) { forEachAlong(shape, axes, index, visit); });
      if (hasScale)
        value *= operands[1].at(index.drop_front(axis));
      if (hasBias)
        value += operands.back().at(index.drop_front(axis));
      expected.at(index) = value;
    });
    checkNorm(tester, op, operands, expected, normTolerance);
  });
}

TEST(GroupNormTest, MatchesTheFormula) {
  ElementTester tester;
  forRandomCases(60, [&](Random &random) {
    int64_t groups = random.between(1, 3), perGroup = random.between(1, 3), channels = groups * perGroup;
    Shape shape{random.between(1, 2), channels};
    for (int64_t extent : randomShape(random, static_cast<int>(random.between(0, 2)), 1, 3))
      shape.push_back(extent);
    bool hasScale = random.chance(60), hasBias = random.chance(60);
    std::vector<std::string> types{ElementTester::type(shape)};
    SmallVector<TestTensor> operands{smallTensor(random, shape, 1000)};
    for (bool present : {hasScale, hasBias}) {
      if (!present)
        continue;
      types.push_back(ElementTester::type(channels));
      operands.push_back(smallTensor(random, channels));
    }
    Operation *op = tester.parse("dovetail.group_norm " +
                                     normProperties(hasScale, hasBias, "groups = " + std::to_string(groups) + " : i64"),
                                 types);
    Shape spatial = llvm::to_vector(llvm::seq<int64_t>(2, shape.size()));
    TestTensor expected(shape);
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      double value = normalise(operands[0], index, 0.001, [&](auto visit) {
        Shape peer(index);
        for (int64_t channel = 0; channel < channels; ++channel) {
          peer[1] = channel;
          if (channel / perGroup == index[1] / perGroup)
            forEachAlong(shape, spatial, peer, visit);
        }
      });
      if (hasScale)
        value *= operands[1].at(index[1]);
      if (hasBias)
        value += operands.back().at(index[1]);
      expected.at(index) = value;
    });
    checkNorm(tester, op, operands, expected, normTolerance);
  });
}
