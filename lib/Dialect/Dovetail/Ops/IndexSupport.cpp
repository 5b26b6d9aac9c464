//===- IndexSupport.cpp - Positions that constants name ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements getPositions.
//
//===----------------------------------------------------------------------===//

#include "IndexSupport.h"

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;

std::optional<std::vector<int64_t>> dovetail::getPositions(Value indices, int64_t extent, int64_t component,
                                                           int64_t depth) {
  while (auto reshard = indices.getDefiningOp<ReshardOp>())
    indices = reshard.getOperand();
  Attribute constant;
  if (!matchPattern(indices, m_Constant(&constant)))
    return std::nullopt;
  std::optional<ConstantReader> reader = ConstantReader::create(constant);
  if (!reader)
    return std::nullopt;
  bool isUnsigned = isUnsignedElement(indices.getType());
  std::vector<int64_t> positions;
  for (int64_t i = component, count = cast<RankedTensorType>(indices.getType()).getNumElements(); i < count; i += depth)
    positions.push_back(*lookUp(reader->readBits(i), isUnsigned, extent, /*clamp=*/true));
  return positions;
}
