//===- CompareTest.cpp - Comparing tensors -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Compare.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace dovetail;
using runtime::ElementType;

template <typename T>
static tools::NamedTensor tensor(ElementType type, std::vector<int64_t> shape, std::vector<T> elements) {
  tools::NamedTensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.allocate();
  EXPECT_EQ(tensor.bytes.size(), elements.size() * sizeof(T));
  if (!elements.empty())
    std::memcpy(tensor.bytes.data(), elements.data(), tensor.bytes.size());
  return tensor;
}

static tools::NamedTensor floats(std::vector<float> elements) {
  return tensor(ElementType::F32, {static_cast<int64_t>(elements.size())}, elements);
}

TEST(Compare, LimitIsRelativeToTheLargestMagnitude) {
  Difference difference = compare(floats({100, 0.009f, -3}), floats({100, 0, -3}));
  EXPECT_EQ(difference.numDifferent, 0);
  EXPECT_DOUBLE_EQ(difference.magnitude, 100);
  EXPECT_DOUBLE_EQ(difference.limit, 0.01);
  EXPECT_FLOAT_EQ(difference.largest, 0.009f);
  EXPECT_EQ(compare(floats({100, 0.011f, -3}), floats({100, 0, -3})).numDifferent, 1);
}

TEST(Compare, FindsTheFirstDifference) {
  auto expected = tensor<float>(ElementType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  auto actual = tensor<float>(ElementType::F32, {2, 3}, {1, 2, 3, 4, 7, 8});
  Difference difference = compare(actual, expected);
  EXPECT_EQ(difference.numDifferent, 2);
  EXPECT_EQ(difference.firstIndex, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(difference.actual, 7);
  EXPECT_EQ(difference.expected, 5);
}

TEST(Compare, InfinitiesAndNaNMustBeTheSame) {
  float infinity = INFINITY, nan = NAN;
  EXPECT_EQ(compare(floats({infinity, nan, 1}), floats({infinity, nan, 1})).numDifferent, 0);
  EXPECT_EQ(compare(floats({-infinity, nan}), floats({infinity, nan})).numDifferent, 1);
  EXPECT_EQ(compare(floats({nan, 1}), floats({1, nan})).numDifferent, 2);
  EXPECT_EQ(compare(floats({1e30f}), floats({infinity})).numDifferent, 1);
}

TEST(Compare, IntegersMustBeEqual) {
  int64_t large = int64_t(1) << 60;
  auto expected = tensor<int64_t>(ElementType::I64, {2}, {large, 5});
  EXPECT_EQ(compare(expected, expected).numDifferent, 0);
  // A double does not tell these apart.
  Difference difference = compare(tensor<int64_t>(ElementType::I64, {2}, {large + 1, 5}), expected);
  EXPECT_EQ(difference.numDifferent, 1);
  EXPECT_EQ(difference.firstIndex, (std::vector<int64_t>{0}));
}

TEST(Compare, HalfPrecision) {
  // 1, 1 + 2^-10 and 1.5 as binary16.
  auto one = tensor<uint16_t>(ElementType::F16, {1}, {0x3c00});
  EXPECT_EQ(compare(tensor<uint16_t>(ElementType::F16, {1}, {0x3c01}), one).numDifferent, 0);
  Difference difference = compare(tensor<uint16_t>(ElementType::F16, {1}, {0x3e00}), one);
  EXPECT_EQ(difference.numDifferent, 1);
  EXPECT_EQ(difference.actual, 1.5);
}

TEST(Compare, EmptyTensors) {
  auto empty = tensor<float>(ElementType::F32, {0, 4}, {});
  EXPECT_EQ(compare(empty, empty).numDifferent, 0);
}

TEST(Compare, WhatIsNaNEverywhereComparesNothing) {
  EXPECT_TRUE(compare(floats({NAN, NAN}), floats({NAN, NAN})).isAllNan);
  EXPECT_FALSE(compare(floats({NAN, 1}), floats({NAN, 1})).isAllNan);
  EXPECT_EQ(compare(floats({NAN, 1, NAN}), floats({NAN, 1, 2})).numNan, 1);
  EXPECT_FALSE(compare(floats({NAN, 1}), floats({NAN, NAN})).isAllNan);
  EXPECT_FALSE(compare(floats({}), floats({})).isAllNan);
}
