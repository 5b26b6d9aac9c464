//===- AttentionFormTest.cpp - Tests of the form of attention -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/AttentionForm.h"
#include "gmock/gmock.h"

using namespace dovetail::calls;
using namespace dovetail::layout;

namespace {

IndexExpr loop(int number) { return IndexExpr::loop(number); }

/// Of 2 batches, 9 rows, 3 heads of 4 columns, 7 keys and a depth of 5.
const std::vector<int64_t> loops = {2, 9, 12, 7, 5};
using Access = std::vector<AccessDim>;

/// Queries, keys and values whose heads follow each other.
std::vector<Access> heads() {
  IndexExpr head = loop(2).floorDiv(4);
  return {{loop(0), loop(1), head * 5 + loop(4)}, {loop(0), loop(3), head * 5 + loop(4)}, {loop(0), loop(3), loop(2)}};
}

std::optional<AttentionForm> find(const std::vector<Access> &accesses, std::span<const int64_t> extents = loops) {
  std::vector<AccessDims> dims(accesses.begin(), accesses.end());
  return AttentionForm::find(dims, extents);
}

TEST(AttentionForm, FindsHeads) {
  EXPECT_EQ(find(heads())->columns, 4);

  // Heads that are a dimension, or read by three.
  std::vector<Access> accesses = heads();
  accesses[0] = {loop(0), loop(2).floorDiv(4), loop(1), loop(4)};
  accesses[1] = {loop(0), loop(3), loop(2).floorDiv(12) * 5 + loop(4) + 20};
  accesses[2] = {loop(0), loop(3), loop(2).mod(4)};
  EXPECT_EQ(find(accesses)->columns, 4);

  // A single one.
  EXPECT_EQ(find({{loop(0), loop(1), loop(4)}, {loop(0), loop(3), loop(4)}, {loop(0), loop(3), loop(2)}})->columns, 12);

  // A mask, of which each head has its own.
  accesses = heads();
  accesses.push_back({loop(2).floorDiv(4), IndexExpr(0), loop(3)});
  EXPECT_EQ(find(accesses)->columns, 4);
}

TEST(AttentionForm, RefusesOtherAccesses) {
  auto with = [](size_t number, Access access) {
    std::vector<Access> accesses = heads();
    accesses[number] = std::move(access);
    return accesses;
  };
  // Queries that depend on keys, and values on rows.
  EXPECT_FALSE(find(with(0, {loop(0), loop(3), loop(4)})));
  EXPECT_FALSE(find(with(2, {loop(0), loop(1), loop(2)})));
  // Within a head, queries stay where they are, and values go on evenly.
  EXPECT_FALSE(find(with(0, {loop(0), loop(1), loop(2) + loop(4)})));
  EXPECT_FALSE(find(with(2, {loop(0), loop(3), loop(2).mod(3)})));
  EXPECT_EQ(find(with(2, {loop(0), loop(3), loop(2).floorDiv(2)}))->columns, 2);
  // Backwards, and where rows and heads cannot be told apart.
  EXPECT_FALSE(find(with(1, {loop(0), IndexExpr(6) - loop(3), loop(4)})));
  EXPECT_FALSE(find(with(0, {loop(0), (loop(1) * 5 + loop(2)).floorDiv(12), loop(4)})));
  EXPECT_FALSE(find(with(0, {loop(0), AccessDim(loop(1), 2), loop(4)})));
  EXPECT_FALSE(find({heads()[0], heads()[1]}));
  // Numbers that are no addresses.
  EXPECT_FALSE(find(with(2, {loop(0), loop(3), loop(2).floorDiv(2) * (int64_t(1) << 61)})));
  EXPECT_FALSE(find(with(2, {loop(0), loop(3) * (int64_t(1) << 40), loop(2)})));
}

TEST(AttentionForm, StaysInside) {
  Access access = {loop(0), loop(3), loop(2).floorDiv(4) * 5 + loop(4) + 3};
  EXPECT_TRUE(staysInside(access, std::vector<int64_t>{2, 7, 18}, loops));
  EXPECT_TRUE(staysInside(access, std::vector<int64_t>{3, 8, 20}, loops));
  EXPECT_FALSE(staysInside(access, std::vector<int64_t>{2, 7, 17}, loops));
  EXPECT_FALSE(staysInside(access, std::vector<int64_t>{2, 6, 18}, loops));
  EXPECT_FALSE(staysInside(access, std::vector<int64_t>{2, 7}, loops));
}

/// What is written over may be read for the same head of the same row only.
TEST(AttentionForm, MayWriteOverQueries) {
  const std::vector<int64_t> alike = {2, 9, 12, 7, 4};
  auto mayWrite = [&](Access query, std::span<const int64_t> extents) {
    IndexExpr head = loop(2).floorDiv(4);
    std::vector<Access> accesses = {
        std::move(query), {loop(0), loop(3), head * 4 + loop(4)}, {loop(0), loop(3), loop(2)}};
    std::vector<AccessDims> dims(accesses.begin(), accesses.end());
    return mayWriteOverQueries(dims, extents);
  };
  IndexExpr head = loop(2).floorDiv(4);
  EXPECT_TRUE(mayWrite({loop(0), loop(1), head * 4 + loop(4)}, alike));
  EXPECT_FALSE(mayWrite({loop(0), loop(1), head * 4 + loop(4)}, loops));
  EXPECT_FALSE(mayWrite({loop(0), loop(1), head * 4 + loop(4) + 1}, alike));
  EXPECT_FALSE(mayWrite({loop(0), loop(1), loop(4)}, alike));
  EXPECT_FALSE(mayWrite({IndexExpr(0), loop(1), head * 4 + loop(4)}, alike));
  EXPECT_FALSE(mayWrite({loop(0), loop(1), head, loop(4)}, alike));
}

} // namespace
