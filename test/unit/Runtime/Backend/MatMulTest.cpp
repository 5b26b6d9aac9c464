//===- MatMulTest.cpp - Matrix products over cuts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include <algorithm>
#include <cstdlib>

using namespace dovetail;
using namespace dovetail::test;

namespace {

int64_t draw(std::mt19937_64 &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

struct MatMulCase {
  Shape batchA, batchB; ///< Broadcast against each other.
  int64_t m, n, k;
  bool transposeA, transposeB;

  Shape batch() const {
    Shape result;
    size_t rank = std::max(batchA.size(), batchB.size());
    for (size_t i = 0; i < rank; ++i) {
      int64_t a = i + batchA.size() >= rank ? batchA[i + batchA.size() - rank] : 1;
      int64_t b = i + batchB.size() >= rank ? batchB[i + batchB.size() - rank] : 1;
      result.push_back(std::max(a, b));
    }
    return result;
  }
  static Shape with(Shape shape, int64_t rows, int64_t columns) {
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  }
  Shape shapeA() const { return transposeA ? with(batchA, k, m) : with(batchA, m, k); }
  Shape shapeB() const { return transposeB ? with(batchB, n, k) : with(batchB, k, n); }
  Shape shapeOut() const { return with(batch(), m, n); }
};

/// The element of a broadcast operand at a batch index of the result.
int64_t at(const Shape &shape, const Shape &batch, int64_t row, int64_t column) {
  Shape index;
  size_t own = shape.size() - 2;
  for (size_t i = 0; i < own; ++i)
    index.push_back(shape[i] == 1 ? 0 : batch[batch.size() - own + i]);
  index.push_back(row);
  index.push_back(column);
  return linear(shape, index);
}

std::vector<double> multiply(const MatMulCase &test, const std::vector<float> &a, const std::vector<float> &b) {
  std::vector<double> result;
  forEachIndex(test.shapeOut(), [&](const Shape &index) {
    Shape batch(index.begin(), index.end() - 2);
    int64_t i = index[index.size() - 2], j = index.back();
    double sum = 0;
    for (int64_t k = 0; k < test.k; ++k)
      sum += static_cast<double>(a[test.transposeA ? at(test.shapeA(), batch, k, i) : at(test.shapeA(), batch, i, k)]) *
             b[test.transposeB ? at(test.shapeB(), batch, j, k) : at(test.shapeB(), batch, k, j)];
    result.push_back(sum);
  });
  return result;
}

Order randomOrder(std::mt19937_64 &random, size_t rank) {
  Order order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = i;
  if (draw(random, 0, 1))
    std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// Whether the `rowDims` dimensions before the last of a tensor in packed memory for `held`, in `order`, are one: all
/// addresses of their elements in `part`, in row-major order, at one distance.
bool areRows(const Shape &held, Order order, const Shape &part, int rowDims) {
  int rank = held.size();
  if (order.empty())
    for (int dim = 0; dim < rank; ++dim)
      order.push_back(dim);
  Shape strides(rank);
  int64_t stride = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); stride *= held[*dim++])
    strides[*dim] = stride;
  int first = std::max(0, rank - 1 - rowDims);
  std::vector<int64_t> addresses;
  forEachIndex(Shape(part.begin() + first, part.end() - 1), [&](const Shape &index) {
    int64_t address = 0;
    for (size_t i = 0; i < index.size(); ++i)
      address += index[i] * strides[first + i];
    addresses.push_back(address);
  });
  for (size_t i = 2; i < addresses.size(); ++i)
    if (addresses[i] - addresses[i - 1] != addresses[1] - addresses[0])
      return false;
  return true;
}

double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}

