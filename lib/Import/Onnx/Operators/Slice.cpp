//===- Slice.cpp - Import of slices -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slices of dimensions whose extents are constant, or known to runs only, up to ends that are the one or the other.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// What NumPy's start:end:step means on a dimension, as start, size and step.
static void normalizeSlice(int64_t extent, int64_t &start, int64_t end, int64_t &step, int64_t &size) {
  if (extent == 0) {
    start = size = 0;
    step = 1;
    return;
  }
  // Ends may be as far out as integers go, so nothing is added before they are clamped.
  auto clamp = [&](int64_t position, int64_t low, int64_t high) {
    if (position < 0)
      position += extent;
    return std::clamp(position, low, high);
  };
  bool isForward = step > 0;
  start = isForward ? clamp(start, 0, extent) : clamp(start, 0, extent - 1);
  end = isForward ? clamp(end, 0, extent) : clamp(end, -1, extent - 1);
  // Steps beyond the tensor are all alike.
  step = std::clamp(step, -extent - 1, extent + 1);
  size =
      isForward ? (end > start ? (end - start - 1) / step + 1 : 0) : (start > end ? (start - end - 1) / -step + 1 : 0);
  if (size == 0) {
    start = size = 0;
    step = 1;
  }
}

/// Of larger bounds nobody knows quickly how many elements a slice takes at most.
static constexpr int64_t kMaxSlicedBound = int64_t(1) << 24;

/// How many elements a slice takes of `extent`.
static int64_t countSliced(int64_t extent, int64_t start, int64_t end, int64_t step) {
  int64_t size;
  normalizeSlice(extent, start, end, step, size);
  return size;
}

/// `bound` of a slice, as `normalizeSlice` counts it, of `count` elements: not below `least`, nor above `count` +
/// `least`.
static mlir::Value clampBound(OnnxNode &node, mlir::Value count, int64_t bound, int64_t least) {
  if (bound >= 0)
    return node.create<MinOp>(node.toScalar({bound}), node.create<AddOp>(count, node.toScalar({least})));
  // Far more than there may be.
  bound = std::max<int64_t>(bound, std::numeric_limits<int32_t>::min());
  return node.create<MaxOp>(node.create<AddOp>(count, node.toScalar({bound})), node.toScalar({least}));
}

/// A slice along dimension `dim`, of which there are as many elements as only runs know.
static mlir::Value sliceBounded(OnnxNode &node, mlir::Value input, int64_t dim, int64_t start, int64_t end,
                                int64_t step) {
  int64_t extent = node.getShape(input)[dim], most = 0;
  mlir::Value count = node.getCount(input, dim);
  // What is beyond all that there may be is alike.
  start = std::min(start, extent);
  step = std::clamp(step, -extent - 1, extent + 1);
  for (int64_t length = 0; length <= extent; ++length)
    most = std::max(most, countSliced(length, start, end, step));
  Counts counts(node.getCounts(input));
  bool toEnd = end >= extent, fromBegin = start >= 0 && step > 0;
  mlir::Value first;
  if (fromBegin && (toEnd || end < 0)) {
    counts[dim] = node.deriveCount(count, (toEnd ? 0 : std::max(end, -extent)) - start + step - 1, step);
  } else {
    // Backward, the last one is that before the first.
    int64_t least = step > 0 ? 0 : -1;
    first = clampBound(node, count, start, least);
    // There is a first one unless there is none at all.
    if (step < 0 && start < 0)
      first = node.create<MinOp>(node.create<MaxOp>(first, node.toScalar({0})),
                                 node.create<AddOp>(count, node.toScalar({-1})));
    counts[dim] = node.shareCount(count, {start, end, step}, [&] {
      mlir::Value last = clampBound(node, count, end, least);
      mlir::Value span = step > 0 ? node.create<SubOp>(last, first) : node.create<SubOp>(first, last);
      return node.deriveCount(node.create<MaxOp>(span, node.toScalar({0})), std::abs(step) - 1, std::abs(step));
    });
  }
  mlir::Value result;
  if (fromBegin) {
    llvm::SmallVector<int64_t> starts(node.getRank(input), 0), sizes(node.getShape(input)), steps(starts.size(), 1);
    starts[dim] = start;
    sizes[dim] = most;
    steps[dim] = step;
    result = node.slice(input, starts, sizes, steps);
  } else {
    mlir::Value positions = node.count(0, most);
    mlir::Value from = node.create<AddOp>(node.create<MulOp>(positions, node.scalarLike(positions, step)), first);
    mlir::Value isThere = node.create<LessOp>(positions, counts[dim]);
    from = node.create<SelectOp>(isThere, from, node.scalarLike(positions, 0));
    result = node.create<GatherOp>(input, from, dim);
  }
  return node.bound(result, std::move(counts));
}

