//===- MoveOpsTest.cpp - Tests of operations that move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares operations that move elements with loops over them, and what they read with what they say they need.
//
//===----------------------------------------------------------------------===//

#include "RandomOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using layout::forRandomCases;
using layout::Random;

static constexpr int numCases = 400;

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// `factors` multiplied together in random runs, empty ones (extents of 1) among them.
static Shape randomGroups(Random &random, ArrayRef<int64_t> factors) {
  std::vector<int64_t> cuts = random.cuts(static_cast<int64_t>(factors.size()), random.below(5) + 1);
  Shape shape;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    int64_t product = 1;
    for (int64_t factor : factors.slice(cuts[i], cuts[i + 1] - cuts[i]))
      product *= factor;
    shape.push_back(product);
  }
  return shape;
}

TEST(MoveOpsTest, Reshape) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape factors = randomShape(random, 5, 1, 3);
    Shape from = randomGroups(random, factors), to = randomGroups(random, factors);
    TestTensor operand = randomTensor(random, from);
    Operation *op = tester.parse("dovetail.reshape {}", {ElementTester::type(from)}, ElementTester::type(to));
    checkMoved(random, tester, op, operand, TestTensor(to, operand.values));
  });
}

/// The relation of a reshape's operand as text, and for each loop whether it may be split.
static std::string describeReshape(ElementTester &tester, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Operation *op = tester.parse("dovetail.reshape {}", {ElementTester::type(from)}, ElementTester::type(to));
  OpRelation relation = cast<DefinitionOpInterface>(op).getRelation();
  std::string text;
  for (const DimRelation &dim : relation.operands.front())
    text += (dim.loop < 0 ? "_" : std::to_string(dim.loop) + ":" + dim.map.str()) + " ";
  text += "|";
  for (const Loop &loop : relation.loops)
    text += loop.kind == LoopKind::Parallel ? " split" : " whole";
  return text;
}

TEST(MoveOpsTest, ReshapeKeepsMajorDimensionsSplit) {
  ElementTester tester;
  auto map = [](layout::DimMap map) { return map.str() + " "; };
  std::string same = map(layout::DimMap::identity());
  // Merging C, H and W: H and W are needed whole, the merged dimension may be split.
  EXPECT_EQ(describeReshape(tester, {2, 6, 4, 5}, {2, 120}),
            "0:" + same + "1:" + map(layout::DimMap::merge(20)) + "_ _ | split split");
  // Splitting channels into groups: the channels of a group stay together.
  EXPECT_EQ(describeReshape(tester, {2, 6, 4}, {2, 3, 2, 4}),
            "0:" + same + "1:" + map(layout::DimMap::split(2)) + "3:" + same + "| split split whole split");
  // Both at once: a group is two channels with all of their rows.
  EXPECT_EQ(describeReshape(tester, {2, 6, 4}, {2, 3, 8}),
            "0:" + same + "1:" + map(layout::DimMap::split(2)) + "_ | split split whole");
  // Where groups do not fall on channels, a channel may be needed by two groups.
  EXPECT_EQ(describeReshape(tester, {4, 3}, {3, 4}),
            "0:" + map(layout::DimMap::affine(4, 3, 0, 3)) + "_ | split whole");
}

//===----------------------------------------------------------------------===//
// Transpose, broadcast
//===----------------------------------------------------------------------===//

TEST(MoveOpsTest, Transpose) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape from = randomShape(random, random.below(5));
    std::vector<int64_t> permutation;
    for (size_t dim = 0; dim < from.size(); ++dim)
      permutation.push_back(static_cast<int64_t>(dim));
    random.shuffle(permutation);
    Shape to;
    for (int64_t dim : permutation)
      to.push_back(from[dim]);
    TestTensor operand = randomTensor(random, from), expected(to);
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      Shape source(from.size());
      for (auto [i, dim] : llvm::enumerate(permutation))
        source[dim] = index[i];
      expected.at(index) = operand.at(source);
    });
    Operation *op =
        tester.parse("dovetail.transpose {permutation = " + array(permutation) + "}", {ElementTester::type(from)});
    checkMoved(random, tester, op, operand, expected);
  });
}

/// `shape` with some dimensions of extent 1 and some leading ones left out.
static Shape randomBroadcastable(Random &random, ArrayRef<int64_t> shape) {
  Shape from(shape.drop_front(random.below(static_cast<int>(shape.size()) + 1)));
  for (int64_t &extent : from)
    if (random.chance(40))
      extent = 1;
  return from;
}

