//===- RandomOps.h - Random shapes, tensors and loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what property tests of operations draw at random.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_DIALECT_RANDOMOPS_H
#define DOVETAIL_TEST_UNIT_DIALECT_RANDOMOPS_H

#include "../Layout/Random.h"
#include "ElementTester.h"

#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace dovetail {

using Shape = llvm::SmallVector<int64_t>;

/// The attribute `array<i64: 1, 2>` as text.
inline std::string array(llvm::ArrayRef<int64_t> values) {
  if (values.empty())
    return "array<i64>";
  return "array<i64: " +
         llvm::join(llvm::map_range(values, [](int64_t value) { return std::to_string(value); }), ", ") + ">";
}

inline Shape randomShape(layout::Random &random, int rank, int64_t least = 1, int64_t most = 5) {
  Shape shape;
  for (int dim = 0; dim < rank; ++dim)
    shape.push_back(random.between(least, most));
  return shape;
}

/// Numbers that are exact in f32 and rarely equal.
inline TestTensor randomTensor(layout::Random &random, llvm::ArrayRef<int64_t> shape) {
  TestTensor tensor(shape);
  for (double &value : tensor.values)
    value = static_cast<double>(random.between(-4000, 4000)) / 8;
  return tensor;
}

/// The loops of `op`, those that may be split cut at random.
inline layout::Box randomLoops(layout::Random &random, mlir::Operation *op) {
  layout::Box box = getLoopBox(op);
  OpRelation relation = llvm::cast<DefinitionOpInterface>(op).getRelation();
  for (auto [dim, loop] : llvm::enumerate(relation.loops)) {
    if (loop.kind != LoopKind::Parallel && loop.kind != LoopKind::Reduction)
      continue;
    // Of what is looked up at constant indices, ranks need the same however they divide it.
    auto follows = [&, dim = static_cast<int>(dim)](llvm::ArrayRef<DimRelation> dims) {
      return llvm::any_of(dims, [&](const DimRelation &entry) { return entry.loop == dim; });
    };
    if (loop.isLookup() && llvm::none_of(relation.operands, follows))
      continue;
    int64_t a = random.between(0, loop.extent), b = random.between(0, loop.extent);
    box[static_cast<int>(dim)] = {std::min(a, b), std::max(a, b)};
  }
  return box;
}

/// Expects that what was read is all that the relation says is needed, in each dimension that follows a loop and where
/// nothing was cut off at the tensor's ends (a shift stays exact there). Of what is looked up, the indices decide.
inline void expectTight(mlir::Operation *op, const layout::Box &loops, llvm::ArrayRef<layout::Box> reads) {
  // Dimensions do not see that another loop is empty.
  if (loops.empty())
    return;
  OpRelation relation = llvm::cast<DefinitionOpInterface>(op).getRelation();
  std::vector<layout::Box> needs = getNeeds(op, loops);
  for (auto [number, dims] : llvm::enumerate(relation.operands)) {
    const layout::Box &need = needs[number], &read = reads[number];
    bool isExact = true;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      auto position = static_cast<int>(i);
      const layout::DimMap &map = dim.map;
      bool isShift = map.getKind() == layout::DimMap::Kind::Affine && map.getNum() == map.getDen() &&
                     map.getOffLo() == map.getOffHi();
      bool isLookup = dim.loop >= 0 && relation.loops[dim.loop].isLookup();
      bool isExactHere = map.hasLoop() && !isLookup && (isShift || map.need(loops[dim.loop]) == need[position]);
      isExact &= isExactHere;
      if (isExactHere && !read.empty())
        EXPECT_EQ(read[position], need[position]) << "operand " << number << ", dimension " << i << ", loops " << loops;
    }
    if (isExact && read.empty())
      EXPECT_TRUE(need.empty()) << "operand " << number << " needs " << need << " and reads nothing";
  }
}

/// Computes `op` as a whole and on random loops, and compares with `expected`. Elements for which `isOwn` does not hold
/// are zero on these loops.
inline void checkMoved(
    layout::Random &random, ElementTester &tester, mlir::Operation *op, llvm::ArrayRef<TestTensor> operands,
    const TestTensor &expected,
    llvm::function_ref<bool(llvm::ArrayRef<int64_t> index, const layout::Box &loops)> isOwn =
        [](llvm::ArrayRef<int64_t>, const layout::Box &) { return true; }) {
  ASSERT_TRUE(op) << tester.getErrors();
  SCOPED_TRACE(mlir::debugString(*op));
  expectNear(tester.compute(op, operands), expected, 0);
  layout::Box loops = randomLoops(random, op);
  TestTensor part = tester.compute(op, operands, loops);
  TestTensor wanted = expected;
  layout::Box result(std::vector<layout::Interval>(loops.begin(), loops.begin() + wanted.shape.size()));
  forEachIndex(wanted.shape, [&](llvm::ArrayRef<int64_t> index) {
    if (!result.contains(std::span<const int64_t>(index.data(), index.size())))
      wanted.at(index) = std::nan("");
    else if (!isOwn(index, loops))
      wanted.at(index) = 0;
  });
  expectNear(part, wanted, 0);
  expectTight(op, loops, tester.getReads());
}

} // namespace dovetail

#endif // DOVETAIL_TEST_UNIT_DIALECT_RANDOMOPS_H
