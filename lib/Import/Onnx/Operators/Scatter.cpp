//===- Scatter.cpp - Placing elements where data say ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

#include "llvm/ADT/StringSwitch.h"

using namespace dovetail;
using namespace dovetail::importer;

/// How an update and what is there combine; null if the update replaces it.
static llvm::FailureOr<ReduceKindAttr> readReduction(OnnxNode &node) {
  llvm::StringRef name = node.getString("reduction", "none");
  if (name == "none")
    return ReduceKindAttr();
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(name)
                  .Case("add", ReduceKind::Sum)
                  .Case("mul", ReduceKind::Prod)
                  .Case("max", ReduceKind::Max)
                  .Case("min", ReduceKind::Min)
                  .Default(std::nullopt);
  if (!kind)
    return node.invalid("'reduction' is '" + name + "'; expected none, add, mul, max or min");
  return ReduceKindAttr::get(node.getBuilder().getContext(), *kind);
}

namespace {

/// Updates of which there are as many as only runs know. Those in tails are carried out, too, and change nothing: they
/// repeat the last update, or write the neutral element of the reduction. Where there is no update, they write what is
/// there.
class BoundedScatter {
public:
  BoundedScatter(OnnxNode &node, ReduceKindAttr reduction)
      : data(node.getInput(0)), places(node.getInput(1)), updates(node.getInput(2)), node(node), reduction(reduction) {}

  mlir::Value data, places, updates;

  bool isBounded() const {
    return llvm::any_of(node.getInputs(), [&](mlir::Value input) { return !node.getCounts(input).empty(); });
  }
  /// For ScatterElements along `axis`.
  llvm::LogicalResult prepareElements(int64_t axis);
  /// For ScatterND.
  llvm::LogicalResult prepareSlices();

private:
  /// That the first `rank` dimensions of places and updates are the same ones: of their bounds the lesser is that of
  /// both.
  llvm::LogicalResult unify(int64_t rank);
  llvm::ArrayRef<int64_t> getShape(mlir::Value value) const { return OnnxNode::getShape(value); }
  mlir::Value crop(mlir::Value value, int64_t dim, int64_t size);
  /// Where dimension `dim` of places is beyond `count`; broadcasts to places.
  mlir::Value findTail(int64_t dim, mlir::Value count) {
    return node.create<GreaterOrEqualOp>(node.countAlong(OnnxNode::getRank(places), dim, getShape(places)[dim]), count);
  }
  /// The first elements of the data, so many in each dimension.
  mlir::Value getFirst(llvm::ArrayRef<int64_t> sizes);
  /// `places`, counted from the beginning of what there is along dimensions of `data`; what is outside becomes
  /// `bounds`. `extents` and `bounds` are one, or one for each number of a place.
  void countFromBegin(mlir::Value extents, llvm::ArrayRef<int64_t> bounds);
  mlir::Value getExtent(int64_t dim) {
    mlir::Value count = node.getCount(data, dim);
    return count ? node.reshape(count, 1) : node.constantInts(getShape(data)[dim]);
  }
  /// Writes `first` at place 0 where `isTail`, of the rank of places, holds. `isTailOfUpdates` is the same of the rank
  /// of updates. `counts` bound updates from then on.
  void silence(mlir::Value isTail, mlir::Value isTailOfUpdates, mlir::Value first, Counts counts);

  OnnxNode &node;
  ReduceKindAttr reduction;
};

} // namespace