/// With values of `type`; each operation of the plan may round its result.
void check(uint64_t seed, artifact::ElementType type) {
  std::mt19937_64 random(seed);
  MatMulCase test{{},
                  {},
                  draw(random, 1, 9),
                  draw(random, 1, 20),
                  draw(random, 1, 9),
                  draw(random, 0, 1) == 1,
                  draw(random, 0, 1) == 1};
  if (draw(random, 0, 4) == 0)
    test.k = 64, test.n = 33;
  for (int64_t i = draw(random, 0, 2); i > 0; --i) {
    int64_t extent = draw(random, 1, 4);
    test.batchA.push_back(draw(random, 0, 2) ? extent : 1);
    test.batchB.push_back(draw(random, 0, 2) ? extent : 1);
  }
  if (!test.batchB.empty() && draw(random, 0, 2) == 0)
    test.batchB.erase(test.batchB.begin());
  Shape shapeA = test.shapeA(), shapeB = test.shapeB(), shapeOut = test.shapeOut();
  int rank = shapeOut.size(), rankA = shapeA.size(), rankB = shapeB.size();
  std::vector<float> a = rounded(randomFloats(random, volume(shapeA)), type),
                     b = rounded(randomFloats(random, volume(shapeB)), type);

  // Split rows, columns, the sum, or a batch dimension.
  int64_t what = draw(random, 0, 3);
  if (what == 3 && rank == 2)
    what = 0;
  int ranks = draw(random, 1, 3);
  layout::Sharding cutA = sharding(rankA), cutB = sharding(rankB), cutOut = sharding(rank);
  int64_t extent = what == 0 ? test.m : what == 1 ? test.n : what == 2 ? test.k : shapeOut[0];
  auto cut = split(0, randomCuts(random, extent, ranks));
  int dimA = -1, dimB = -1, dimOut = -1;
  if (what == 0)
    dimA = rankA - (test.transposeA ? 1 : 2), dimOut = rank - 2;
  if (what == 1)
    dimB = rankB - (test.transposeB ? 2 : 1), dimOut = rank - 1;
  if (what == 2)
    dimA = rankA - (test.transposeA ? 2 : 1), dimB = rankB - (test.transposeB ? 1 : 2);
  if (what == 3) {
    dimOut = 0;
    if (rankA == rank && shapeA[0] == shapeOut[0])
      dimA = 0;
    if (rankB == rank && shapeB[0] == shapeOut[0])
      dimB = 0;
  }
  // Ranks may compute more than their cuts say, but not of a sum.
  auto part = cut;
  if (what != 2 && draw(random, 0, 1))
    part = withSlack(random, cut.pieces, extent);
  // They may hold more than they need, of a sum, too.
  auto held = [&] { return draw(random, 0, 1) ? part : withSlack(random, part.pieces, extent); };
  if (dimA >= 0)
    cutA.dims[dimA] = held();
  if (dimB >= 0)
    cutB.dims[dimB] = held();
  if (dimOut >= 0)
    cutOut.dims[dimOut] = part;

  PlanBuilder builder({ranks});
  builder.floats = type;
  Order orderA = randomOrder(random, rankA);
  uint32_t left = builder.value(shapeA, cutA, orderA, "a");
  bool constantB = draw(random, 0, 1);
  uint32_t right = constantB ? builder.constantValue(shapeB, cutB, b, randomOrder(random, rankB))
                             : builder.value(shapeB, cutB, randomOrder(random, rankB), "b");
  std::vector<std::vector<float>> inputs = {a};
  builder.input("a", left);
  if (!constantB) {
    builder.input("b", right);
    inputs.push_back(b);
  }
  if (what == 2) {
    cutOut.partialAxes = {0};
    cutOut.partialKind = layout::ReductionKind::Sum;
  }
  Order orderOut = randomOrder(random, rank);
  uint32_t out = builder.value(shapeOut, cutOut, orderOut, "out");
  MatMulStep call;
  call.a = left;
  call.b = right;
  call.output = out;
  call.transpose_a = test.transposeA;
  call.transpose_b = test.transposeB;
  // Batch dimensions that the second operand does not have may be rows, if they are in memory.
  bool followsInMemory = true;
  if (!test.transposeA && draw(random, 0, 1)) {
    auto hasBatch = [&](int dim) { return rankB > dim + 1 && shapeB[rankB - 2 - dim] != 1; };
    while (call.row_dims + 1 < rank && !hasBatch(call.row_dims))
      ++call.row_dims;
    auto extents = [](const layout::Box &box) {
      Shape result;
      for (int dim = 0; dim < box.rank(); ++dim)
        result.push_back(box[dim].size());
      return result;
    };
    layout::Sharding loops = cutOut;
    for (int number = 0; number < ranks && call.row_dims > 1; ++number) {
      Shape computed = extents(loops.boxOf(builder.mesh, shapeOut, number));
      if (volume(computed) == 0)
        continue;
      Shape heldA = extents(cutA.boxOf(builder.mesh, shapeA, number)), readA = heldA;
      for (int dim = 0; dim + 1 < rankA; ++dim)
        readA[dim] = shapeA[dim] == 1 ? 1 : computed[rank - rankA + dim];
      followsInMemory &= areRows(computed, orderOut, computed, call.row_dims);
      // Of nothing that is summed over, no operand is read.
      if (what != 2 || cut.pieces[number].size() > 0)
        followsInMemory &= areRows(heldA, orderA, readA, call.row_dims);
    }
  }
  std::vector<double> expected = multiply(test, a, b);
  double largest = largestOf(expected), roundings = 1;
  if (what == 2) {
    // What the ranks add up may be larger than its sum.
    auto sizes = [](std::vector<float> values) {
      for (float &value : values)
        value = std::abs(value);
      return values;
    };
    largest = largestOf(multiply(test, sizes(a), sizes(b)));
    roundings = 2 * ranks;
  }
  // A bias along the columns, an activation, a residual; after a partial sum there can be none.
  if (what != 2 && draw(random, 0, 1)) {
    std::vector<float> bias = rounded(randomFloats(random, test.n), type),
                       residual = rounded(randomFloats(random, volume(shapeOut)), type);
    largest += 1;
    roundings = 4;
    for (auto kind : {artifact::PostOpKind::AddTensor, artifact::PostOpKind::Gelu, artifact::PostOpKind::MulTensor}) {
      call.post_ops.push_back(std::make_unique<artifact::PostOpT>());
      call.post_ops.back()->kind = kind;
    }
    call.post_ops[0]->tensor = builder.constantValue({test.n}, sharding(1), bias);
    call.post_ops[2]->tensor = builder.constantValue(shapeOut, sharding(rank), residual, randomOrder(random, rank));
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = applyPostOp(*call.post_ops[1], expected[i] + bias[i % test.n], 0) * residual[i];
  }
  builder.library(std::move(call), /*inPrologue=*/false, what == 2 ? cut : layout::DimSharding{});
  if (what == 2) {
    uint32_t total = builder.value(shapeOut, sharding(rank), randomOrder(random, rank), "total");
    builder.exchange(out, total);
    out = total;
  }
  builder.output("out", out);
  auto results = runFloats(builder.program(), inputs, divideCalls(random, builder));
  if (!followsInMemory) {
    EXPECT_EQ(results.status().code(), absl::StatusCode::kDataLoss) << results.status();
    return;
  }
  ASSERT_TRUE(results.ok()) << results.status();
  if (type == artifact::ElementType::F32)
    EXPECT_TRUE(near(expected, (*results)[0]));
  else // A slope of GELU is 1.13 at most; f32 sums are off by little.
    EXPECT_TRUE(near(expected, (*results)[0], 1.2 * roundings * roundingError(type), largest));
}

} // namespace

