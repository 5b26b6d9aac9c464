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

#include "../Definition/ReductionSupport.h"
#include "WindowSupport.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

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
    if (window.pad < 0 || window.padHigh < 0)
      return emitOptionalError(location, "'", name, "' op has negative pads in spatial dimension ", dim);
    int64_t padded = input.getDimSize(dim + 2) + window.pad;
    int64_t room = padded + window.padHigh - window.reach();
    // Between -1 and 1, a number of windows rounds to none.
    if (room <= -2 * window.stride)
      return emitOptionalError(location, "'", name, "' op has a window that spans ", window.reach(),
                               " positions of spatial dimension ", dim, ", which has ", room + window.reach(),
                               " with its pads");
    int64_t extent = (adaptor.getCeil() ? llvm::divideCeilSigned(room, window.stride)
                                        : std::max<int64_t>(llvm::divideFloorSigned(room, window.stride), -1)) +
                     1;
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

/// Windows over the input, over whose elements both operations fold.
template <typename OpT> static Definition definePooled(OpT op) {
  Windows windows = windowsOf(op);
  Definition definition = Definition::over(op.getType());
  definition.isFold = true;
  SmallVector<IndexExpr> taps = addTaps(definition, windows);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  dims = {Definition::at(0), Definition::at(1)};
  for (auto [dim, window] : llvm::enumerate(windows))
    dims.push_back(window.at(Definition::at(dim + 2), taps[dim]));
  return definition;
}

Definition PoolOp::getDefinition() { return definePooled(*this); }

/// Windows that `ceil` adds may reach beyond the pads, which accesses do not tell.
std::optional<CallForm> PoolOp::getCallForm() {
  if (getCeil() || getKind() == PoolKind::Lp)
    return std::nullopt;
  Definition definition = getDefinition();
  auto form = calls::PoolForm::find(definition.reads.front().dims, getExtents(definition.loops));
  return form ? std::optional<CallForm>(PoolCall{*std::move(form), getKind()}) : std::nullopt;
}

FormatPreference PoolOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

/// How many positions of the window at `index` an average divides by: those inside the operand or, with pads, those
/// before the end of the trailing pad.
static Value emitCount(PoolOp op, BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  bool withPads = op.getKind() == PoolKind::AverageIncludePad;
  const Definition &definition = body.getDefinition();
  ArrayRef<layout::AccessDim> dims = definition.reads[0].dims;
  SmallVector<layout::Interval> ranges = definition.getRanges();
  unsigned firstTap = definition.loops.size() - definition.getNumTaps();
  for (unsigned tap = firstTap; tap < definition.loops.size(); ++tap)
    body.setLoop(tap, builder.index(0));
  SmallVector<Value> starts = body.getIndex(0);
  Value count = builder.index(1);
  for (auto [number, window] : llvm::enumerate(windowsOf(op))) {
    unsigned dim = number + 2;
    int64_t extent = window.kernel, dilation = window.dilation;
    layout::Interval reached = dims[dim].need(ranges);
    int64_t begin = withPads ? -window.pad : 0;
    int64_t end = op.getInput().getType().getDimSize(dim) + (withPads ? window.padHigh : 0);
    // Taps t with begin <= start + t*dilation < end; a bound that no window reaches is not computed.
    auto firstTapFrom = [&](int64_t bound) {
      Value distance = builder.subI(builder.index(bound + dilation - 1), starts[dim]);
      return builder.clampI(builder.floorDivI(distance, dilation), 0, extent);
    };
    Value last = reached.hi <= end ? builder.index(extent) : firstTapFrom(end);
    Value first = reached.lo >= begin ? builder.index(0) : firstTapFrom(begin);
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

/// The larger of both, or `accumulator` if `x` is NaN.
static Value emitMaximum(ElementBuilder &builder, Value x, Value accumulator, bool isUnsigned) {
  auto predicate = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  return builder.select(builder.compare(arith::CmpFPredicate::OGT, predicate, x, accumulator), x, accumulator);
}

SmallVector<Value> PoolOp::emitInit(ElementBuilder &builder) {
  Type elementType = getInput().getType().getElementType();
  return {getKind() == PoolKind::Max ? builder.lowest(elementType) : builder.zero(getAccumulatorType(elementType))};
}

SmallVector<Value> PoolOp::emitBody(BodyBuilder &body) {
  Value x = body.read(0);
  if (getKind() == PoolKind::Max)
    return {x};
  x = widen(body.elements, x, getAccumulatorType(getInput().getType().getElementType()));
  if (getKind() == PoolKind::Lp)
    x = emitPower(body.elements, body.elements.create<math::AbsFOp>(x), getP());
  return {x};
}

SmallVector<Value> PoolOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  if (getKind() == PoolKind::Max)
    return {emitMaximum(builder, term[0], accumulators[0], isUnsignedElement(getInput().getType()))};
  return {builder.add(accumulators[0], term[0])};
}

SmallVector<Value> PoolOp::emitFinish(BodyBuilder &body, ValueRange accumulators) {
  ElementBuilder &builder = body.elements;
  Value folded = accumulators.front();
  switch (getKind()) {
  case PoolKind::Max:
    return {folded};
  case PoolKind::Lp:
    folded = emitRoot(builder, folded, getP());
    break;
  case PoolKind::AverageIncludePad:
  case PoolKind::AverageExcludePad: {
    Value count = emitCount(*this, body);
    folded = builder.div(folded, countToFloat(builder, count, folded.getType()));
    break;
  }
  }
  return {narrow(builder, folded, getType().getElementType())};
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

Definition MaxPoolIndicesOp::getDefinition() { return definePooled(*this); }

SmallVector<Value> MaxPoolIndicesOp::emitInit(ElementBuilder &builder) {
  return {builder.lowest(getInput().getType().getElementType()), builder.index(-1)};
}

/// The element and its position.
SmallVector<Value> MaxPoolIndicesOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType input = getInput().getType();
  SmallVector<Value> index = body.getIndex(0);
  Value position = builder.index(0);
  for (int64_t i = 0; i < input.getRank(); ++i) {
    int64_t dim = getColumnMajor() && i >= 2 ? input.getRank() + 1 - i : i;
    position = builder.addI(builder.mulI(position, input.getDimSize(dim)), index[dim]);
  }
  return {body.read(0), position};
}

/// The larger element, among equals the first, with its position. Even the least value of the type is one, NaN is none.
SmallVector<Value> MaxPoolIndicesOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  bool isUnsigned = isUnsignedElement(getInput().getType());
  auto greater = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  Value isGreater = builder.compare(arith::CmpFPredicate::OGT, greater, term[0], accumulators[0]);
  Value isEqual = builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, term[0], accumulators[0]);
  Value isFirst = builder.compareI(arith::CmpIPredicate::slt, accumulators[1], builder.index(0));
  Value isBetter = builder.create<arith::OrIOp>(isGreater, builder.andB(isEqual, isFirst));
  return {builder.select(isBetter, term[0], accumulators[0]), builder.select(isBetter, term[1], accumulators[1])};
}

SmallVector<Value> MaxPoolIndicesOp::emitFinish(BodyBuilder &body, ValueRange accumulators) {
  return {body.elements.create<arith::IndexCastOp>(body.elements.getBuilder().getI64Type(), accumulators[1])};
}