mlir::Value BoundedScatter::crop(mlir::Value value, int64_t dim, int64_t size) {
  llvm::SmallVector<int64_t> sizes(getShape(value)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  Counts counts(node.getCounts(value));
  sizes[dim] = size;
  return node.state(node.slice(value, starts, sizes, steps), counts);
}

llvm::LogicalResult BoundedScatter::unify(int64_t rank) {
  for (int64_t dim = 0; dim < rank; ++dim) {
    mlir::Value count = node.getCount(places, dim), other = node.getCount(updates, dim);
    if (count == other)
      continue;
    if (!count || !other)
      return node.unsupported(node.describeBounded(count ? "operand 1" : "operand 2", count ? places : updates,
                                                   "the other one has another extent there"));
    int64_t bound = getShape(places)[dim], otherBound = getShape(updates)[dim];
    mlir::Value &larger = bound > otherBound ? places : updates;
    if (bound != otherBound)
      larger = crop(larger, dim, std::min(bound, otherBound));
    larger = node.agree(larger, dim, bound > otherBound ? other : count);
  }
  return llvm::success();
}

mlir::Value BoundedScatter::getFirst(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t> starts(sizes.size(), 0), steps(sizes.size(), 1);
  mlir::Value first = node.slice(data, starts, sizes, steps);
  // The bounds of the data itself stay.
  return first == data ? node.clearTails(data) : node.stateUnbounded(first);
}

void BoundedScatter::countFromBegin(mlir::Value extents, llvm::ArrayRef<int64_t> bounds) {
  Counts counts(node.getCounts(places));
  places = node.state(node.countFromBegin(places, extents, node.constantInts(bounds)), counts);
}

void BoundedScatter::silence(mlir::Value isTail, mlir::Value isTailOfUpdates, mlir::Value first, Counts counts) {
  places = node.stateUnbounded(node.create<SelectOp>(isTail, node.scalarLike(places, 0), places));
  updates = node.state(node.create<SelectOp>(isTailOfUpdates, first, updates), std::move(counts));
}

llvm::LogicalResult BoundedScatter::prepareElements(int64_t axis) {
  int64_t rank = OnnxNode::getRank(places);
  if (OnnxNode::getRank(updates) != rank || OnnxNode::getRank(data) != rank)
    return llvm::success();
  if (failed(unify(rank)))
    return llvm::failure();
  if (node.getCount(data, axis))
    countFromBegin(getExtent(axis), getShape(data)[axis]);
  Counts counts(node.getCounts(places));
  if (counts.empty() || OnnxNode::getType(data).getNumElements() == 0)
    return llvm::success();
  mlir::Value isTail;
  for (auto [dim, count] : llvm::enumerate(counts)) {
    if (!count)
      continue;
    mlir::Value own =
        static_cast<int64_t>(dim) == axis && !reduction
            ? node.create<EqualOp>(node.reshape(count, llvm::SmallVector<int64_t>(rank, 1)), node.scalarLike(count, 0))
            : findTail(dim, count);
    if (static_cast<int64_t>(dim) == axis && !reduction) {
      places = node.repeatLast(places, dim);
      updates = node.repeatLast(updates, dim);
    }
    isTail = isTail ? node.create<OrOp>(isTail, own) : own;
  }
  mlir::Value first;
  if (reduction) {
    first = node.neutralLike(updates, reduction.getValue());
  } else {
    llvm::SmallVector<int64_t> sizes(getShape(places));
    sizes[axis] = 1;
    first = getFirst(sizes);
  }
  silence(isTail, isTail, first, {});
  return llvm::success();
}

llvm::LogicalResult BoundedScatter::prepareSlices() {
  int64_t batch = OnnxNode::getRank(places) - 1, depth = batch < 0 ? 0 : getShape(places).back();
  if (batch < 0 || depth > OnnxNode::getRank(data) ||
      OnnxNode::getRank(updates) != batch + OnnxNode::getRank(data) - depth)
    return llvm::success();
  if (node.getCount(places, batch))
    return node.unsupported(node.describeBounded("operand 1", places, "a place has as many numbers in all runs"));
  if (failed(unify(batch)))
    return llvm::failure();
  // Elements of a slice are those of the data.
  for (int64_t dim = batch; dim < OnnxNode::getRank(updates); ++dim) {
    mlir::Value count = node.getCount(updates, dim), own = node.getCount(data, dim - batch + depth);
    if (count && own && count != own)
      updates = node.agree(updates, dim, own);
    else if (count != own)
      return node.unsupported(node.describeBounded(count ? "operand 2" : "operand 0", count ? updates : data,
                                                   "slices that are written have another extent"));
  }
  bool isIndexed = false;
  llvm::SmallVector<mlir::Value> extents;
  llvm::SmallVector<int64_t> bounds;
  for (int64_t dim = 0; dim < depth; ++dim) {
    isIndexed |= node.getCount(data, dim) != mlir::Value();
    extents.push_back(getExtent(dim));
    bounds.push_back(getShape(data)[dim]);
  }
  if (isIndexed)
    countFromBegin(depth == 1 ? extents.front() : node.create<ConcatOp>(mlir::ValueRange(extents), int64_t(0)), bounds);
  Counts counts(node.getCounts(places));
  if (counts.empty() || OnnxNode::getType(data).getNumElements() == 0)
    return llvm::success();
  mlir::Value isTail;
  for (int64_t dim = 0; dim < batch; ++dim) {
    mlir::Value count = counts[dim];
    if (!count)
      continue;
    mlir::Value own = reduction ? findTail(dim, count)
                                : node.create<EqualOp>(node.reshape(count, llvm::SmallVector<int64_t>(batch + 1, 1)),
                                                       node.scalarLike(count, 0));
    if (!reduction) {
      places = node.repeatLast(places, dim);
      updates = node.repeatLast(updates, dim);
    }
    isTail = isTail ? node.create<OrOp>(isTail, own) : own;
  }
  // Updates have the dimensions of a slice in place of the last one of places.
  llvm::SmallVector<int64_t> shape(getShape(isTail).drop_back());
  shape.append(OnnxNode::getRank(updates) - batch, 1);
  mlir::Value first;
  if (reduction) {
    first = node.neutralLike(updates, reduction.getValue());
  } else {
    llvm::SmallVector<int64_t> sizes(getShape(data));
    std::fill(sizes.begin(), sizes.begin() + depth, 1);
    llvm::SmallVector<int64_t> block(batch, 1);
    block.append(sizes.begin() + depth, sizes.end());
    first = node.reshape(getFirst(sizes), block);
  }
  Counts rest(node.getCounts(updates));
  for (int64_t dim = 0; dim < batch && !rest.empty(); ++dim)
    rest[dim] = {};
  silence(isTail, node.reshape(isTail, shape), first, std::move(rest));
  return llvm::success();
}

static llvm::LogicalResult importScatterElements(OnnxNode &node) {
  auto reduction = readReduction(node);
  auto axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(node.getInput(0)));
  if (failed(reduction) || failed(axis))
    return llvm::failure();
  BoundedScatter scatter(node, *reduction);
  bool isBounded = scatter.isBounded();
  if (isBounded && failed(scatter.prepareElements(*axis)))
    return llvm::failure();
  mlir::Value result = node.create<ScatterElementsOp>(scatter.data, scatter.places, scatter.updates, *axis, *reduction);
  return node.setResult(isBounded ? node.state(result, Counts(node.getCounts(node.getInput(0)))) : result);
}

static OperatorImport scatter("Scatter", importScatterElements);
static OperatorImport scatterElements("ScatterElements", importScatterElements);

static OperatorImport scatterND("ScatterND", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = readReduction(node);
  if (failed(reduction))
    return llvm::failure();
  BoundedScatter scatter(node, *reduction);
  bool isBounded = scatter.isBounded();
  if (isBounded && failed(scatter.prepareSlices()))
    return llvm::failure();
  mlir::Value result = node.create<ScatterNDOp>(scatter.data, scatter.places, scatter.updates, *reduction);
  return node.setResult(isBounded ? node.state(result, Counts(node.getCounts(node.getInput(0)))) : result);
});
