//===- SampleSupport.cpp - What operations that sample images share --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how samples of images are taken.
//
//===----------------------------------------------------------------------===//

#include "SampleSupport.h"
#include "../Definition/ReductionSupport.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;
using sample::Tap;
using sample::Taps;

/// All whole numbers up to this one are f32 numbers.
static constexpr int64_t maxExact = int64_t(1) << 24;

FloatType sample::getPositionType(RankedTensorType image, Type given) {
  bool isWide = image.getElementType().isF64() || given.isF64() ||
                llvm::any_of(image.getShape().drop_front(2), [](int64_t extent) { return extent >= maxExact / 2; });
  return isWide ? FloatType(Float64Type::get(given.getContext())) : Float32Type::get(given.getContext());
}

layout::IndexExpr sample::addSampled(Definition &definition, int64_t extent, unsigned index, ReduceKind kind) {
  layout::IndexExpr loop = definition.addLookup(extent, index);
  definition.loops.back().reduction = kind;
  return loop;
}

bool sample::hasAll(BodyBuilder &body, unsigned loop) {
  auto [lo, hi] = body.getRange(loop);
  return ElementBuilder::getConstantIndex(lo) == 0 &&
         ElementBuilder::getConstantIndex(hi) == body.getDefinition().loops[loop].extent;
}

Value sample::hasCurrent(BodyBuilder &body, unsigned loop) {
  if (hasAll(body, loop))
    return body.elements.boolean(true);
  auto [lo, hi] = body.getRange(loop);
  return body.elements.andB(body.elements.compareI(arith::CmpIPredicate::sge, body.getLoop(loop), lo),
                            body.elements.compareI(arith::CmpIPredicate::slt, body.getLoop(loop), hi));
}

Value sample::limit(ElementBuilder &builder, Value x, double lo, double hi) {
  Value low = builder.constant(x.getType(), lo), high = builder.constant(x.getType(), hi);
  // In this order each of them is one instruction on x86, and a number.
  x = builder.select(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, low), x, low);
  return builder.select(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, high), x, high);
}

Value sample::toIndex(ElementBuilder &builder, Value x, int64_t extent) {
  // 32 bits where they suffice: that conversion is a vector instruction everywhere.
  Type type = builder.getBuilder().getIntegerType(extent < (int64_t(1) << 30) ? 32 : 64);
  return builder.create<arith::IndexCastOp>(builder.getBuilder().getIndexType(),
                                            builder.create<arith::FPToSIOp>(type, x));
}

Value sample::toFloat(ElementBuilder &builder, Value index, Type type) {
  Type integer = builder.getBuilder().getIntegerType(type.isF64() ? 64 : 32);
  return builder.create<arith::SIToFPOp>(type, builder.create<arith::IndexCastOp>(integer, index));
}

/// The weights of the neighbours from one before the floor on, at `t` beyond the floor (Keys, "Cubic convolution
/// interpolation for digital image processing", with -0.75, as ONNX has it).
static SmallVector<Value> getCubicWeights(ElementBuilder &builder, Value t) {
  auto number = [&](double value) { return builder.constant(t.getType(), value); };
  constexpr double a = -0.75;
  auto far = [&](Value x) {
    Value sum = builder.sub(builder.mul(number(a), x), number(5 * a));
    sum = builder.add(builder.mul(sum, x), number(8 * a));
    return builder.sub(builder.mul(sum, x), number(4 * a));
  };
  auto near = [&](Value x) {
    Value sum = builder.sub(builder.mul(number(a + 2), x), number(a + 3));
    return builder.add(builder.mul(builder.mul(sum, x), x), number(1));
  };
  return {far(builder.add(t, number(1))), near(t), near(builder.sub(number(1), t)), far(builder.sub(number(2), t))};
}

/// The position in [first, last] of which `x` is a mirror image.
static Value reflect(ElementBuilder &builder, Value x, double first, double last) {
  auto number = [&](double value) { return builder.constant(x.getType(), value); };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) {
    return builder.create<arith::CmpFOp>(predicate, a, b);
  };
  if (first == last)
    return number(first);
  Value lo = number(first), hi = number(last), range = number(last - first);
  Value isBelow = compare(arith::CmpFPredicate::OLT, x, lo), isAbove = compare(arith::CmpFPredicate::OGT, x, hi);
  Value beyond = builder.select(isBelow, builder.sub(lo, x), builder.sub(x, hi));
  Value count = builder.create<math::FloorOp>(builder.div(beyond, range));
  Value rest = builder.sub(beyond, builder.mul(count, range));
  Value half = builder.mul(count, number(0.5));
  Value isEven = compare(arith::CmpFPredicate::OEQ, half, builder.create<math::FloorOp>(half));
  Value fromFirst = builder.create<arith::CmpIOp>(arith::CmpIPredicate::eq, isBelow, isEven);
  Value reflected = builder.select(fromFirst, builder.add(lo, rest), builder.sub(hi, rest));
  return builder.select(builder.create<arith::OrIOp>(isBelow, isAbove), reflected, x);
}

