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

#include "../Definition/ReductionSupport.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

FailureOr<RankedTensorType> MatMulOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  auto fail = [&](const Twine &why) {
    return emitOptionalError(location, "'", getOperationName(), "' op cannot multiply ", lhs, " and ", rhs, ": ", why);
  };
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return fail("both need rank 2 or more");
  Type elementType = getProductType(lhs.getElementType(), rhs.getElementType());
  if (!elementType)
    return fail("their elements differ in type");
  if (lhs.getShape().back() != rhs.getShape().end()[-2])
    return fail("the extents to contract differ, " + Twine(lhs.getShape().back()) + " and " +
                Twine(rhs.getShape().end()[-2]));
  SmallVector<int64_t> shape;
  if (!OpTrait::util::getBroadcastedShape(lhs.getShape().drop_back(2), rhs.getShape().drop_back(2), shape))
    return fail("their batches do not broadcast");
  shape.push_back(lhs.getShape().end()[-2]);
  shape.push_back(rhs.getShape().back());
  return RankedTensorType::get(shape, elementType);
}

Definition MatMulOp::getDefinition() {
  RankedTensorType result = getType();
  unsigned rank = result.getRank();
  Definition definition = Definition::over(result);
  definition.isFold = definition.isProduct = true;
  IndexExpr row = Definition::at(rank - 2), column = Definition::at(rank - 1),
            inner = definition.addLoop(getLhs().getType().getShape().back(), LoopKind::Reduction);
  for (unsigned operand : {0, 1}) {
    auto type = cast<RankedTensorType>(getOperand(operand).getType());
    SmallVector<layout::AccessDim> &dims = definition.addRead(operand);
    for (auto [dim, extent] : llvm::enumerate(type.getShape().drop_back(2))) {
      unsigned loop = rank - type.getRank() + dim;
      dims.push_back(extent == result.getDimSize(loop) ? Definition::at(loop) : IndexExpr(0));
    }
    dims.append({operand == 0 ? row : inner, operand == 0 ? inner : column});
  }
  return definition;
}

FormatPreference MatMulOp::getFormatPreference() { return FormatPreference::RowMajor; }