static double broadcastAt(const TestTensor &tensor, ArrayRef<int64_t> index) {
  Shape source(index.take_back(tensor.shape.size()));
  for (auto [coordinate, extent] : llvm::zip_equal(source, tensor.shape))
    if (extent == 1)
      coordinate = 0;
  return tensor.at(source);
}

TEST(MoveOpsTest, Broadcast) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape to = randomShape(random, random.below(5));
    Shape from = randomBroadcastable(random, to);
    TestTensor operand = randomTensor(random, from), expected(to);
    forEachIndex(to, [&](ArrayRef<int64_t> index) { expected.at(index) = broadcastAt(operand, index); });
    Operation *op = tester.parse("dovetail.broadcast {}", {ElementTester::type(from)}, ElementTester::type(to));
    checkMoved(random, tester, op, operand, expected);
  });
}

TEST(MoveOpsTest, ElementwiseOperationsBroadcast) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape to = randomShape(random, random.below(4) + 1);
    SmallVector<TestTensor> operands = {randomTensor(random, to),
                                        randomTensor(random, randomBroadcastable(random, to))};
    if (random.chance(50))
      std::swap(operands[0], operands[1]);
    TestTensor expected(to);
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      expected.at(index) = broadcastAt(operands[0], index) - broadcastAt(operands[1], index);
    });
    Operation *op = tester.parse("dovetail.sub {}",
                                 {ElementTester::type(operands[0].shape), ElementTester::type(operands[1].shape)});
    checkMoved(random, tester, op, operands, expected);
  });
}

//===----------------------------------------------------------------------===//
// Slice, concat
//===----------------------------------------------------------------------===//

TEST(MoveOpsTest, Slice) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape from = randomShape(random, random.below(3) + 1, 1, 9), starts, sizes, steps;
    for (int64_t extent : from) {
      int64_t start = random.between(0, extent - 1), step = random.between(1, 3);
      int64_t room = extent - 1 - start;
      if (random.chance(50)) {
        step = -step;
        room = start;
      }
      starts.push_back(start);
      steps.push_back(step);
      sizes.push_back(random.between(0, room / std::abs(step) + 1));
    }
    TestTensor operand = randomTensor(random, from), expected(sizes);
    forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
      Shape source;
      for (auto [i, start, step] : llvm::zip_equal(index, starts, steps))
        source.push_back(start + i * step);
      expected.at(index) = operand.at(source);
    });
    Operation *op = tester.parse("dovetail.slice {starts = " + array(starts) + ", sizes = " + array(sizes) +
                                     ", steps = " + array(steps) + "}",
                                 {ElementTester::type(from)});
    checkMoved(random, tester, op, operand, expected);
  });
}

TEST(MoveOpsTest, Concat) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape to = randomShape(random, random.below(3) + 1);
    size_t axis = random.below(static_cast<int>(to.size()));
    to[axis] = 0;
    SmallVector<TestTensor> operands;
    std::vector<std::string> types;
    for (int i = 0, count = random.below(4) + 1; i < count; ++i) {
      Shape from = to;
      from[axis] = random.between(0, 4);
      operands.push_back(randomTensor(random, from));
      types.push_back(ElementTester::type(from));
    }
    for (const TestTensor &operand : operands)
      to[axis] += operand.shape[axis];
    TestTensor expected(to);
    int64_t start = 0;
    for (const TestTensor &operand : operands) {
      forEachIndex(operand.shape, [&](ArrayRef<int64_t> index) {
        Shape target(index);
        target[axis] += start;
        expected.at(target) = operand.at(index);
      });
      start += operand.shape[axis];
    }
    Operation *op = tester.parse("dovetail.concat {axis = " + std::to_string(axis) + " : i64}", types);
    checkMoved(random, tester, op, operands, expected);
  });
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

/// The position that padding continues `i` from, step by step: -1 for the constant.
static int64_t walkInside(int64_t i, int64_t extent, StringRef mode) {
  if (mode == "edge")
    return i < 0 ? 0 : std::min(i, extent - 1);
  while (i < 0 || i >= extent) {
    if (mode == "constant")
      return -1;
    if (mode == "wrap")
      i += i < 0 ? extent : -extent;
    else if (extent == 1)
      i = 0;
    else
      i = i < 0 ? -i : 2 * (extent - 1) - i;
  }
  return i;
}

