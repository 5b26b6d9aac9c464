//===- EndFormTest.cpp - Tests of where loops end -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EndForm.h"

#include "gmock/gmock.h"

#include <random>

using namespace dovetail;

namespace {

using Lengths = std::vector<int64_t>;

int64_t divideDown(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }
int64_t roundUp(int64_t a, int64_t step) { return -divideDown(-a, step) * step; }

int64_t evaluate(const EndForm &form, const Lengths &lengths) {
  int64_t sum = form.added;
  for (size_t i = 0; i < form.factors.size(); ++i)
    sum += form.factors[i] * lengths[i];
  int64_t value = divideDown(sum, form.divisor);
  return form.least ? std::max(*form.least, value) : value;
}

/// As the runtime does.
int64_t evaluate(const End &end, const Lengths &lengths) {
  return roundUp(std::max<int64_t>(evaluate(end.getForm(), lengths), 0), end.getStep()) + end.getBeyond();
}

class Random {
public:
  explicit Random(uint64_t seed) : random(seed) {}

  int64_t draw(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }

  EndForm form() {
    EndForm form = EndForm::constant(draw(-6, 6));
    form.divisor = draw(1, 4);
    for (int64_t count = draw(0, 2); count > 0; --count)
      form.factors.push_back(draw(0, 4));
    if (draw(0, 1))
      form.least = draw(-3, 3);
    // As those that have been simplified.
    while (!form.factors.empty() && form.factors.back() == 0)
      form.factors.pop_back();
    return form;
  }
  End end() { return End::at(form(), draw(1, 6), draw(0, 3)); }
  Lengths lengths() { return {draw(0, 20), draw(0, 20)}; }

private:
  std::mt19937_64 random;
};

constexpr int numCases = 20000;

} // namespace

TEST(EndForm, BoundsWhatNumbersBecome) {
  for (int seed = 0; seed < numCases; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EndForm a = random.form(), b = random.form();
    Lengths lengths = random.lengths();
    int64_t x = evaluate(a, lengths), y = evaluate(b, lengths), number = random.draw(-5, 5), factor = random.draw(0, 5),
            divisor = random.draw(1, 5);
    ASSERT_GE(evaluate(*EndForm::add(a, b), lengths), x + y);
    ASSERT_GE(evaluate(*EndForm::join(a, b), lengths), std::max(x, y));
    ASSERT_EQ(evaluate(*a.plus(number), lengths), x + number);
    ASSERT_GE(evaluate(*a.times(factor), lengths), factor * x);
    ASSERT_EQ(evaluate(*a.dividedBy(divisor), lengths), divideDown(x, divisor));
    if (EndForm::isBelow(a, b))
      ASSERT_LE(x, y);
  }
}

TEST(EndForm, BoundsWhatIsRead) {
  for (int seed = 0; seed < numCases; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    End a = random.end(), b = random.end();
    Lengths lengths = random.lengths();
    int64_t end = evaluate(a, lengths), other = evaluate(b, lengths), grid = random.draw(1, 6);
    ASSERT_GE(evaluate(End::join(a, b), lengths), std::max(end, other));
    ASSERT_GE(evaluate(*a.getPlain(), lengths), end);
    End rounded = a.roundedUp(grid);
    ASSERT_GE(evaluate(rounded, lengths), end);
    ASSERT_EQ(evaluate(rounded, lengths) % grid, 0);
    // A select by a count reads up to one of the two.
    ASSERT_GE(evaluate(End::meet(a, b.getForm()), lengths), std::min(end, evaluate(b.getForm(), lengths)));
    int64_t factor = random.draw(1, 3), last = random.draw(-4, 4), divisor = random.draw(1, 3), need = 0;
    for (int64_t i = 0; i < end; ++i)
      need = std::max(need, divideDown(factor * i + last, divisor) + 1);
    End read = a.read(factor, last, divisor);
    ASSERT_TRUE(read.hasForm());
    ASSERT_GE(evaluate(read, lengths), need);
    // It is no more where nothing is rounded.
    if (a.getStep() == 1 && end > 0 && factor == 1 && divisor == 1)
      ASSERT_EQ(evaluate(read, lengths), need);
    int64_t extent = random.draw(2, 30);
    if (a.within(extent).isAll())
      ASSERT_GE(end, extent);
  }
}

/// A convolution of 3 elements behind another one, in steps of 8, needs an element more, and not another step.
TEST(EndForm, StepsDoNotAddUp) {
  End end = End::at(EndForm::length(0)).roundedUp(8);
  for (int layer = 1; layer < 5; ++layer) {
    end = end.read(/*factor=*/1, /*last=*/1, /*divisor=*/1);
    EXPECT_EQ(evaluate(end, {16}), 16 + layer);
  }
  End pooled = End::at(EndForm::length(0).dividedBy(2)).roundedUp(4).read(/*factor=*/2, /*last=*/1, /*divisor=*/1);
  for (int64_t length : {0, 6, 8, 10, 16, 18})
    EXPECT_EQ(evaluate(pooled, {length}), roundUp(length / 2, 4) * 2);
}