/// Where slices end, each of which may be a number of elements that only runs know.
static llvm::FailureOr<std::optional<llvm::SmallVector<Extent>>> readEnds(OnnxNode &node) {
  if (node.getOpset() >= 10 && node.hasInput(2)) {
    auto ends = node.getExtents(2, "ends");
    if (failed(ends))
      return llvm::failure();
    return std::optional(*std::move(ends));
  }
  auto ends = node.getIntsAttrOrInput("ends", 2, 10);
  if (failed(ends))
    return llvm::failure();
  if (!*ends)
    return std::optional<llvm::SmallVector<Extent>>();
  return std::optional(llvm::map_to_vector(**ends, [](int64_t end) { return Extent{end, {}}; }));
}

/// A slice along dimension `dim`, whose extent is constant, up to element `end.count`, or to its end.
static mlir::Value sliceToCount(OnnxNode &node, mlir::Value input, int64_t dim, int64_t start, Extent end) {
  llvm::SmallVector<int64_t> starts(node.getRank(input), 0), sizes(node.getShape(input)), steps(starts.size(), 1);
  int64_t extent = sizes[dim], most = std::min(extent, end.number);
  if (end.number > extent)
    end.count = node.shareCount(end.count, {0, extent, 1},
                                [&] { return node.create<MinOp>(end.count, node.toScalar({extent})); });
  starts[dim] = std::min(start, most);
  sizes[dim] = most - starts[dim];
  Counts counts(node.getCounts(input));
  counts.resize(sizes.size());
  counts[dim] = node.deriveCount(end.count, -start, 1);
  mlir::Value result = node.slice(input, starts, sizes, steps);
  // What is bounded is not the operand itself, of which others read all.
  if (result && result == input)
    result = importer::clearTails(node.getBuilder(), node.getLoc(), result, counts);
  return node.bound(result, std::move(counts));
}

static OperatorImport slice("Slice", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::SmallVector<int64_t> shape(node.getShape(input));
  int64_t rank = shape.size();
  auto starts = node.getIntsAttrOrInput("starts", 1, 10);
  auto ends = readEnds(node);
  auto axes = node.getIntsAttrOrInput("axes", 3, 10);
  auto steps = node.getIntsAttrOrInput("steps", 4, 10);
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return llvm::failure();
  if (!*starts || !*ends)
    return node.invalid("'starts' and 'ends' are missing");
  size_t count = (*starts)->size();
  if (!*axes)
    *axes = llvm::to_vector(llvm::seq<int64_t>(0, count));
  if (!*steps)
    *steps = llvm::SmallVector<int64_t>(count, 1);
  if ((*ends)->size() != count || (*axes)->size() != count || (*steps)->size() != count)
    return node.invalid("'starts', 'ends', 'axes' and 'steps' differ in length");
  auto dims = node.normalizeAxes(**axes, rank);
  if (failed(dims))
    return llvm::failure();
  llvm::SmallVector<int64_t> start(rank, 0), size(shape), step(rank, 1);
  // The dimensions of which runs say how many elements are taken, which come after all others.
  struct Part {
    int64_t dim, start, step;
    Extent end;
  };
  llvm::SmallVector<Part> parts;
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    Part part{dim, (**starts)[i], (**steps)[i], (**ends)[i]};
    if (part.step == 0)
      return node.invalid("'steps' has the entry 0");
    mlir::Value own = node.getCount(input, dim);
    if (own && part.end.count == own && part.step > 0)
      part.end = {std::numeric_limits<int64_t>::max(), {}};
    if (part.end.count && (own || part.step != 1 || part.start < 0))
      return node.unsupported(importer::describeBounded(
          "the result", dim, shape[dim],
          own ? "the operand has another one there" : "its elements are not those from a constant one on, in order"));
    if (own && shape[dim] > kMaxSlicedBound)
      return node.unsupported(
          importer::describeBounded("operand 0", dim, shape[dim],
                                    "a part of it is taken, of " + llvm::Twine(kMaxSlicedBound) + " elements at most"));
    if (own || part.end.count) {
      parts.push_back(part);
      continue;
    }
    start[dim] = part.start;
    step[dim] = part.step;
    normalizeSlice(shape[dim], start[dim], part.end.number, step[dim], size[dim]);
  }
  mlir::Value result = node.slice(input, start, size, step);
  if (result != input && !parts.empty())
    result = node.bound(result, Counts(node.getCounts(input)));
  for (const Part &part : parts)
    if (result)
      result = part.end.count ? sliceToCount(node, result, part.dim, part.start, part.end)
                              : sliceBounded(node, result, part.dim, part.start, part.end.number, part.step);
  return node.setResult(result);
});
