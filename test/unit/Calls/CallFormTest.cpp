//===- CallFormTest.cpp - What libraries take of accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/CallForm.h"

#include "../Layout/Random.h"

using namespace dovetail::calls;
using namespace dovetail::layout;

namespace {

using Access = std::vector<AccessDim>;

AccessDim loop(int number) { return IndexExpr::loop(number); }
const AccessDim zero = IndexExpr(0);

/// A convolution written down by hand: what it means is in the comments of the forms.
struct Convolution {
  int64_t groups = 1, outPerGroup = 1, inPerGroup = 1;
  std::vector<Window> windows;
  Access input, weights;
  std::vector<int64_t> loops;

  explicit Convolution(Random &random) {
    groups = random.chance(50) ? 1 : random.between(2, 4);
    outPerGroup = random.between(1, 4);
    inPerGroup = random.between(1, 4);
    bool isTransposed = random.chance(50);
    int spatial = static_cast<int>(random.between(1, 3)), rank = spatial + 2;
    IndexExpr out = IndexExpr::loop(1), in = IndexExpr::loop(rank);
    AccessDim read = groups == 1 ? in : out.floorDiv(outPerGroup) * inPerGroup + in;
    input = {loop(0), read};
    if (isTransposed)
      weights = {read, groups == 1 ? out : out.mod(outPerGroup)};
    else
      weights = {out, in};
    loops = {2, groups * outPerGroup};
    for (int i = 0; i < spatial; ++i)
      loops.push_back(random.between(1, 9));
    loops.push_back(inPerGroup);
    for (int i = 0; i < spatial; ++i) {
      windows.push_back(
          {random.between(1, 4), random.between(1, 3), random.between(1, 3), random.between(0, 3), isTransposed});
      input.push_back(windows[i].at(IndexExpr::loop(2 + i), IndexExpr::loop(rank + 1 + i)));
      weights.push_back(loop(rank + 1 + i));
      loops.push_back(windows[i].kernel);
    }
  }
};

} // namespace

TEST(CallForm, FindsConvolutions) {
  forRandomCases(3000, [](Random &random) {
    Convolution given(random);
    auto form = ConvolutionForm::find(given.input, given.weights, given.loops);
    ASSERT_TRUE(form);
    EXPECT_EQ(form->groups, given.groups);
    EXPECT_EQ(form->isTransposed, given.windows[0].isTransposed);
    EXPECT_EQ(form->windows, given.windows);
    size_t rank = given.input.size();
    std::vector<int64_t> input = {2, given.groups * given.inPerGroup};
    input.resize(rank, 5);
    EXPECT_TRUE(fits(given.input, input, given.loops, 2));
    std::vector<int64_t> weights = {given.groups * given.outPerGroup, given.inPerGroup};
    if (form->isTransposed)
      weights = {given.groups * given.inPerGroup, given.outPerGroup};
    for (const Window &window : given.windows)
      weights.push_back(window.kernel);
    EXPECT_TRUE(fits(given.weights, weights, given.loops, rank));
    // Another extent of any dimension does not fit.
    size_t dim = random.below(static_cast<int>(rank));
    weights[dim] += random.chance(50) ? 1 : -1;
    EXPECT_FALSE(fits(given.weights, weights, given.loops, rank));
    input[dim % 2] += random.chance(50) ? 1 : -1;
    EXPECT_FALSE(fits(given.input, input, given.loops, 2));
  });
}

TEST(CallForm, FindsNoConvolutionInWhatIsNone) {
  forRandomCases(3000, [](Random &random) {
    Convolution given(random);
    int rank = static_cast<int>(given.input.size());
    Access &changed = random.chance(50) ? given.input : given.weights;
    size_t dim = random.below(rank);
    switch (random.below(4)) {
    case 0: // Something is added that depends on a loop that does not belong there.
      changed[dim].index =
          changed[dim].index + IndexExpr::loop(rank + 1 + random.below(rank - 2)) * 5 + IndexExpr::loop(0).mod(2);
      break;
    case 1:
      changed[dim] = AccessDim(changed[dim].index, Border::Edge, {0, 3});
      break;
    case 2:
      changed.pop_back();
      break;
    case 3:
      given.loops.pop_back();
      break;
    }
    EXPECT_FALSE(ConvolutionForm::find(given.input, given.weights, given.loops));
  });
}

TEST(CallForm, ChannelsWithoutGroupsAreNone) {
  // Ten channels that overlap by one are no groups.
  AccessDim overlapping = IndexExpr::loop(1).floorDiv(2) * 3 + IndexExpr::loop(3);
  Window window{1, 1, 1, 0, false};
  Access input = {loop(0), overlapping, window.at(IndexExpr::loop(2), IndexExpr::loop(4))};
  Access weights = {loop(1), loop(3), loop(4)};
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 4, 1}));
  EXPECT_TRUE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 3, 1}));
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 5, 5, 3, 1}));
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 0, 1}));
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 0, 5, 3, 1}));
  // Fewer channels than groups, though what is read does not say how many there are.
  input[1] = loop(0);
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{4, 0, 5, 2, 1}));
  input[1] = IndexExpr::loop(0) * 4 + IndexExpr::loop(3);
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{2, 0, 5, 4, 1}));
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{2, -2, 5, 4, 1}));
  // Loops that there are not.
  input[1] = IndexExpr::loop(255) + IndexExpr::loop(3) + IndexExpr::loop(100).floorDiv(3);
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 3, 1}));
  // Nothing to sum up is one group.
  input[1] = loop(3);
  EXPECT_TRUE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 0, 1}));
  // A window without taps is none.
  EXPECT_FALSE(ConvolutionForm::find(input, weights, std::vector<int64_t>{1, 6, 5, 3, 0}));
}

