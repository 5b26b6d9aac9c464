//===- PoolOp.cpp - Pooling -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.pool` and `dovetail.max_pool_indices`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "WindowSupport.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

template <typename OpT> static Windows windowsOf(OpT op) {
  return getWindows(op.getKernel(), op.getStrides(), op.getDilations(), op.getPadsLow(), op.getPadsHigh());
}

/// The shape of what windows over `input` give.
template <typename AdaptorT>
static FailureOr<SmallVector<int64_t>> inferPooledShape(std::optional<Location> location, StringRef name,
                                                        RankedTensorType input, AdaptorT adaptor) {
  if (failed(verifySpatial(location, name, "input", input)))
    return failure();
  auto windows = inferWindows(location, name, input.getRank() - 2, adaptor.getKernel(), adaptor.getStrides(),
                              adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();

  SmallVector<int64_t> shape{input.getDimSize(0), input.getDimSize(1)};
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    if (window.padLow < 0 || window.padHigh < 0)
      return emitOptionalError(location, "'", name, "' op has negative pads in spatial dimension ", dim);
    int64_t padded = input.getDimSize(dim + 2) + window.padLow;
    int64_t room = padded + window.padHigh - window.span();
    if (room < 0 && !(adaptor.getCeil() && room > -window.stride))
      return emitOptionalError(location, "'", name, "' op has a window that spans ", window.span(),
                               " positions of spatial dimension ", dim, ", which has ", room + window.span(),
                               " with its pads");
    int64_t extent = (adaptor.getCeil() ? llvm::divideCeilSigned(room, window.stride) : room / window.stride) + 1;
    // A window that would start in the trailing pad is dropped.
    if (adaptor.getCeil() && (extent - 1) * window.stride >= padded)
      --extent;
    shape.push_back(extent);
  }
  return shape;
}

FailureOr<RankedTensorType> PoolOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  if (adaptor.getKind() != PoolKind::Max && !isa<FloatType>(input.getElementType()))
    return emitOptionalError(location, "'", name, "' op of kind ", stringifyPoolKind(adaptor.getKind()),
                             " needs floats, but has elements of ", input.getElementType());
  if (adaptor.getKind() == PoolKind::Lp && static_cast<int64_t>(adaptor.getP()) < 1)
    return emitOptionalError(location, "'", name, "' op has p = ", static_cast<int64_t>(adaptor.getP()),
                             ", but a norm needs 1 or more");
  auto shape = inferPooledShape(location, name, input, adaptor);
  if (failed(shape))
    return failure();
  return RankedTensorType::get(*shape, input.getElementType());
}

template <typename OpT> static OpRelation relatePooled(OpT op) {
  OpRelation relation;
  for (int64_t extent : op.getType().getShape())
    relation.loops.push_back({extent});
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  dims = {DimRelation::identity(0), DimRelation::identity(1)};
  for (auto [dim, window] : llvm::enumerate(windowsOf(op)))
    dims.push_back(
        {static_cast<int>(dim) + 2, DimMap::window(window.extent, window.stride, window.dilation, window.padLow)});
  return relation;
}

OpRelation PoolOp::getRelation() { return relatePooled(*this); }

FormatPreference PoolOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool PoolOp::isCheapElement() { return false; }

/// How many positions of the window at `index` an average divides by: those inside the operand or, with pads, those
/// before the end of the trailing pad.
static Value emitCount(PoolOp op, ElementBuilder &builder, ArrayRef<Value> index) {
  bool withPads = op.getKind() == PoolKind::AverageIncludePad;
  ArrayRef<int64_t> operandShape = op.getInput().getType().getShape().drop_front(2);
  ArrayRef<int64_t> resultShape = op.getType().getShape().drop_front(2);
  Value count = builder.index(1);
  for (auto [dim, window] : llvm::enumerate(windowsOf(op))) {
    int64_t begin = withPads ? -window.padLow : 0;
    int64_t end = operandShape[dim] + (withPads ? window.padHigh : 0);
    // Taps t with begin <= start + t*dilation < end; a bound that no window reaches is not computed.
    Value start = builder.addI(builder.mulI(index[dim], window.stride), -window.padLow);
    auto firstTapFrom = [&](int64_t bound) {
      Value distance = builder.subI(builder.index(bound + window.dilation - 1), start);
      return builder.clampI(builder.floorDivI(distance, window.dilation), 0, window.extent);
    };
    int64_t mostStart = (resultShape[dim] - 1) * window.stride - window.padLow;
    Value last = mostStart + window.span() <= end ? builder.index(window.extent) : firstTapFrom(end);
    Value first = -window.padLow >= begin ? builder.index(0) : firstTapFrom(begin);
    count = builder.create<arith::MulIOp>(count, builder.subI(last, first));
  }
  return count;
}

