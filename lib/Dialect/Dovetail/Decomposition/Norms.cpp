//===- Norms.cpp - Softmax and normalisations by simpler operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the decompositions of composite operations.
//
//===----------------------------------------------------------------------===//

#include "../Ops/ReductionSupport.h"

#include "dovetail/Dialect/Dovetail/Decomposition/Decompose.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// Builds operations whose types are inferred.
struct Graph {
  OpBuilder &builder;
  Location loc;

  Value constant(Type elementType, double value) {
    auto type = RankedTensorType::get({}, elementType);
    Attribute element = FloatAttr::get(elementType, value);
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, element));
  }
  Value cast(Value x, Type elementType) {
    return getElementTypeOrSelf(x) == elementType ? x : CastOp::create(builder, loc, x, elementType);
  }
  Value add(Value a, Value b) { return AddOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return SubOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return MulOp::create(builder, loc, a, b); }
  Value scale(Value x, double factor) { return mul(x, constant(getElementTypeOrSelf(x), factor)); }
  Value divide(Value x, double divisor) {
    return DivOp::create(builder, loc, x, constant(getElementTypeOrSelf(x), divisor));
  }
  Value square(Value x) { return mul(x, x); }
  Value reduce(Value x, ReduceKind kind, ArrayRef<int64_t> axes) {
    return ReduceOp::create(builder, loc, x, kind, axes);
  }
  Value sum(Value x, ArrayRef<int64_t> axes) { return reduce(x, ReduceKind::Sum, axes); }
  Value reshape(Value x, ArrayRef<int64_t> shape) {
    return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, getElementTypeOrSelf(x)), x);
  }
  Value broadcast(Value x, ArrayRef<int64_t> shape) {
    return BroadcastOp::create(builder, loc, RankedTensorType::get(shape, getElementTypeOrSelf(x)), x);
  }
  /// Element `position` of the last dimension, which is dropped.
  Value takeLast(Value x, int64_t position) {
    auto type = llvm::cast<RankedTensorType>(x.getType());
    SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()), steps(type.getRank(), 1);
    starts.back() = position;
    sizes.back() = 1;
    return reshape(SliceOp::create(builder, loc, x, starts, sizes, steps), ArrayRef(sizes).drop_back());
  }
  /// `shape` is [N, C, ...] with extents 1 behind C: the sum over the channels of each group, for each channel.
  Value sumGroups(Value x, int64_t groups) {
    SmallVector<int64_t> shape(llvm::cast<RankedTensorType>(x.getType()).getShape());
    int64_t perGroup = shape[1] / groups;
    if (perGroup == 1)
      return x;
    SmallVector<int64_t, 3> grouped{shape[0], groups, perGroup};
    return reshape(broadcast(sum(reshape(x, grouped), 2), grouped), shape);
  }
};

/// Mean and sum of squared deviations over some dimensions, which are kept with extent 1.
struct Statistics {
  Value mean, deviations;
};

/// How statistics are taken.
enum class Passes {
  /// `dovetail.moments`: parts of a split dimension combine without cancellation.
  Moments,
  /// A sum for the mean, then one of squared deviations.
  Two
};
} // namespace

static int64_t countElements(Value x, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= cast<RankedTensorType>(x.getType()).getDimSize(axis);
  return count;
}

/// Statistics of `x` over `axes`.
static Statistics takeStatistics(Graph &graph, Value x, ArrayRef<int64_t> axes, Passes passes) {
  if (passes == Passes::Moments) {
    Value moments = MomentsOp::create(graph.builder, graph.loc, x, axes);
    return {graph.takeLast(moments, 1), graph.takeLast(moments, 2)};
  }
  Value mean = graph.divide(graph.sum(x, axes), countElements(x, axes));
  return {mean, graph.sum(graph.square(graph.sub(x, mean)), axes)};
}

/// Statistics of `x` [N, C, spatial...] over space and the channels of each group, for each channel. Channels are
/// combined after space, so that large tensors keep their shape and channels may be cut anywhere.
static Statistics takeGroupStatistics(Graph &graph, Value x, int64_t groups, Passes passes) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, type.getRank()));
  int64_t perGroup = type.getDimSize(1) / groups;
  if (perGroup == 1)
    return takeStatistics(graph, x, axes, passes);
  int64_t perChannel = countElements(x, axes);
  if (passes == Passes::Moments) {
    Statistics channel = takeStatistics(graph, x, axes, passes);
    Value mean = graph.divide(graph.sumGroups(channel.mean, groups), perGroup);
    Value between = graph.scale(graph.square(graph.sub(channel.mean, mean)), perChannel);
    return {mean, graph.sumGroups(graph.add(channel.deviations, between), groups)};
  }
  Value mean = graph.divide(graph.sumGroups(graph.sum(x, axes), groups),
                            static_cast<double>(perChannel) * static_cast<double>(perGroup));
  return {mean, graph.sumGroups(graph.sum(graph.square(graph.sub(x, mean)), axes), groups)};
}