TEST(MatMul, RandomCases) {
  int cases = 600;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed, artifact::ElementType::F32);
  }
}

TEST(MatMul, RandomCasesOf16Bits) {
  if (halfTypes().empty())
    GTEST_SKIP() << "the libraries have no type of 16 bits here";
  int cases = 300;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  for (artifact::ElementType type : halfTypes())
    for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(std::string(artifact::EnumNameElementType(type)) + ", seed " + std::to_string(seed));
      check(seed, type);
    }
}

/// Devices say what a step adds to their graph, once that is recorded, and what their libraries offer.
TEST(MatMul, StepsAreExplained) {
  PlanBuilder builder({1});
  uint32_t a = builder.value({6, 5}, sharding(2)), b = builder.value({5, 7}, sharding(2)),
           out = builder.value({6, 7}, sharding(2));
  builder.input("a", a);
  builder.input("b", b);
  MatMulStep call;
  call.a = a;
  call.b = b;
  call.output = out;
  builder.library(std::move(call));
  builder.output("out", out);
  runtime::RunnerOptions options;
  options.explain = true;
  options.autotune = std::getenv("DOVETAIL_TEST_AUTOTUNE") != nullptr;
  auto runner = runtime::ProgramRunner::create(builder.program(), options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::vector<float> left(30, 1), right(35, 1), result(42);
  std::vector<runtime::FullTensor> in = {{left.data(), runtime::ElementType::F32, {6, 5}},
                                         {right.data(), runtime::ElementType::F32, {5, 7}}},
                                   all = {{result.data(), runtime::ElementType::F32, {6, 7}}};
  for (int run = 0; run < 2; ++run)
    ASSERT_TRUE((*runner)->run(in, all).ok());
  const runtime::CallReport &report = (*runner)->calls(0)[0];
  bool isCuda = builder.plan.target == "cuda";
  ASSERT_EQ(report.nodes.has_value(), isCuda);
  EXPECT_EQ(report.library.implementation.empty(), !isCuda);
  EXPECT_EQ(report.library.candidates.empty(), !isCuda);
  if (isCuda)
    EXPECT_EQ(report.nodes->kernels, 1);
}
