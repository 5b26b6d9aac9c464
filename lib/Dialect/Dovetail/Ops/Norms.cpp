//===- Norms.cpp - Softmax and normalisations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.softmax`, `dovetail.layer_norm` and `dovetail.group_norm`, but for their decompositions.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "WindowSupport.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;

/// Lets `definition` read operand 0 at the result's dimensions (read 0) and, with taps over the dimensions that are
/// `reduced`, at all that those go through (read 1). These loops are composite.
static void addCompositeReads(Definition &definition, RankedTensorType type, ArrayRef<int64_t> reduced) {
  SmallVector<layout::AccessDim> at;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    at.push_back(Definition::at(dim));
  definition.addRead(0) = at;
  for (int64_t dim : reduced) {
    definition.loops[dim].kind = LoopKind::Composite;
    at[dim] = definition.addLoop(type.getDimSize(dim), LoopKind::Tap);
  }
  definition.reads.push_back({0, std::move(at), /*isOfComposite=*/true});
}

static LogicalResult verifyFloats(std::optional<Location> location, StringRef opName, RankedTensorType operand) {
  if (isa<FloatType>(operand.getElementType()))
    return success();
  return emitOptionalError(location, "'", opName, "' op needs floats, but has elements of ", operand.getElementType());
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> SoftmaxOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(verifyFloats(location, getOperationName(), operand)) ||
      failed(verifyAxes(location, getOperationName(), axis, operand.getRank())))
    return failure();
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

Definition SoftmaxOp::getDefinition() {
  Definition definition = Definition::over(getType());
  addCompositeReads(definition, getType(), getAxis());
  return definition;
}

bool SoftmaxOp::isCheapElement() { return false; }

SmallVector<Value> SoftmaxOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type elementType = getType().getElementType();
  Type type = getAccumulatorType(elementType);
  unsigned tap = getType().getRank();
  LoopRange range{tap, builder.index(0), builder.index(body.getDefinition().loops[tap].extent)};
  Value most = builder
                   .forLoop(range.lo, range.hi, builder.lowest(type),
                            [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                              body.setLoop(tap, iv);
                              return {builder.max(carried.front(), widen(builder, body.read(1), type))};
                            })
                   .front();
  Value sum =
      sumElements(body, 1, range, type, [&](Value x) { return builder.create<math::ExpOp>(builder.sub(x, most)); });
  Value shifted = builder.sub(widen(builder, body.read(0), type), most);
  Value result = getLog() ? builder.sub(shifted, builder.create<math::LogOp>(sum))
                          : builder.div(builder.create<math::ExpOp>(shifted), sum);
  return {narrow(builder, result, elementType)};
}

//===----------------------------------------------------------------------===//
// Layer and group normalisation
//===----------------------------------------------------------------------===//

/// Whether there is a scale, a bias or both: where they are read. `dims`: of one of this type.
template <typename OpT>
static void addScaleAndBias(OpT op, Definition &definition,
                            function_ref<SmallVector<layout::AccessDim>(RankedTensorType)> dims) {
  unsigned operand = 1;
  for (TypedValue<RankedTensorType> parameter : {op.getScale(), op.getBias()})
    if (parameter)
      definition.addRead(operand++) = dims(parameter.getType());
}

/// The element normalised over what read `window` goes through with its taps, times the scale, plus the bias.
template <typename OpT> static SmallVector<Value> emitNormalised(OpT op, BodyBuilder &body, unsigned window) {
  ElementBuilder &builder = body.elements;
  const Definition &definition = body.getDefinition();
  Type elementType = op.getType().getElementType(), type = getAccumulatorType(elementType);
  SmallVector<LoopRange> ranges;
  int64_t count = 1;
  for (unsigned loop = op.getType().getRank(); loop < definition.loops.size(); ++loop) {
    int64_t extent = definition.loops[loop].extent;
    ranges.push_back({loop, builder.index(0), builder.index(extent)});
    count *= extent;
  }
  Value divisor = builder.constant(type, count);
  auto average = [&](function_ref<Value(Value)> term) {
    return builder.div(sumElements(body, window, ranges, type, term), divisor);
  };
  Value mean = average([](Value x) { return x; });
  Value variance = average([&](Value x) {
    Value deviation = builder.sub(x, mean);
    return builder.mul(deviation, deviation);
  });
  Value epsilon = builder.constant(type, op.getEpsilon().convertToFloat());
  Value scale = builder.create<math::SqrtOp>(builder.add(variance, epsilon));
  Value value = builder.div(builder.sub(widen(builder, body.read(0), type), mean), scale);
  unsigned next = window + 1;
  if (op.getScale())
    value = builder.mul(value, widen(builder, body.read(next++), type));
  if (op.getBias())
    value = builder.add(value, widen(builder, body.read(next), type));
  return {narrow(builder, value, elementType)};
}

