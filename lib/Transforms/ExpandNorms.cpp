//===- ExpandNorms.cpp - Norms as statistics and elementwise operations ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces softmax and normalisations by what takes statistics and by elementwise operations.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

namespace dovetail {
#define GEN_PASS_DEF_EXPANDNORMS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

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
} // namespace

static int64_t countElements(Value x, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= cast<RankedTensorType>(x.getType()).getDimSize(axis);
  return count;
}

/// Statistics of `x` over `axes`.
static Statistics takeStatistics(Graph &graph, Value x, ArrayRef<int64_t> axes) {
  auto moments = MomentsOp::create(graph.builder, graph.loc, x, axes, /*restarts=*/ArrayAttr());
  return {moments.getMeans(), moments.getDeviations()};
}

/// Statistics of `x` [N, C, spatial...] over space and the channels of each group, for each channel. Channels are
/// combined after space, so that large tensors keep their shape and channels may be cut anywhere.
static Statistics takeGroupStatistics(Graph &graph, Value x, int64_t groups) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, type.getRank()));
  int64_t perGroup = type.getDimSize(1) / groups;
  if (perGroup == 1)
    return takeStatistics(graph, x, axes);
  int64_t perChannel = countElements(x, axes);
  Statistics channel = takeStatistics(graph, x, axes);
  Value mean = graph.divide(graph.sumGroups(channel.mean, groups), perGroup);
  Value between = graph.scale(graph.square(graph.sub(channel.mean, mean)), perChannel);
  return {mean, graph.sumGroups(graph.add(channel.deviations, between), groups)};
}

/// 1 / sqrt(variance + epsilon).
static Value invertDeviation(Graph &graph, Value deviations, double count, double epsilon) {
  Value variance = graph.divide(deviations, count);
  return RsqrtOp::create(graph.builder, graph.loc,
                         graph.add(variance, graph.constant(getElementTypeOrSelf(variance), epsilon)));
}

static Value expand(SoftmaxOp op, Graph &graph) {
  Type elementType = op.getType().getElementType();
  Value x = graph.cast(op.getOperand(), getAccumulatorType(elementType));
  auto statistics = SumExpOp::create(graph.builder, graph.loc, x, op.getAxis(), /*restarts=*/ArrayAttr());
  Value shifted = graph.sub(x, statistics.getMaxima());
  if (op.getLog())
    return graph.cast(graph.sub(shifted, LogOp::create(graph.builder, graph.loc, statistics.getSums())), elementType);
  Value exponential = ExpOp::create(graph.builder, graph.loc, shifted);
  // One division for a row, and not one for each element.
  Value inverse = ReciprocalOp::create(graph.builder, graph.loc, statistics.getSums());
  return graph.cast(graph.mul(exponential, inverse), elementType);
}

static Value expand(LayerNormOp op, Graph &graph) {
  Type elementType = op.getType().getElementType(), type = getAccumulatorType(elementType);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), op.getType().getRank()));
  Value x = graph.cast(op.getOperand(), type);
  Statistics statistics = takeStatistics(graph, x, axes);
  Value inverse =
      invertDeviation(graph, statistics.deviations, countElements(x, axes), op.getEpsilon().convertToFloat());
  Value result = graph.mul(graph.sub(x, statistics.mean), inverse);
  if (op.getScale())
    result = graph.mul(result, graph.cast(op.getScale(), type));
  if (op.getBias())
    result = graph.add(result, graph.cast(op.getBias(), type));
  return graph.cast(result, elementType);
}

static Value expand(GroupNormOp op, Graph &graph) {
  RankedTensorType operand = op.getType();
  Type elementType = operand.getElementType(), type = getAccumulatorType(elementType);
  int64_t groups = op.getGroups();
  Value x = graph.cast(op.getOperand(), type);
  Statistics statistics = takeGroupStatistics(graph, x, groups);
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

namespace {
struct ExpandNorms : dovetail::impl::ExpandNormsBase<ExpandNorms> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      OpBuilder builder(op);
      // The name of the tensor belongs to the operation that computes it, the last one.
      Graph graph{builder, withoutTensorName(op->getLoc())};
      Value result = TypeSwitch<Operation *, Value>(op)
                         .Case<SoftmaxOp, LayerNormOp, GroupNormOp>([&](auto norm) { return expand(norm, graph); })
                         .Default(Value());
      if (!result)
        return;
      result.getDefiningOp()->setLoc(op->getLoc());
      result.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    });
  }
};
} // namespace
