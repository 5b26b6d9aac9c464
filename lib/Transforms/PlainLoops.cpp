//===- PlainLoops.cpp - Dimensions that an operation leaves alone ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what tells along which dimensions an operation does the same everywhere.
//
//===----------------------------------------------------------------------===//

#include "PlainLoops.h"

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace dovetail;

std::optional<SmallVector<int64_t>> dovetail::findPlainDims(DefinitionOpInterface op, const Definition &definition,
                                                            unsigned loop) {
  const Loop &own = definition.loops[loop];
  // What is written where data say goes to coordinates of the whole result.
  if (own.kind != LoopKind::Parallel || own.isLookup() || definition.isLine(loop) || definition.writes)
    return std::nullopt;
  for (const Loop &other : definition.loops)
    if (other.kind == LoopKind::Part && other.dim == loop)
      return std::nullopt;
  int number = static_cast<int>(loop);
  SmallVector<int64_t> dims(op->getNumOperands(), -1);
  SmallVector<bool> isRead(op->getNumOperands(), false);
  for (const Access &read : definition.reads) {
    int64_t found = -1;
    for (auto [dim, access] : llvm::enumerate(read.dims)) {
      if (!access.index.dependsOn(number))
        continue;
      bool isPlain = access.index.asLoop() == number && access.divisor == 1 && access.border == layout::Border::None &&
                     shapeOf(op->getOperand(read.operand))[dim] == own.extent;
      if (!isPlain || found >= 0)
        return std::nullopt;
      found = static_cast<int64_t>(dim);
    }
    if (isRead[read.operand] && dims[read.operand] != found)
      return std::nullopt;
    isRead[read.operand] = true;
    dims[read.operand] = found;
  }
  if (!readsOnly(op, definition, loop))
    return std::nullopt;
  return dims;
}

Operation *dovetail::cloneOn(OpBuilder &builder, Operation *op, ValueRange operands, ArrayRef<int64_t> shape) {
  auto inferring = dyn_cast<InferTypeOpInterface>(op);
  if (!inferring || op->getNumResults() != 1)
    return nullptr;
  SmallVector<Type> types;
  if (failed(inferring.inferReturnTypes(op->getContext(), /*location=*/std::nullopt, operands, op->getAttrDictionary(),
                                        op->getPropertiesStorage(), op->getRegions(), types)))
    return nullptr;
  if (cast<RankedTensorType>(types.front()).getShape() != shape)
    return nullptr;
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(types.front());
  copy->setLoc(withoutTensorName(op->getLoc()));
  return copy;
}
