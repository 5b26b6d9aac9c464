//===- UnpackOp.cpp - Elements that bytes hold several of -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.unpack`.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

int64_t UnpackOp::getElementsPerByte(Type narrow) { return 8 / narrow.getIntOrFloatBitWidth(); }

LogicalResult UnpackOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  int64_t dim = getDim();
  if (!isNarrow(to.getElementType()) || getElementsPerByte(to.getElementType()) == 1)
    return emitOpError("makes elements of ") << to.getElementType() << "; they have 4 or 2 bits";
  if (dim < 0 || dim >= to.getRank())
    return emitOpError("unpacks dimension ") << dim << ", which " << to << " does not have";
  SmallVector<int64_t> packed(to.getShape());
  packed[dim] = llvm::divideCeil(packed[dim], getElementsPerByte(to.getElementType()));
  if (from.getShape() != ArrayRef<int64_t>(packed))
    return emitOpError("unpacks ") << from << " to " << to << ", whose bytes along dimension " << dim << " are "
                                   << packed[dim];
  return success();
}

Definition UnpackOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(dim == getDim() ? Definition::at(dim).floorDiv(getElementsPerByte(getType().getElementType()))
                                   : Definition::at(dim));
  return definition;
}

SmallVector<Value> UnpackOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type type = getType().getElementType(), byteType = builder.getBuilder().getI8Type();
  unsigned width = type.getIntOrFloatBitWidth();
  Value place = builder.floorModI(body.getLoop(getDim()), getElementsPerByte(type));
  Value shift = builder.create<arith::IndexCastOp>(byteType, builder.mulI(place, width));
  Value bits = builder.create<arith::ShRUIOp>(body.read(0), shift);
  return {builder.create<arith::AndIOp>(bits, builder.constantInt(byteType, (1 << width) - 1))};
}