/// `x`, a whole number within two of [0, extent), or the one in it that is its mirror image.
static Value reflectNeighbour(ElementBuilder &builder, Value x, int64_t extent, bool atCentres) {
  auto number = [&](double value) { return builder.constant(x.getType(), value); };
  double before = atCentres ? 0 : -1, after = static_cast<double>(atCentres ? 2 * extent - 2 : 2 * extent - 1);
  auto extreme = [&](arith::CmpFPredicate predicate, double sum) {
    Value other = builder.sub(number(sum), x);
    x = builder.select(builder.create<arith::CmpFOp>(predicate, x, other), x, other);
  };
  extreme(arith::CmpFPredicate::OGT, before);
  extreme(arith::CmpFPredicate::OLT, after);
  // Few elements: what is beyond the one end may be beyond the other then.
  if (extent < 3)
    extreme(arith::CmpFPredicate::OGT, before);
  return x;
}

Taps sample::getTaps(BodyBuilder &body, unsigned loop, Value x, ResizeMode mode, PadMode padding,
                     bool isMirroredAtCentres) {
  ElementBuilder &builder = body.elements;
  int64_t extent = body.getDefinition().loops[loop].extent;
  auto number = [&](double value) { return builder.constant(x.getType(), value); };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) {
    return builder.create<arith::CmpFOp>(predicate, a, b);
  };
  double last = static_cast<double>(extent) - 1;
  double first = isMirroredAtCentres ? 0 : -0.5, end = isMirroredAtCentres ? last : last + 0.5;
  if (mode == ResizeMode::Nearest)
    x = builder.create<math::RoundEvenOp>(x);
  // Only what is beyond the edges moves, as ONNX has it: cubic weights tell the difference.
  if (padding == PadMode::Edge) {
    Value isBeyond = builder.create<arith::OrIOp>(compare(arith::CmpFPredicate::ULT, x, number(first)),
                                                  compare(arith::CmpFPredicate::OGT, x, number(end)));
    x = builder.select(isBeyond, limit(builder, x, 0, last), x);
  } else if (padding == PadMode::Reflect) {
    x = limit(builder, reflect(builder, x, first, end), first, end);
  } else {
    // Beyond that no neighbour is inside.
    x = limit(builder, x, -3, last + 3);
  }

  SmallVector<Value> weights;
  Value start = x;
  if (mode != ResizeMode::Nearest) {
    start = builder.create<math::FloorOp>(x);
    Value t = builder.sub(x, start);
    if (mode == ResizeMode::Linear) {
      weights = {builder.sub(number(1), t), t};
    } else {
      weights = getCubicWeights(builder, t);
      start = builder.sub(start, number(1));
    }
  }
  Taps result{loop, {}};
  for (unsigned tap = 0, e = std::max<size_t>(weights.size(), 1); tap < e; ++tap) {
    Value at = tap == 0 ? start : builder.add(start, number(tap)), isInside;
    if (padding == PadMode::Reflect)
      at = reflectNeighbour(builder, at, extent, isMirroredAtCentres);
    else if (padding == PadMode::Constant)
      isInside = builder.andB(compare(arith::CmpFPredicate::OGE, at, number(0)),
                              compare(arith::CmpFPredicate::OLE, at, number(last)));
    Value coordinate = toIndex(builder, limit(builder, at, 0, last), extent);
    result.taps.push_back({coordinate, isInside, weights.empty() ? Value() : weights[tap]});
  }
  return result;
}

Value sample::readOwn(BodyBuilder &body, unsigned read, ArrayRef<unsigned> loops, Value condition, Type type,
                      Value otherwise) {
  ElementBuilder &builder = body.elements;
  bool isWhole = llvm::all_of(loops, [&](unsigned loop) { return sample::hasAll(body, loop); });
  auto element = [&] { return widen(builder, body.read(read), type); };
  // What there is can be read anyway: a selection is cheaper than a branch.
  if (isWhole)
    return builder.select(condition, element(), otherwise);
  for (unsigned loop : loops)
    condition = builder.andB(condition, hasCurrent(body, loop));
  return builder.guarded(condition, type, element, otherwise);
}

/// The sum over the neighbours along `dims`, those before having been chosen.
static Value sumTaps(BodyBuilder &body, unsigned read, ArrayRef<Taps> dims, ArrayRef<unsigned> loops, Value condition,
                     Type type) {
  ElementBuilder &builder = body.elements;
  if (dims.empty())
    return sample::readOwn(body, read, loops, condition, type, builder.zero(type));
  Value sum;
  for (const Tap &tap : dims.front().taps) {
    body.setLoop(dims.front().loop, tap.coordinate);
    Value isInside = tap.isInside ? builder.andB(condition, tap.isInside) : condition;
    Value term = sumTaps(body, read, dims.drop_front(), loops, isInside, type);
    if (tap.weight)
      term = builder.mul(builder.convertFloat(tap.weight, cast<FloatType>(type)), term);
    sum = sum ? builder.add(sum, term) : term;
  }
  return sum;
}

Value sample::emitSum(BodyBuilder &body, unsigned read, ArrayRef<Taps> dims, Type type) {
  auto loops = llvm::map_to_vector(dims, [](const Taps &taps) { return taps.loop; });
  return sumTaps(body, read, dims, loops, body.elements.boolean(true), type);
}

LogicalResult sample::verifyImage(std::optional<Location> location, StringRef opName, RankedTensorType image,
                                  ArrayRef<int64_t> result) {
  if (image.getRank() < 3)
    return emitOptionalError(location, "'", opName, "' op has an image of type ", image,
                             "; it needs a batch, channels and spatial dimensions");
  if (llvm::is_contained(result, 0))
    return success();
  for (auto [dim, extent] : llvm::enumerate(image.getShape()))
    if (extent == 0)
      return emitOptionalError(location, "'", opName, "' op samples dimension ", dim, " of ", image,
                               ", which has no elements");
  return success();
}