TEST(MoveOpsTest, Pad) {
  ElementTester tester;
  forRandomCases(numCases * 2, [&](Random &random) {
    StringRef modes[] = {"constant", "reflect", "edge", "wrap"};
    StringRef mode = modes[random.below(4)];
    Shape from = randomShape(random, random.below(2) + 1), cropLow, cropHigh, low, high, to;
    for (int64_t extent : from) {
      // Something is left to be continued.
      cropLow.push_back(random.chance(25) ? random.between(0, extent - 1) : 0);
      cropHigh.push_back(random.chance(25) ? random.between(0, extent - 1 - cropLow.back()) : 0);
      low.push_back(cropLow.back() > 0 ? -cropLow.back() : random.between(0, 9));
      high.push_back(cropHigh.back() > 0 ? -cropHigh.back() : random.between(0, 9));
      to.push_back(extent + low.back() + high.back());
    }
    bool hasValue = mode == "constant" && random.chance(50);
    SmallVector<TestTensor> operands = {randomTensor(random, from)};
    std::vector<std::string> types = {ElementTester::type(from)};
    if (hasValue) {
      operands.push_back(TestTensor({}, 7));
      types.push_back("tensor<f32>");
    }
    TestTensor expected(to, hasValue ? 7 : 0);
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      Shape source;
      for (size_t dim = 0; dim < from.size(); ++dim) {
        int64_t left = from[dim] - cropLow[dim] - cropHigh[dim];
        int64_t position = walkInside(index[dim] - std::max<int64_t>(low[dim], 0), left, mode);
        if (position < 0)
          return;
        source.push_back(position + cropLow[dim]);
      }
      expected.at(index) = operands[0].at(source);
    });
    Operation *op = tester.parse("dovetail.pad {low = " + array(low) + ", high = " + array(high) +
                                     ", mode = #dovetail.pad_mode<" + mode.str() + ">}",
                                 types);
    checkMoved(random, tester, op, operands, expected);
  });
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

TEST(MoveOpsTest, Gather) {
  ElementTester tester;
  forRandomCases(numCases, [&](Random &random) {
    Shape from = randomShape(random, random.below(3) + 1);
    size_t axis = random.below(static_cast<int>(from.size()));
    Shape indexShape = randomShape(random, random.below(3), 0, 4);
    TestTensor indices(indexShape);
    // Beyond both ends, too: those read the element at the end.
    for (double &index : indices.values)
      index = static_cast<double>(random.between(-from[axis] - 2, from[axis] + 1));
    Shape to(ArrayRef(from).take_front(axis));
    to.append(indexShape);
    llvm::append_range(to, ArrayRef(from).drop_front(axis + 1));
    TestTensor operand = randomTensor(random, from), expected(to);
    auto getPosition = [&](ArrayRef<int64_t> index) {
      auto position = static_cast<int64_t>(indices.at(index.slice(axis, indexShape.size())));
      return std::clamp<int64_t>(position < 0 ? position + from[axis] : position, 0, from[axis] - 1);
    };
    forEachIndex(to, [&](ArrayRef<int64_t> index) {
      Shape source(index.take_front(axis));
      source.push_back(getPosition(index));
      llvm::append_range(source, index.drop_front(axis + indexShape.size()));
      expected.at(index) = operand.at(source);
    });
    Operation *op = tester.parse("dovetail.gather {axis = " + std::to_string(axis) + " : i64}",
                                 {ElementTester::type(from), ElementTester::type(indexShape, "i64")});
    ASSERT_TRUE(op) << tester.getErrors();
    // With constant indices the relation is exact.
    if (!indices.values.empty() && random.chance(50)) {
      OpBuilder builder(op);
      auto type = cast<RankedTensorType>(op->getOperand(1).getType());
      std::vector<int64_t> values(indices.values.begin(), indices.values.end());
      op->setOperand(1, ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(type, ArrayRef(values))));
      if (indexShape.size() == 1) {
        auto kind = cast<DefinitionOpInterface>(op).getRelation().operands[0][axis].map.getKind();
        EXPECT_EQ(kind, layout::DimMap::Kind::Table);
      }
    }
    // The last loop is the lookup, of which a rank may own a part.
    checkMoved(random, tester, op, {operand, indices}, expected,
               [&](ArrayRef<int64_t> index, const layout::Box &loops) {
                 return loops[to.size()].contains(getPosition(index));
               });
  });
}

TEST(MoveOpsTest, Range) {
  ElementTester tester;
  Operation *op = tester.parse("dovetail.range {start = 5 : i64, step = -3 : i64}", {}, "tensor<7xi64>");
  ASSERT_TRUE(op) << tester.getErrors();
  expectNear(tester.compute(op, {}), TestTensor({7}, {5, 2, -1, -4, -7, -10, -13}), 0);
}
