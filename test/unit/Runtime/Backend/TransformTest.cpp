//===- TransformTest.cpp - Fourier transforms over cuts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"
#include "../Harness/Reference.h"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <numeric>

using namespace dovetail;
using namespace dovetail::test;

namespace {

int64_t draw(std::mt19937_64 &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

enum class Kind { Complex, FromReal, ToReal };

struct TransformCase {
  Shape lines; ///< Extents, of which that of `axis` is the length.
  size_t axis = 0;
  Kind kind = Kind::Complex;
  bool inverse = false;

  int64_t length() const { return lines[axis]; }
  Shape with(bool isReal, bool isHalf) const {
    Shape shape = lines;
    if (isHalf)
      shape[axis] = length() / 2 + 1;
    shape.push_back(isReal ? 1 : 2);
    return shape;
  }
  Shape input() const { return with(kind == Kind::FromReal, kind == Kind::ToReal); }
  Shape output() const { return with(kind == Kind::ToReal, kind == Kind::FromReal); }
};

/// By the definition.
std::vector<double> transform(const TransformCase &test, const std::vector<float> &x) {
  Shape input = test.input();
  int64_t length = test.length();
  std::vector<double> result;
  forEachIndex(test.output(), [&](const Shape &index) {
    std::complex<double> sum;
    for (int64_t n = 0; n < length; ++n) {
      // The other half of the spectrum of real numbers is that of conjugates.
      bool isMirrored = n >= input[test.axis];
      Shape at = index;
      at[test.axis] = isMirrored ? length - n : n;
      at.back() = 0;
      std::complex<double> value = x[linear(input, at)];
      if (input.back() == 2) {
        at.back() = 1;
        value = {value.real(), (isMirrored ? -1 : 1) * x[linear(input, at)]};
      }
      double angle = 2 * M_PI * static_cast<double>(n * index[test.axis] % length) / static_cast<double>(length);
      sum += value * std::polar(1.0, test.inverse ? angle : -angle);
    }
    result.push_back(index.back() == 0 ? sum.real() : sum.imag());
  });
  return result;
}

Order randomOrder(std::mt19937_64 &random, size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  // Mostly, parts of a number are neighbours.
  if (draw(random, 0, 1))
    std::shuffle(order.begin(), order.end() - draw(random, 0, 3) / 3, random);
  return order;
}

void check(uint64_t seed, artifact::ElementType type) {
  std::mt19937_64 random(seed);
  TransformCase test;
  for (int64_t i = draw(random, 1, 4); i > 0; --i)
    test.lines.push_back(draw(random, 1, 6));
  test.axis = draw(random, 0, static_cast<int64_t>(test.lines.size()) - 1);
  test.lines[test.axis] = draw(random, 1, 20);
  test.kind = static_cast<Kind>(draw(random, 0, 2));
  test.inverse = test.kind == Kind::ToReal || (test.kind == Kind::Complex && draw(random, 0, 1));
  Shape shapeIn = test.input(), shapeOut = test.output();
  size_t rank = shapeIn.size();
  std::vector<float> x = randomFloats(random, volume(shapeIn));
  if (test.kind == Kind::ToReal) {
    size_t number = 0;
    forEachIndex(shapeIn, [&](const Shape &index) {
      int64_t point = index[test.axis];
      if (index.back() == 1 && (point == 0 || 2 * point == test.length()))
        x[number] = 0;
      ++number;
    });
  }

  // Split lines, of which ranks may have more than they transform.
  int ranks = static_cast<int>(draw(random, 1, 3));
  layout::Sharding cutIn = sharding(rank), cutOut = sharding(rank);
  size_t dim = draw(random, 0, static_cast<int64_t>(rank) - 2);
  if (dim != test.axis) {
    layout::DimSharding cut = split(0, randomCuts(random, shapeOut[dim], ranks));
    cutOut.dims[dim] = draw(random, 0, 1) ? cut : withSlack(random, cut.pieces, shapeOut[dim]);
    cutIn.dims[dim] = withSlack(random, cutOut.dims[dim].pieces, shapeIn[dim]);
  }
  PlanBuilder builder = deviceBuilder({ranks});
  builder.floats = type;
  uint32_t in = builder.value(shapeIn, cutIn, randomOrder(random, rank), "in"),
           out = builder.value(shapeOut, cutOut, randomOrder(random, rank), "out");
  builder.input("in", in);
  builder.library(TransformStep{in, out, test.axis, test.inverse});
  // What is read stays as it is.
  uint32_t after = builder.value(shapeIn, cutIn, randomOrder(random, rank), "after");
  artifact::ReorderT copy;
  copy.source = in;
  copy.target = after;
  builder.library(std::move(copy));
  builder.output("out", out);
  builder.output("after", after);
  auto results = runFloats(builder.program(), {x});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(near(transform(test, x), (*results)[0], 1e-6));
  EXPECT_EQ((*results)[1], x);
}

} // namespace

TEST(Transform, RandomCases) {
  int cases = 300;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  for (artifact::ElementType type : {artifact::ElementType::F32, artifact::ElementType::F64})
    for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(std::string(artifact::EnumNameElementType(type)) + ", seed " + std::to_string(seed));
      check(seed, type);
    }
}