FailureOr<RankedTensorType> LayerNormOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  int64_t axis = adaptor.getAxis();
  if (failed(verifyFloats(location, name, operand)) || failed(verifyAxes(location, name, axis, operand.getRank())))
    return failure();
  for (Value parameter : {adaptor.getScale(), adaptor.getBias()}) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    SmallVector<int64_t> shape;
    if (!OpTrait::util::getBroadcastedShape(operand.getShape(), type.getShape(), shape) ||
        shape != operand.getShape() || !isa<FloatType>(type.getElementType()))
      return emitOptionalError(location, "'", name, "' op has a scale or bias ", type,
                               " that does not broadcast to its operand ", operand);
  }
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

Definition LayerNormOp::getDefinition() {
  RankedTensorType result = getType();
  Definition definition = Definition::over(result);
  addCompositeReads(definition, result, llvm::to_vector(llvm::seq<int64_t>(getAxis(), result.getRank())));
  addScaleAndBias(*this, definition, [&](RankedTensorType type) {
    SmallVector<layout::AccessDim> dims;
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      unsigned loop = result.getRank() - type.getRank() + dim;
      dims.push_back(extent == result.getDimSize(loop) ? Definition::at(loop) : layout::IndexExpr(0));
    }
    return dims;
  });
  return definition;
}

bool LayerNormOp::isCheapElement() { return false; }

SmallVector<Value> LayerNormOp::emitBody(BodyBuilder &body) { return emitNormalised(*this, body, /*window=*/1); }

FailureOr<RankedTensorType> GroupNormOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  if (failed(verifyFloats(location, name, operand)))
    return failure();
  if (operand.getRank() < 2)
    return emitOptionalError(location, "'", name, "' op needs [N, C, spatial...], but has ", operand);
  int64_t channels = operand.getDimSize(1);
  if (failed(verifyGroups(location, name, adaptor.getGroups(), channels, "channels")))
    return failure();
  for (Value parameter : {adaptor.getScale(), adaptor.getBias()}) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    if (type.getShape() != ArrayRef<int64_t>(channels) || !isa<FloatType>(type.getElementType()))
      return emitOptionalError(location, "'", name, "' op has a scale or bias ", type, " for ", channels, " channels");
  }
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

Definition GroupNormOp::getDefinition() {
  RankedTensorType result = getType();
  int64_t perGroup = result.getDimSize(1) / static_cast<int64_t>(getGroups());
  Definition definition = Definition::over(result);
  SmallVector<layout::AccessDim> at, window;
  for (int64_t dim = 0; dim < result.getRank(); ++dim) {
    at.push_back(Definition::at(dim));
    window.push_back(Definition::at(dim));
    if (dim == 0)
      continue;
    if (dim > 1 || perGroup > 1)
      definition.loops[dim].kind = LoopKind::Composite;
    layout::IndexExpr tap = definition.addLoop(dim == 1 ? perGroup : result.getDimSize(dim), LoopKind::Tap);
    window[dim] = dim == 1 && perGroup > 0 ? Definition::at(1).floorDiv(perGroup) * perGroup + tap : tap;
  }
  definition.addRead(0) = std::move(at);
  definition.reads.push_back({0, std::move(window), /*isOfComposite=*/true});
  addScaleAndBias(*this, definition,
                  [](RankedTensorType) -> SmallVector<layout::AccessDim> { return {Definition::at(1)}; });
  return definition;
}

FormatPreference GroupNormOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool GroupNormOp::isCheapElement() { return false; }

SmallVector<Value> GroupNormOp::emitBody(BodyBuilder &body) { return emitNormalised(*this, body, /*window=*/1); }
