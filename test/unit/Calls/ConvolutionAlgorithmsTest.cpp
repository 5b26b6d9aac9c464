//===- ConvolutionAlgorithmsTest.cpp - Ways to compute convolutions -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/ConvolutionAlgorithms.h"

#include "../Layout/Random.h"

#include <set>

using namespace dovetail::calls;
using dovetail::layout::Window;

namespace {

ConvolutionForm makeForm(int dims, Window window, int64_t groups = 1) {
  ConvolutionForm form;
  form.groups = groups;
  form.isTransposed = window.isTransposed;
  form.windows.assign(dims, window);
  return form;
}

const AlgorithmEntry &winograd() { return *findAlgorithm(ConvolutionAlgorithm::Winograd); }

} // namespace

TEST(ConvolutionAlgorithms, AreFoundByTheirNumbers) {
  EXPECT_EQ(findAlgorithm(ConvolutionAlgorithm::Library), nullptr);
  std::set<std::string> names;
  for (const AlgorithmEntry &entry : getAlgorithms()) {
    EXPECT_EQ(findAlgorithm(entry.algorithm), &entry);
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_EQ(entry.getWork == nullptr, entry.getMemory == nullptr);
  }
}

TEST(ConvolutionAlgorithms, AreForSomeForms) {
  Window threeWide{3, 1, 1, 1, false};
  EXPECT_TRUE(winograd().applies(makeForm(2, threeWide)));
  EXPECT_FALSE(winograd().applies(makeForm(1, threeWide)));
  EXPECT_FALSE(winograd().applies(makeForm(3, threeWide)));
  EXPECT_FALSE(winograd().applies(makeForm(2, threeWide, /*groups=*/2)));
  EXPECT_FALSE(winograd().applies(makeForm(2, {3, 2, 1, 1, false})));
  EXPECT_FALSE(winograd().applies(makeForm(2, {3, 1, 2, 1, false})));
  EXPECT_FALSE(winograd().applies(makeForm(2, {5, 1, 1, 1, false})));
  EXPECT_FALSE(winograd().applies(makeForm(2, {3, 1, 1, 1, true})));
  EXPECT_TRUE(mayRound(makeForm(2, threeWide)));
  EXPECT_FALSE(mayRound(makeForm(2, {2, 1, 1, 1, false})));
  const AlgorithmEntry &gathered = *findAlgorithm(ConvolutionAlgorithm::Gathered);
  EXPECT_TRUE(gathered.applies(makeForm(3, {5, 2, 3, 0, false}, /*groups=*/4)));
  // Windows of as many kinds as remainders by the stride.
  EXPECT_FALSE(gathered.applies(makeForm(3, {9, 9, 1, 0, true})));
  EXPECT_FALSE(gathered.isChoice());
}

/// A tile of 4 x 4 results takes 36 products for each pair of channels, where sums take 144.
TEST(ConvolutionAlgorithms, CountProducts) {
  int64_t loops[] = {2, 32, 9, 8, 64};
  AlgorithmWork work = winograd().getWork(loops);
  EXPECT_EQ(work.rows, 2 * 3 * 2);
  EXPECT_EQ(work.products, 36.0 * work.rows * 64 * 32);
  EXPECT_EQ(work.readBytes, (36.0 - 9) * 4 * 64 * 32);
  AlgorithmMemory memory = winograd().getMemory(loops);
  EXPECT_EQ(memory.weights, 36 * 4 * 64 * 32);
  EXPECT_GT(memory.thread, 0);
}
