//===- ReshapeOp.cpp - Reshape -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines reshape: which dimensions merge and split, and folding.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

namespace {
/// Adjacent dimensions of the operand and of the result that hold the same elements; as few as possible. Either list is
/// empty where the other has a dimension of extent 1.
struct Group {
  SmallVector<unsigned> from, to;
};
} // namespace

/// The number of elements; none if it overflows.
static std::optional<int64_t> countElements(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t count = 1;
  for (int64_t extent : shape)
    if (llvm::MulOverflow(count, extent, count))
      return std::nullopt;
  return count;
}

/// Divides the dimensions of two shapes with equally many elements, not zero, into groups.
static SmallVector<Group> getGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<Group> groups;
  unsigned i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group &group = groups.emplace_back();
    bool unitFrom = i < from.size() && from[i] == 1;
    bool unitTo = j < to.size() && to[j] == 1;
    if (unitFrom || unitTo) {
      if (unitFrom)
        group.from.push_back(i++);
      if (unitTo)
        group.to.push_back(j++);
      continue;
    }
    int64_t fromProduct = from[i], toProduct = to[j];
    group.from.push_back(i++);
    group.to.push_back(j++);
    while (fromProduct != toProduct) {
      if (fromProduct < toProduct) {
        fromProduct *= from[i];
        group.from.push_back(i++);
      } else {
        toProduct *= to[j];
        group.to.push_back(j++);
      }
    }
  }
  return groups;
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

Definition ReshapeOp::getDefinition() {
  ArrayRef<int64_t> from = getOperand().getType().getShape();
  ArrayRef<int64_t> to = getType().getShape();
  Definition definition = Definition::over(getType());
  SmallVector<AccessDim> dims(from.size());
  for (const Group &group : getType().getNumElements() == 0 ? SmallVector<Group>() : getGroups(from, to)) {
    // The position in the group, from which the operand's indices follow: minor ones first.
    IndexExpr position;
    for (unsigned dim : group.to)
      position = position * to[dim] + Definition::at(dim);
    for (unsigned dim : llvm::reverse(group.from)) {
      if (group.to.empty())
        continue;
      dims[dim] = dim == group.from.front() ? position : position.mod(from[dim]);
      position = position.floorDiv(from[dim]);
    }
    // Minor loops cannot be split where dimensions merge or split.
    for (unsigned dim : llvm::drop_begin(group.to, group.to.empty() ? 0 : 1))
      if (to[dim] > 1 && !group.from.empty())
        definition.loops[dim].kind = LoopKind::Whole;
  }
  definition.addRead(0) = std::move(dims);
  return definition;
}

FormatPreference ReshapeOp::getFormatPreference() { return FormatPreference::RowMajor; }

//===----------------------------------------------------------------------===//
// Verification and folding
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType();
  if (from.getElementType() != getType().getElementType())
    return emitOpError("changes the element type from ") << from << " to " << getType();
  std::optional<int64_t> fromCount = countElements(from.getShape());
  std::optional<int64_t> toCount = countElements(getType().getShape());
  if (!fromCount || !toCount)
    return emitOpError("has more than 2^63 elements: ") << from << " to " << getType();
  if (*fromCount != *toCount)
    return emitOpError("changes the number of elements from ")
           << *fromCount << " to " << *toCount << ": " << from << " to " << getType();
  return success();
}

/// The same constant with another shape; null for a kind of constant that this does not know.
static Attribute reshapeConstant(Attribute value, RankedTensorType type) {
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(value))
    return dense.isSplat() ? dense.resizeSplat(type) : dense.reshape(type);
  if (auto resource = dyn_cast_if_present<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (Attribute constant = reshapeConstant(adaptor.getOperand(), getType()))
    return constant;
  // With a sharding in between, two steps may be possible where one is not.
  auto producer = getOperand().getDefiningOp<ReshapeOp>();
  if (!producer || getSharding(getOperand()))
    return {};
  getOperandMutable().assign(producer.getOperand());
  return getResult();
}
