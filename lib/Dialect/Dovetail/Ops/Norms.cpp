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

/// The first operand dimension for dimension, with identities; `isReduced` says which are composite loops.
static OpRelation relateOperand(RankedTensorType type, function_ref<bool(int64_t dim)> isReduced) {
  OpRelation relation;
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    relation.loops.push_back({extent, isReduced(dim) ? LoopKind::Composite : LoopKind::Parallel});
    dims.push_back(DimRelation::identity(dim));
  }
  return relation;
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

OpRelation SoftmaxOp::getRelation() {
  int64_t axis = getAxis();
  return relateOperand(getType(), [&](int64_t dim) { return dim == axis; });
}

bool SoftmaxOp::isCheapElement() { return false; }

Value SoftmaxOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  Type elementType = getType().getElementType();
  Type type = getAccumulatorType(elementType);
  int64_t axis = getAxis();
  Value first = builder.index(0), end = builder.index(getType().getDimSize(axis));
  Value most =
      builder
          .forLoop(first, end, builder.lowest(type),
                   [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                     SmallVector<Value> coordinates(index);
                     coordinates[axis] = iv;
                     return {builder.max(carried.front(), widen(builder, elements.read(0, coordinates), type))};
                   })
          .front();
  Value sum = sumElements(builder, elements, index, DimRange{axis, first, end}, type,
                          [&](Value x) { return builder.create<math::ExpOp>(builder.sub(x, most)); });
  Value shifted = builder.sub(widen(builder, elements.read(0, index), type), most);
  Value result = getLog() ? builder.sub(shifted, builder.create<math::LogOp>(sum))
                          : builder.div(builder.create<math::ExpOp>(shifted), sum);
  return narrow(builder, result, elementType);
}

//===----------------------------------------------------------------------===//
// Layer and group normalisation
//===----------------------------------------------------------------------===//

/// The normalised element at `index`, of `type`: over `ranges` around it, which have `count` elements.
static Value emitNormalised(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements,
                            ArrayRef<DimRange> ranges, int64_t count, float epsilon, Type type) {
  Value divisor = builder.constant(type, count);
  auto average = [&](function_ref<Value(Value)> term) {
    return builder.div(sumElements(builder, elements, index, ranges, type, term), divisor);
  };
  Value mean = average([](Value x) { return x; });
  Value variance = average([&](Value x) {
    Value deviation = builder.sub(x, mean);
    return builder.mul(deviation, deviation);
  });
  Value scale = builder.create<math::SqrtOp>(builder.add(variance, builder.constant(type, epsilon)));
  return builder.div(builder.sub(widen(builder, elements.read(0, index), type), mean), scale);
}

/// `value * scale + bias`, each if present, read at the coordinates that `coordinatesOf` gives for its type.
template <typename OpT>
static Value emitScaleAndBias(OpT op, ElementBuilder &builder, ElementSource &elements, Value value,
                              function_ref<SmallVector<Value>(RankedTensorType)> coordinatesOf) {
  unsigned operand = 1;
  auto read = [&](TypedValue<RankedTensorType> tensor) {
    return widen(builder, elements.read(operand++, coordinatesOf(tensor.getType())), value.getType());
  };
  if (op.getScale())
    value = builder.mul(value, read(op.getScale()));
  if (op.getBias())
    value = builder.add(value, read(op.getBias()));
  return narrow(builder, value, op.getType().getElementType());
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

OpRelation LayerNormOp::getRelation() {
  int64_t axis = getAxis();
  OpRelation relation = relateOperand(getType(), [&](int64_t dim) { return dim >= axis; });
  relation.operands = getElementwiseRelation(*this).operands;
  return relation;
}

bool LayerNormOp::isCheapElement() { return false; }

Value LayerNormOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  RankedTensorType result = getType();
  SmallVector<DimRange> ranges;
  int64_t count = 1;
  for (int64_t dim = getAxis(); dim < result.getRank(); ++dim) {
    ranges.push_back({dim, builder.index(0), builder.index(result.getDimSize(dim))});
    count *= result.getDimSize(dim);
  }
  Value normalised = emitNormalised(builder, index, elements, ranges, count, getEpsilon().convertToFloat(),
                                    getAccumulatorType(result.getElementType()));
  return emitScaleAndBias(*this, builder, elements, normalised, [&](RankedTensorType type) {
    SmallVector<Value> coordinates;
    int64_t offset = result.getRank() - type.getRank();
    for (auto [dim, extent] : llvm::enumerate(type.getShape()))
      coordinates.push_back(extent == result.getDimSize(offset + dim) ? index[offset + dim] : builder.index(0));
    return coordinates;
  });
}

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

OpRelation GroupNormOp::getRelation() {
  bool mixesChannels = getType().getDimSize(1) != static_cast<int64_t>(getGroups());
  OpRelation relation = relateOperand(getType(), [&](int64_t dim) { return dim >= 2 || (dim == 1 && mixesChannels); });
  relation.operands.resize(getNumOperands(), {DimRelation::identity(1)});
  return relation;
}

FormatPreference GroupNormOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool GroupNormOp::isCheapElement() { return false; }

Value GroupNormOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  RankedTensorType result = getType();
  int64_t perGroup = result.getDimSize(1) / static_cast<int64_t>(getGroups());
  Value firstChannel = builder.mulI(builder.floorDivI(index[1], perGroup), perGroup);
  SmallVector<DimRange> ranges{{1, firstChannel, builder.addI(firstChannel, perGroup)}};
  int64_t count = perGroup;
  for (int64_t dim = 2; dim < result.getRank(); ++dim) {
    ranges.push_back({dim, builder.index(0), builder.index(result.getDimSize(dim))});
    count *= result.getDimSize(dim);
  }
  Value normalised = emitNormalised(builder, index, elements, ranges, count, getEpsilon().convertToFloat(),
                                    getAccumulatorType(result.getElementType()));
  return emitScaleAndBias(*this, builder, elements, normalised,
                          [&](RankedTensorType) { return SmallVector<Value>{index[1]}; });
}
