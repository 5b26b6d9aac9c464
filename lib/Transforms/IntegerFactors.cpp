//===- IntegerFactors.cpp - Factors that are integers of 8 bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds factors of products that are extended from integers of 8 bits, less zero points, and moved.
//
//===----------------------------------------------------------------------===//

#include "IntegerFactors.h"

#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "llvm/ADT/APSInt.h"

using namespace mlir;
using namespace dovetail;

Value dovetail::skipMoves(Value value, Moves &moves) {
  while (isa_and_present<TransposeOp, SliceOp, ReshapeOp>(value.getDefiningOp())) {
    moves.push_back(value.getDefiningOp());
    value = moves.back()->getOperand(0);
  }
  return value;
}

Value dovetail::skipMoves(Value value) {
  Moves moves;
  return skipMoves(value, moves);
}

//===----------------------------------------------------------------------===//
// Moves of what is broadcast
//===----------------------------------------------------------------------===//

/// The shape after `move` of a value of `shape` that is broadcast to its operand. None if the value varies along some
/// of the dimensions that a reshape merges or splits, but not along all of them.
static std::optional<SmallVector<int64_t>> moveShape(ArrayRef<int64_t> shape, Operation *move) {
  ArrayRef<int64_t> from = shapeOf(move->getOperand(0)), to = shapeOf(move->getResult(0));
  if (shape == from)
    return llvm::to_vector(to);
  // One element is the same everywhere.
  if (ShapedType::getNumElements(shape) == 1)
    return SmallVector<int64_t>();
  SmallVector<int64_t> aligned(from.size() - shape.size(), 1);
  llvm::append_range(aligned, shape);
  if (auto transpose = dyn_cast<TransposeOp>(move))
    return llvm::map_to_vector(transpose.getPermutation(), [&](int64_t dim) { return aligned[dim]; });
  if (isa<ReshapeOp>(move))
    return pullBack(aligned, to, from);
  for (auto [extent, size] : llvm::zip_equal(aligned, to))
    if (extent != 1)
      extent = size;
  return aligned;
}

/// Whether a transpose of what has `shape` leaves the elements in their order.
static bool keepsElements(ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) {
  return llvm::is_sorted(llvm::filter_to_vector(permutation, [&](int64_t dim) { return shape[dim] != 1; }));
}

/// `value`, which is broadcast to the operand of `move`, after this. `moveShape` gives its shape then.
static Value applyMove(OpBuilder &builder, Location loc, Value value, Operation *move, ArrayRef<int64_t> shape) {
  bool isWhole = shapeOf(value) == shapeOf(move->getOperand(0));
  if (isa<ReshapeOp>(move) || (!isWhole && typeOf(value).getNumElements() == 1))
    return reshapeTo(builder, loc, value, shape);
  SmallVector<int64_t> aligned = alignedShape(value, shape.size());
  if (auto transpose = dyn_cast<TransposeOp>(move)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    if (!isWhole && keepsElements(aligned, permutation))
      return reshapeTo(builder, loc, value, shape);
    return TransposeOp::create(builder, loc, reshapeTo(builder, loc, value, aligned), permutation);
  }
  auto slice = cast<SliceOp>(move);
  SmallVector<int64_t> starts(slice.getStarts()), steps(slice.getSteps());
  for (auto [dim, extent] : llvm::enumerate(shapeOf(move->getOperand(0))))
    if (aligned[dim] != extent) {
      starts[dim] = 0;
      steps[dim] = 1;
    }
  return SliceOp::create(builder, loc, reshapeTo(builder, loc, value, aligned), starts, shape, steps);
}

std::optional<MovedValue> MovedValue::create(Value source, ArrayRef<Operation *> moves) {
  MovedValue moved;
  moved.source = source;
  moved.moves.append(moves.rbegin(), moves.rend());
  moved.shape.assign(shapeOf(source).begin(), shapeOf(source).end());
  for (Operation *move : moved.moves) {
    // Extents do not say then which dimensions a reshape merges.
    if (typeOf(move->getResult(0)).getNumElements() == 0)
      return std::nullopt;
    std::optional<SmallVector<int64_t>> next = moveShape(moved.shape, move);
    if (!next)
      return std::nullopt;
    moved.shape = std::move(*next);
  }
  return moved;
}