TEST(CallForm, FindsTransforms) {
  // Along the first dimension of three.
  Access access{loop(3), loop(1), loop(4)};
  auto form = TransformForm::find(access, std::vector<int64_t>{8, 5, 2, 8, 2});
  ASSERT_TRUE(form);
  EXPECT_EQ(form->axis, 0u);
  EXPECT_EQ(form->length, 8);
  EXPECT_FALSE(form->readsReal || form->writesReal);
  for (int64_t length : {1, 2, 7, 8}) {
    form = TransformForm::find(access, std::vector<int64_t>{length / 2 + 1, 5, 2, length, 1});
    ASSERT_TRUE(form);
    EXPECT_EQ(form->length, length);
    EXPECT_TRUE(form->readsReal && !form->writesReal);
    form = TransformForm::find(access, std::vector<int64_t>{length, 5, 1, length / 2 + 1, 2});
    ASSERT_TRUE(form);
    EXPECT_EQ(form->length, length);
    EXPECT_TRUE(form->writesReal && !form->readsReal);
  }
  // Other extents, of points and of parts.
  for (std::vector<int64_t> loops : {std::vector<int64_t>{8, 5, 2, 7, 2},
                                     {8, 5, 2, 8, 1},
                                     {4, 5, 2, 8, 1},
                                     {8, 5, 1, 8, 2},
                                     {8, 5, 1, 8, 1},
                                     {8, 5, 3, 8, 3},
                                     {8, 5, 0, 8, 2},
                                     {0, 5, 2, 0, 2},
                                     {8, 5, 2, -8, 2},
                                     {8, 5, 2, 8}})
    EXPECT_FALSE(TransformForm::find(access, loops));
  // Two dimensions, none, or the parts of numbers; lines in another order.
  std::vector<int64_t> loops{8, 8, 2, 8, 2};
  EXPECT_FALSE(TransformForm::find(Access{loop(3), loop(3), loop(4)}, loops));
  EXPECT_FALSE(TransformForm::find(Access{loop(0), loop(1), loop(4)}, loops));
  EXPECT_FALSE(TransformForm::find(Access{loop(3), loop(1), loop(2)}, loops));
  EXPECT_FALSE(TransformForm::find(Access{loop(3), loop(0), loop(4)}, loops));
  EXPECT_FALSE(TransformForm::find(Access{loop(9), loop(1), loop(4)}, loops));
}

TEST(CallForm, FindsPools) {
  Window window{3, 2, 1, 1, false};
  AccessDim read = window.at(IndexExpr::loop(2), IndexExpr::loop(3));
  auto form = PoolForm::find(Access{loop(0), loop(1), read}, std::vector<int64_t>{1, 2, 5, 3});
  ASSERT_TRUE(form);
  EXPECT_EQ(form->windows, std::vector<Window>{window});
  EXPECT_FALSE(PoolForm::find(Access{loop(1), loop(0), read}, std::vector<int64_t>{1, 2, 5, 3}));
  EXPECT_FALSE(PoolForm::find(Access{loop(0), loop(1)}, std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(PoolForm::find(Access{loop(0), loop(1), read}, std::vector<int64_t>{1, 2, 5}));
  window.isTransposed = true;
  read = window.at(IndexExpr::loop(2), IndexExpr::loop(3));
  EXPECT_FALSE(PoolForm::find(Access{loop(0), loop(1), read}, std::vector<int64_t>{1, 2, 5, 3}));
}

TEST(CallForm, FindsProducts) {
  std::vector<int64_t> loops = {4, 3, 5, 6};
  auto find = [&](const Access &a, const Access &b) { return ProductForm::find(a, b, loops); };
  auto form = find({loop(0), loop(1), loop(3)}, {loop(3), loop(2)});
  ASSERT_TRUE(form);
  EXPECT_FALSE(form->transposesA || form->transposesB);
  form = find({zero, loop(3), loop(1)}, {loop(0), loop(2), loop(3)});
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->transposesA && form->transposesB);
  // No batch of four, no sum in one of them, dimensions in another order.
  EXPECT_FALSE(find({zero, loop(1), loop(3)}, {zero, loop(3), loop(2)}));
  EXPECT_FALSE(find({loop(1), loop(3)}, {loop(3), loop(2)}));
  EXPECT_FALSE(find({loop(0), loop(1), loop(3)}, {loop(2), loop(1)}));
  EXPECT_FALSE(find({loop(1), loop(0), loop(3)}, {loop(3), loop(2)}));
  EXPECT_FALSE(find({loop(0), loop(1), loop(3)}, {loop(2)}));
  EXPECT_TRUE(fits(Access{zero, loop(3), loop(1)}, std::vector<int64_t>{1, 6, 3}, loops, 3));
  EXPECT_FALSE(fits(Access{zero, loop(3), loop(1)}, std::vector<int64_t>{4, 6, 3}, loops, 3));
  EXPECT_FALSE(fits(Access{loop(3), loop(1)}, std::vector<int64_t>{1, 6, 3}, loops, 3));
  // Loops without iterations go through nothing.
  loops[3] = 0;
  EXPECT_TRUE(fits(Access{zero, loop(3), loop(1)}, std::vector<int64_t>{1, 0, 3}, loops, 3));
}
