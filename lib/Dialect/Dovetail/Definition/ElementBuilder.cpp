//===- ElementBuilder.cpp - Building the scalar computation of one element -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ElementBuilder.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/ElementBuilder.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace dovetail;

Type ElementBuilder::scalarType(Type type) {
  if (isNarrow(type))
    return IntegerType::get(type.getContext(), 8);
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value ElementBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

Value ElementBuilder::constant(Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(builder, loc, FloatAttr::get(floatType, value));
  return constantInt(type, static_cast<int64_t>(value));
}

Value ElementBuilder::constantInt(Type type, int64_t value) {
  type = scalarType(type);
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(builder, loc, FloatAttr::get(floatType, static_cast<double>(value)));
  auto integer = cast<IntegerType>(type);
  APInt bits = APInt(64, value, /*isSigned=*/true).sextOrTrunc(integer.getWidth());
  return arith::ConstantOp::create(builder, loc, IntegerAttr::get(integer, bits));
}

Value ElementBuilder::boolean(bool value) { return constantInt(builder.getI1Type(), value ? 1 : 0); }

Value ElementBuilder::zero(Type type) { return constantInt(type, 0); }

/// The end of the range of `elementType`: infinity, or the extreme integer.
static TypedAttr getExtreme(Type elementType, bool negative) {
  if (auto floatType = dyn_cast<FloatType>(elementType))
    return FloatAttr::get(floatType, APFloat::getInf(floatType.getFloatSemantics(), negative));
  auto integer = cast<IntegerType>(elementType);
  unsigned width = integer.getWidth();
  bool isUnsigned = integer.isUnsigned() || width == 1;
  APInt bits = negative ? (isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width))
                        : (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  return IntegerAttr::get(ElementBuilder::scalarType(integer), bits);
}

Value ElementBuilder::lowest(Type elementType) {
  return arith::ConstantOp::create(builder, loc, getExtreme(elementType, true));
}

Value ElementBuilder::highest(Type elementType) {
  return arith::ConstantOp::create(builder, loc, getExtreme(elementType, false));
}

std::optional<int64_t> ElementBuilder::getConstantIndex(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

Value ElementBuilder::addI(Value a, Value b) { return create<arith::AddIOp>(a, b); }
Value ElementBuilder::addI(Value a, int64_t b) { return b == 0 ? a : addI(a, index(b)); }
Value ElementBuilder::subI(Value a, Value b) { return create<arith::SubIOp>(a, b); }
Value ElementBuilder::mulI(Value a, int64_t b) { return b == 1 ? a : create<arith::MulIOp>(a, index(b)); }
Value ElementBuilder::floorDivI(Value a, int64_t b) { return b == 1 ? a : create<arith::FloorDivSIOp>(a, index(b)); }
Value ElementBuilder::floorModI(Value a, int64_t b) {
  if (b == 1)
    return index(0);
  return subI(a, mulI(floorDivI(a, b), b));
}
Value ElementBuilder::minI(Value a, Value b) { return create<arith::MinSIOp>(a, b); }
Value ElementBuilder::maxI(Value a, Value b) { return create<arith::MaxSIOp>(a, b); }
Value ElementBuilder::clampI(Value a, int64_t lo, int64_t hi) { return minI(maxI(a, index(lo)), index(hi)); }
Value ElementBuilder::compareI(arith::CmpIPredicate predicate, Value a, Value b) {
  return create<arith::CmpIOp>(predicate, a, b);
}
Value ElementBuilder::inRange(Value a, int64_t lo, int64_t hi) {
  return andB(compareI(arith::CmpIPredicate::sge, a, index(lo)), compareI(arith::CmpIPredicate::slt, a, index(hi)));
}
Value ElementBuilder::andB(Value a, Value b) { return create<arith::AndIOp>(a, b); }

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// A float, or a vector of floats.
static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

Value ElementBuilder::add(Value a, Value b) {
  return isFloat(a) ? create<arith::AddFOp>(a, b) : create<arith::AddIOp>(a, b);
}
Value ElementBuilder::sub(Value a, Value b) {
  return isFloat(a) ? create<arith::SubFOp>(a, b) : create<arith::SubIOp>(a, b);
}
Value ElementBuilder::mul(Value a, Value b) {
  return isFloat(a) ? create<arith::MulFOp>(a, b) : create<arith::MulIOp>(a, b);
}
Value ElementBuilder::div(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return create<arith::DivFOp>(a, b);
  return isUnsigned ? create<arith::DivUIOp>(a, b) : create<arith::DivSIOp>(a, b);
}
Value ElementBuilder::max(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return create<arith::MaximumFOp>(a, b);
  return isUnsigned ? create<arith::MaxUIOp>(a, b) : create<arith::MaxSIOp>(a, b);
}
Value ElementBuilder::min(Value a, Value b, bool isUnsigned) {
  if (isa<FloatType>(a.getType()))
    return create<arith::MinimumFOp>(a, b);
  return isUnsigned ? create<arith::MinUIOp>(a, b) : create<arith::MinSIOp>(a, b);
}
Value ElementBuilder::getEntry(ArrayRef<int64_t> table, Value number) {
  Value entry = index(table.back());
  for (auto [position, value] : llvm::enumerate(table.drop_back()))
    entry = select(compareI(arith::CmpIPredicate::eq, number, index(position)), index(value), entry);
  return entry;
}
Value ElementBuilder::select(Value condition, Value onTrue, Value onFalse) {
  return create<arith::SelectOp>(condition, onTrue, onFalse);
}
Value ElementBuilder::extendInt(Value a, Type type, bool isUnsigned) {
  if (a.getType() == type)
    return a;
  return isUnsigned ? create<arith::ExtUIOp>(type, a) : create<arith::ExtSIOp>(type, a);
}
Value ElementBuilder::convertFloat(Value a, FloatType type) {
  if (a.getType() == type)
    return a;
  // arith does not fold a conversion that rounds.
  FloatAttr constant;
  if (matchPattern(a, m_Constant(&constant))) {
    APFloat value = constant.getValue();
    bool losesInfo;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return arith::ConstantOp::create(builder, loc, FloatAttr::get(type, value));
  }
  if (type.getWidth() > cast<FloatType>(a.getType()).getWidth())
    return create<arith::ExtFOp>(type, a);
  // Between types of equal width (f16 and bf16) there is only the way over f32.
  if (type.getWidth() == cast<FloatType>(a.getType()).getWidth())
    a = create<arith::ExtFOp>(builder.getF32Type(), a);
  return create<arith::TruncFOp>(type, a);
}
Value ElementBuilder::compare(arith::CmpFPredicate floatPredicate, arith::CmpIPredicate intPredicate, Value a,
                              Value b) {
  if (isa<FloatType>(a.getType()))
    return create<arith::CmpFOp>(floatPredicate, a, b);
  return create<arith::CmpIOp>(intPredicate, a, b);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value> ElementBuilder::forLoop(Value lo, Value hi, ValueRange init,
                                           function_ref<SmallVector<Value>(Value, ValueRange)> body,
                                           int64_t maxUnroll) {
  std::optional<int64_t> first = getConstantIndex(lo);
  std::optional<int64_t> last = getConstantIndex(hi);
  if (first && last && (unrollLoops || *last - *first <= maxUnroll)) {
    SmallVector<Value> carried(init);
    for (int64_t i = *first; i < *last; ++i)
      carried = body(index(i), carried);
    return carried;
  }
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, loc, lo, hi, index(1), init);
  // Without carried values the loop comes with a terminator.
  if (init.empty())
    builder.setInsertionPoint(loop.getBody()->getTerminator());
  else
    builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(builder, loc, carried);
  return SmallVector<Value>(loop.getResults());
}

void ElementBuilder::forEach(Value lo, Value hi, function_ref<void(Value)> body, int64_t maxUnroll) {
  auto run = [&](Value iv, ValueRange) -> SmallVector<Value> {
    body(iv);
    return {};
  };
  forLoop(lo, hi, {}, run, maxUnroll);
}

SmallVector<Value> ElementBuilder::whileLoop(ValueRange init, function_ref<Value(ValueRange)> condition,
                                             function_ref<SmallVector<Value>(ValueRange)> body) {
  if (unrollLoops) {
    SmallVector<Value> carried(init);
    while (matchPattern(condition(carried), m_One()))
      carried = body(carried);
    return carried;
  }
  auto loop = scf::WhileOp::create(
      builder, loc, init.getTypes(), init,
      [&](OpBuilder &, Location, ValueRange carried) {
        scf::ConditionOp::create(builder, loc, condition(carried), carried);
      },
      [&](OpBuilder &, Location, ValueRange carried) { scf::YieldOp::create(builder, loc, body(carried)); });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> ElementBuilder::ifElse(Value condition, TypeRange types, function_ref<SmallVector<Value>()> onTrue,
                                          function_ref<SmallVector<Value>()> onFalse) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return constant.isZero() ? onFalse() : onTrue();
  OpBuilder::InsertionGuard guard(builder);
  auto branch = scf::IfOp::create(builder, loc, types, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, onTrue());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, onFalse());
  return llvm::to_vector_of<Value>(branch.getResults());
}

Value ElementBuilder::ifElse(Value condition, Type type, function_ref<Value()> onTrue, function_ref<Value()> onFalse) {
  return ifElse(
             condition, TypeRange(type), [&]() -> SmallVector<Value> { return {onTrue()}; },
             [&]() -> SmallVector<Value> { return {onFalse()}; })
      .front();
}

void ElementBuilder::runIf(Value condition, function_ref<void()> body) {
  auto run = [&]() -> SmallVector<Value> {
    body();
    return {};
  };
  ifElse(condition, TypeRange(), run, []() -> SmallVector<Value> { return {}; });
}
