//===- FeedbackTest.cpp - Outputs that are inputs of the next run ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/Feedback.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace dovetail::runtime;

namespace {

/// A plan with these inputs in buffers 0, 1, ..., each of which is fed what lies in the buffer of that number;
/// negative: with nothing.
Plan planOf(const std::vector<int> &fed) {
  Plan plan;
  auto addTensor = [&](int buffer) {
    plan.tensors.push_back({"", static_cast<uint32_t>(buffer), {}});
    return static_cast<uint32_t>(plan.tensors.size() - 1);
  };
  for (size_t i = 0; i < fed.size(); ++i) {
    PortInfo input{"", addTensor(static_cast<int>(i)), ElementType::F32, {}};
    if (fed[i] >= 0) {
      input.fedBy = 0;
      input.next = addTensor(fed[i]);
    }
    plan.inputs.push_back(input);
  }
  return plan;
}

/// How many copies go by memory of their own.
int countStaged(const std::vector<int> &fed) {
  std::vector<FeedbackCopy> order = orderFeedback(planOf(fed));
  return static_cast<int>(std::count_if(order.begin(), order.end(), [](FeedbackCopy copy) { return copy.isStaged; }));
}

} // namespace

TEST(Feedback, NoneWritesWhatALaterOneReads) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    int inputs = 1 + static_cast<int>(random() % 6), buffers = inputs + 3;
    std::vector<int> fed(inputs), values(buffers), wanted(inputs);
    std::iota(values.begin(), values.end(), 0);
    for (int i = 0; i < inputs; ++i) {
      fed[i] = static_cast<int>(random() % (buffers + 1)) - 1;
      wanted[i] = fed[i] < 0 ? i : fed[i];
    }
    std::vector<int> staged(inputs);
    std::vector<FeedbackCopy> order = orderFeedback(planOf(fed));
    for (FeedbackCopy copy : order)
      staged[copy.input] = values[fed[copy.input]];
    for (FeedbackCopy copy : order)
      values[copy.input] = copy.isStaged ? staged[copy.input] : values[fed[copy.input]];
    values.resize(inputs);
    EXPECT_EQ(values, wanted);
  }
}

TEST(Feedback, OnlyCyclesNeedMemory) {
  EXPECT_TRUE(orderFeedback(planOf({0, -1, 2})).empty());
  EXPECT_EQ(countStaged({3, 0, 1}), 0);
  EXPECT_EQ(countStaged({1, 0, 4}), 2);
  EXPECT_EQ(countStaged({4, 4, 4}), 0);
}
