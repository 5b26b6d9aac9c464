//===- MatMulOp.cpp - Matrix product -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.matmul`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"

#include "dovetail/Dialect/Dovetail/IR/ProductInterface.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> MatMulOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  auto fail = [&](const Twine &why) {
    return emitOptionalError(location, "'", getOperationName(), "' op cannot multiply ", lhs, " and ", rhs, ": ", why);
  };
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return fail("both need rank 2 or more");
  if (lhs.getElementType() != rhs.getElementType())
    return fail("their elements differ in type");
  if (lhs.getShape().back() != rhs.getShape().end()[-2])
    return fail("the extents to contract differ, " + Twine(lhs.getShape().back()) + " and " +
                Twine(rhs.getShape().end()[-2]));
  SmallVector<int64_t> shape;
  if (!OpTrait::util::getBroadcastedShape(lhs.getShape().drop_back(2), rhs.getShape().drop_back(2), shape))
    return fail("their batches do not broadcast");
  shape.push_back(lhs.getShape().end()[-2]);
  shape.push_back(rhs.getShape().back());
  return RankedTensorType::get(shape, lhs.getElementType());
}

/// Dimensions of an operand before its last two, aligned at the right to the result's.
static SmallVector<DimRelation> relateBatch(RankedTensorType operand, RankedTensorType result) {
  SmallVector<DimRelation> dims;
  int offset = result.getRank() - operand.getRank();
  for (auto [dim, extent] : llvm::enumerate(operand.getShape().drop_back(2))) {
    int loop = offset + static_cast<int>(dim);
    dims.push_back(extent == result.getDimSize(loop) ? DimRelation::identity(loop) : DimRelation::broadcast());
  }
  return dims;
}

OpRelation MatMulOp::getRelation() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType(), result = getType();
  int rank = result.getRank();
  OpRelation relation;
  for (int64_t extent : result.getShape())
    relation.loops.push_back({extent});
  relation.loops.push_back({lhs.getShape().back(), LoopKind::Reduction});
  int m = rank - 2, n = rank - 1, k = rank;
  SmallVector<DimRelation> lhsDims = relateBatch(lhs, result), rhsDims = relateBatch(rhs, result);
  lhsDims.append({DimRelation::identity(m), DimRelation::identity(k)});
  rhsDims.append({DimRelation::identity(k), DimRelation::identity(n)});
  relation.operands = {lhsDims, rhsDims};
  return relation;
}

bool MatMulOp::isLinearIn(unsigned operand) { return true; }

FormatPreference MatMulOp::getFormatPreference() { return FormatPreference::RowMajor; }

bool MatMulOp::isCheapElement() { return false; }

Value MatMulOp::emitInit(ElementBuilder &builder) {
  return builder.zero(getAccumulatorType(getType().getElementType()));
}

/// The coordinates of an operand at those of the loops.
static SmallVector<Value> getOperandIndex(MatMulOp op, ElementBuilder &builder, unsigned operand,
                                          ArrayRef<Value> index) {
  int64_t rank = op.getType().getRank();
  auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
  SmallVector<Value> coordinates;
  int64_t offset = rank - type.getRank();
  for (auto [dim, extent] : llvm::enumerate(type.getShape().drop_back(2)))
    coordinates.push_back(extent == op.getType().getDimSize(offset + dim) ? index[offset + dim] : builder.index(0));
  if (operand == 0)
    coordinates.append({index[rank - 2], index[rank]});
  else
    coordinates.append({index[rank], index[rank - 1]});
  return coordinates;
}

Value MatMulOp::emitTerm(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  Type type = getAccumulatorType(getType().getElementType());
  Value lhs = widen(builder, elements.read(0, getOperandIndex(*this, builder, 0, index)), type);
  Value rhs = widen(builder, elements.read(1, getOperandIndex(*this, builder, 1, index)), type);
  return builder.mul(lhs, rhs);
}

Value MatMulOp::emitCombine(ElementBuilder &builder, Value accumulator, Value term) {
  return builder.add(accumulator, term);
}

Value MatMulOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  return foldTerms(*this, builder, index, elements, /*numReductionLoops=*/1);
}

namespace {
struct MatMulProducts : ProductOpInterface::ExternalModel<MatMulProducts, MatMulOp> {
  SmallVector<int64_t> getTaps(Operation *) const { return {}; }

  int64_t countSharing(Operation *op, unsigned operand, unsigned loop) const {
    OpRelation relation = cast<MatMulOp>(op).getRelation();
    bool depends = llvm::any_of(relation.operands[operand],
                                [&](const DimRelation &dim) { return dim.loop == static_cast<int>(loop); });
    return depends ? 1 : relation.loops[loop].extent;
  }

  Factor getFactor(Operation *op, ElementBuilder &builder, unsigned operand, ArrayRef<Value> index) const {
    return {getOperandIndex(cast<MatMulOp>(op), builder, operand, index), {}};
  }
};
} // namespace

void dovetail::attachMatMulProducts(MLIRContext *context) { MatMulOp::attachInterface<MatMulProducts>(*context); }