Value MovedValue::materialize(OpBuilder &builder, Location loc) const {
  Value value = source;
  for (Operation *move : moves)
    value = applyMove(builder, loc, value, move, *moveShape(shapeOf(value), move));
  return value;
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

FactorValues Factor::materialize(OpBuilder &builder, Location loc) const {
  FactorValues values = {integers.materialize(builder, loc), Value()};
  if (integers.getElementType().isInteger(1))
    values.integers = CastOp::create(builder, loc, values.integers, builder.getIntegerType(8, /*isSigned=*/false));
  if (!zero)
    return values;
  // One number for all is the same after all moves.
  bool isNumber = zero->getSource().getDefiningOp<ConstantOp>() && typeOf(zero->getSource()).getRank() == 0;
  if (number && !isNumber) {
    auto type = RankedTensorType::get({}, zero->getElementType());
    values.zero = ConstantOp::create(builder, loc, DenseElementsAttr::get(type, static_cast<int32_t>(*number)));
  } else {
    values.zero = zero->materialize(builder, loc);
  }
  return values;
}

// A cast of booleans to integers of 8 bits is dropped if another one extends these.
bool dovetail::isNarrowInteger(Type type) { return type.isInteger(8) || type.isInteger(1); }

/// The integer that all elements of `value` are, which may be extended from integers of 8 bits.
static std::optional<double> getInteger(Value value) {
  value = skipMoves(value);
  if (auto cast = value.getDefiningOp<CastOp>(); cast && cast.getOperand().getType().getElementType().isInteger(8))
    value = skipMoves(cast.getOperand());
  return getSplat(value);
}

std::optional<Factor> dovetail::findFactor(Value value, Moves moves) {
  if (!typeOf(value).getElementType().isSignlessInteger(32))
    return std::nullopt;
  std::optional<MovedValue> zero;
  std::optional<double> number;
  value = skipMoves(value, moves);
  if (auto sub = value.getDefiningOp<SubOp>(); sub && sub.getLhs().getType() == sub.getType()) {
    number = getInteger(sub.getRhs());
    if (number == 0.0) {
      number.reset();
    } else {
      zero = MovedValue::create(sub.getRhs(), moves);
      if (!zero)
        return std::nullopt;
    }
    value = skipMoves(sub.getLhs(), moves);
  }
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !isNarrowInteger(cast.getOperand().getType().getElementType()))
    return std::nullopt;
  std::optional<MovedValue> integers = MovedValue::create(cast.getOperand(), moves);
  if (!integers)
    return std::nullopt;
  return Factor{std::move(*integers), std::move(zero), number};
}

bool dovetail::hasZeroElements(const Factor &factor) {
  double least = factor.isUnsigned() ? 0 : -128;
  auto isElement = [&](auto number) { return number >= least && number <= least + 255; };
  if (factor.number)
    return isElement(*factor.number);
  Value zero = skipMoves(factor.zero->getSource());
  if (auto cast = zero.getDefiningOp<CastOp>()) {
    Type narrow = cast.getOperand().getType().getElementType();
    if (narrow == factor.integers.getElementType())
      return true;
    zero = narrow.isInteger(8) ? skipMoves(cast.getOperand()) : zero;
  }
  auto constant = zero.getDefiningOp<ConstantOp>();
  std::optional<ConstantReader> reader = constant ? ConstantReader::create(constant.getValue()) : std::nullopt;
  bool isUnsigned = isUnsignedElement(typeOf(zero).getElementType());
  return reader && llvm::all_of(llvm::seq<int64_t>(0, typeOf(zero).getNumElements()), [&](int64_t i) {
           return isElement(APSInt(reader->readBits(i), isUnsigned).getExtValue());
         });
}

Value dovetail::getNarrowZero(const Factor &factor) {
  auto cast = skipMoves(factor.zero->getSource()).getDefiningOp<CastOp>();
  if (!cast || cast.getOperand().getType().getElementType() != factor.integers.getElementType() ||
      cast.getOperand().getType().getNumElements() != 1)
    return {};
  return cast.getOperand();
}

/// Extends one.
static void extendConstant(ConstantOp constant) {
  auto type = cast<RankedTensorType>(constant.getType());
  // Larger ones are not computed by imports.
  constexpr int64_t mostElements = 4096;
  int64_t count = type.getNumElements();
  if (!type.getElementType().isSignlessInteger(32) || type.getRank() < 2 || count == 0 || count > mostElements)
    return;
  // Zero points are known as they are.
  auto isZero = [](OpOperand &use) { return isa<SubOp>(use.getOwner()) && use.getOperandNumber() == 1; };
  std::optional<ConstantReader> reader = ConstantReader::create(constant.getValue());
  if (!reader || llvm::all_of(constant->getUses(), isZero))
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