/// The exponent of an Lp norm applied to a magnitude.
static Value emitPower(ElementBuilder &builder, Value magnitude, int64_t p) {
  if (p == 1)
    return magnitude;
  if (p == 2)
    return builder.mul(magnitude, magnitude);
  return builder.create<math::PowFOp>(magnitude, builder.constant(magnitude.getType(), p));
}

static Value emitRoot(ElementBuilder &builder, Value power, int64_t p) {
  if (p == 1)
    return power;
  if (p == 2)
    return builder.create<math::SqrtOp>(power);
  return builder.create<math::PowFOp>(power, builder.constant(power.getType(), 1.0 / p));
}

/// Folds `body`, given the element of `input` and its coordinates, over the window at `index`.
template <typename OpT>
static Value foldElements(OpT op, ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements, Value init,
                          function_ref<Value(Value x, ArrayRef<Value> inputIndex, Value accumulator)> body) {
  return foldWindow(builder, windowsOf(op), op.getInput().getType().getShape().drop_front(2),
                    op.getType().getShape().drop_front(2), index.drop_front(2), init,
                    [&](ArrayRef<Value> position, ArrayRef<Value>, Value accumulator) -> Value {
                      SmallVector<Value> inputIndex{index[0], index[1]};
                      inputIndex.append(position.begin(), position.end());
                      return body(elements.read(0, inputIndex), inputIndex, accumulator);
                    });
}

/// The larger of both, or `accumulator` if `x` is NaN.
static Value emitMaximum(ElementBuilder &builder, Value x, Value accumulator, bool isUnsigned) {
  auto predicate = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  return builder.select(builder.compare(arith::CmpFPredicate::OGT, predicate, x, accumulator), x, accumulator);
}

Value PoolOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  Type elementType = getInput().getType().getElementType();
  PoolKind kind = getKind();
  int64_t p = getP();
  Type type = kind == PoolKind::Max ? ElementBuilder::scalarType(elementType) : getAccumulatorType(elementType);
  Value init = kind == PoolKind::Max ? builder.lowest(elementType) : builder.zero(type);

  Value folded =
      foldElements(*this, builder, index, elements, init, [&](Value x, ArrayRef<Value>, Value accumulator) -> Value {
        x = widen(builder, x, type);
        if (kind == PoolKind::Max)
          return emitMaximum(builder, x, accumulator, isUnsignedElement(elementType));
        if (kind == PoolKind::Lp)
          x = emitPower(builder, builder.create<math::AbsFOp>(x), p);
        return builder.add(accumulator, x);
      });

  switch (kind) {
  case PoolKind::Max:
    return folded;
  case PoolKind::Lp:
    return narrow(builder, emitRoot(builder, folded, p), elementType);
  case PoolKind::AverageIncludePad:
  case PoolKind::AverageExcludePad:
    break;
  }
  Value count = countToFloat(builder, emitCount(*this, builder, index.drop_front(2)), type);
  return narrow(builder, builder.div(folded, count), elementType);
}

//===----------------------------------------------------------------------===//
// Indices of maxima
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> MaxPoolIndicesOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto shape = inferPooledShape(location, getOperationName(), input, adaptor);
  if (failed(shape))
    return failure();
  return RankedTensorType::get(*shape, IntegerType::get(input.getContext(), 64));
}

OpRelation MaxPoolIndicesOp::getRelation() { return relatePooled(*this); }

bool MaxPoolIndicesOp::isCheapElement() { return false; }

Value MaxPoolIndicesOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  RankedTensorType input = getInput().getType();
  Type elementType = input.getElementType();
  Value maximum = foldElements(*this, builder, index, elements, builder.lowest(elementType),
                               [&](Value x, ArrayRef<Value>, Value accumulator) {
                                 return emitMaximum(builder, x, accumulator, isUnsignedElement(elementType));
                               });
  // The first element that equals it.
  Value found = foldElements(
      *this, builder, index, elements, builder.index(-1), [&](Value x, ArrayRef<Value> inputIndex, Value accumulator) {
        Value position = builder.index(0);
        for (int64_t i = 0; i < input.getRank(); ++i) {
          int64_t dim = getColumnMajor() && i >= 2 ? input.getRank() + 1 - i : i;
          position = builder.addI(builder.mulI(position, input.getDimSize(dim)), inputIndex[dim]);
        }
        Value isMaximum = builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, x, maximum);
        Value isFirst = builder.compareI(arith::CmpIPredicate::slt, accumulator, builder.index(0));
        return builder.select(builder.andB(isMaximum, isFirst), position, accumulator);
      });
  return builder.create<arith::IndexCastOp>(builder.getBuilder().getI64Type(), found);
}
