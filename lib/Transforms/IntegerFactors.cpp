//===- IntegerFactors.cpp - Factors that are integers of 8 bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds factors of products that are extended from integers of 8 bits, less zero points.
//
//===----------------------------------------------------------------------===//

#include "IntegerFactors.h"

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

/// Whether all elements of `value`, of integers, are known to be 0.
static bool isZero(Value value) {
  while (isa_and_present<CastOp, ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return getSplat(value) == 0.0;
}

std::optional<Factor> dovetail::findFactor(Value value) {
  if (!typeOf(value).getElementType().isSignlessInteger(32))
    return std::nullopt;
  Factor factor;
  if (auto sub = value.getDefiningOp<SubOp>(); sub && sub.getLhs().getType() == value.getType()) {
    value = sub.getLhs();
    if (!isZero(sub.getRhs()))
      factor.zero = sub.getRhs();
  }
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !cast.getOperand().getType().getElementType().isInteger(8))
    return std::nullopt;
  factor.integers = cast.getOperand();
  return factor;
}

bool dovetail::hasZeroElements(const Factor &factor) {
  Type type = typeOf(factor.integers).getElementType();
  if (std::optional<double> number = getSplat(factor.zero)) {
    double least = type.isUnsignedInteger() ? 0 : -128;
    return *number >= least && *number <= least + 255;
  }
  auto cast = factor.zero.getDefiningOp<CastOp>();
  return cast && cast.getOperand().getType().getElementType() == type;
}

/// Extends one.
static void extendConstant(ConstantOp constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  // Larger ones are not computed by imports.
  constexpr int64_t mostElements = 4096;
  int64_t count = type.getNumElements();
  if (!type.getElementType().isSignlessInteger(32) || type.getRank() < 2 || count == 0 || count > mostElements)
    return;
  std::optional<ConstantReader> reader = ConstantReader::create(constant.getValue());
  if (!reader)
    return;
  SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(reader->readBits(i).getSExtValue());
  int64_t least = *llvm::min_element(numbers), largest = *llvm::max_element(numbers);
  if (largest - least > 255)
    return;
  OpBuilder builder(constant);
  int64_t zero = least >= -128 && largest <= 127 ? 0 : -128 - least;
  SmallVector<APInt> integers =
      llvm::map_to_vector(numbers, [&](int64_t number) { return APInt(8, number + zero, /*isSigned=*/true); });
  auto narrow = DenseElementsAttr::get(cast<ShapedType>(type.clone(builder.getI8Type())), integers);
  Value value = ConstantOp::create(builder, constant.getLoc(), narrow);
  value = CastOp::create(builder, constant.getLoc(), value, builder.getI32Type());
  if (zero != 0) {
    auto number = DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), static_cast<int32_t>(zero));
    value = SubOp::create(builder, constant.getLoc(), value, ConstantOp::create(builder, constant.getLoc(), number));
  }
  constant.getResult().replaceAllUsesWith(value);
  constant.erase();
}

void dovetail::extendConstants(Operation *root) {
  root->walk([](ConstantOp constant) { extendConstant(constant); });
}