/// 1 / sqrt(variance + epsilon).
static Value invertDeviation(Graph &graph, Value deviations, double count, double epsilon) {
  Value variance = graph.divide(deviations, count);
  return RsqrtOp::create(graph.builder, graph.loc,
                         graph.add(variance, graph.constant(getElementTypeOrSelf(variance), epsilon)));
}

static Value decomposeSoftmax(SoftmaxOp op, OpBuilder &builder) {
  Graph graph{builder, op.getLoc()};
  Type elementType = op.getType().getElementType();
  int64_t axis = op.getAxis();
  Value x = graph.cast(op.getOperand(), getAccumulatorType(elementType));
  Value shifted = graph.sub(x, graph.reduce(x, ReduceKind::Max, axis));
  Value exponential = ExpOp::create(builder, op.getLoc(), shifted);
  Value sum = graph.sum(exponential, axis);
  Value result = op.getLog() ? graph.sub(shifted, LogOp::create(builder, op.getLoc(), sum))
                             : DivOp::create(builder, op.getLoc(), exponential, sum).getResult();
  return graph.cast(result, elementType);
}

static Value decomposeLayerNorm(LayerNormOp op, OpBuilder &builder, Passes passes) {
  Graph graph{builder, op.getLoc()};
  Type elementType = op.getType().getElementType(), type = getAccumulatorType(elementType);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), op.getType().getRank()));
  Value x = graph.cast(op.getOperand(), type);
  Statistics statistics = takeStatistics(graph, x, axes, passes);
  Value inverse =
      invertDeviation(graph, statistics.deviations, countElements(x, axes), op.getEpsilon().convertToFloat());
  Value result = graph.mul(graph.sub(x, statistics.mean), inverse);
  if (op.getScale())
    result = graph.mul(result, graph.cast(op.getScale(), type));
  if (op.getBias())
    result = graph.add(result, graph.cast(op.getBias(), type));
  return graph.cast(result, elementType);
}

static Value decomposeGroupNorm(GroupNormOp op, OpBuilder &builder, Passes passes) {
  Graph graph{builder, op.getLoc()};
  RankedTensorType operand = op.getType();
  Type elementType = operand.getElementType(), type = getAccumulatorType(elementType);
  int64_t groups = op.getGroups();
  Value x = graph.cast(op.getOperand(), type);
  Statistics statistics = takeGroupStatistics(graph, x, groups, passes);
  double count = static_cast<double>(operand.getDimSize(1) / groups);
  for (int64_t extent : operand.getShape().drop_front(2))
    count *= static_cast<double>(extent);
  // One factor and one summand for each channel, [C, 1, ...].
  SmallVector<int64_t> perChannel(operand.getRank() - 1, 1);
  perChannel[0] = operand.getDimSize(1);
  Value factor = invertDeviation(graph, statistics.deviations, count, op.getEpsilon().convertToFloat());
  if (op.getScale())
    factor = graph.mul(factor, graph.reshape(graph.cast(op.getScale(), type), perChannel));
  Value result = graph.mul(graph.sub(x, statistics.mean), factor);
  if (op.getBias())
    result = graph.add(result, graph.reshape(graph.cast(op.getBias(), type), perChannel));
  return graph.cast(result, elementType);
}

FailureOr<Value> SoftmaxOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr>) {
  return decomposeSoftmax(*this, builder);
}

FailureOr<Value> LayerNormOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr>) {
  return decomposeLayerNorm(*this, builder, Passes::Moments);
}

FailureOr<Value> GroupNormOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr>) {
  return decomposeGroupNorm(*this, builder, Passes::Moments);
}

FailureOr<Value> dovetail::decomposeUnsplit(Operation *op, OpBuilder &builder) {
  if (auto norm = dyn_cast<LayerNormOp>(op))
    return decomposeLayerNorm(norm, builder, Passes::Two);
  if (auto norm = dyn_cast<GroupNormOp>(op))
    return decomposeGroupNorm(norm, builder, Passes::Two);
  auto composite = dyn_cast<DefinitionOpInterface>(op);
  return composite ? composite.decompose(builder, {}) : FailureOr<Value>(failure());
}
