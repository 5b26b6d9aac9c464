//===- HoistSlices.cpp - Compute only what slices take --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves slices of what takes work to compute to its operands, where it does the same everywhere along a dimension.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "PlainLoops.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_HOISTSLICES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using layout::Interval;

/// The part of `value` that its users take, all of which are slices; none if there is another user, or nothing is
/// taken.
static std::optional<SmallVector<Interval>> getTaken(Value value) {
  SmallVector<Interval> taken;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || slice.getType().getNumElements() == 0)
      return std::nullopt;
    taken.resize(slice.getSizes().size(), {std::numeric_limits<int64_t>::max(), 0});
    for (auto [interval, start, size, step] :
         llvm::zip_equal(taken, slice.getStarts(), slice.getSizes(), slice.getSteps())) {
      int64_t last = size > 1 ? start + (size - 1) * step : start;
      interval.lo = std::min({interval.lo, start, last});
      interval.hi = std::max({interval.hi, start + 1, last + 1});
    }
  }
  return taken.empty() ? std::nullopt : std::optional(taken);
}

/// Whether fewer elements of dimension `loop` of what `op` computes mean less work: its own, or of what is computed for
/// it alone.
static bool savesWork(SplitOpInterface op, ArrayRef<int64_t> dims, int depth = 0) {
  if (!op.isCheapElement())
    return true;
  // From a product of dequantised numbers over what quantises and dequantises them to the product before.
  constexpr int maxDepth = 16;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims)) {
    auto producer = operand.getDefiningOp<SplitOpInterface>();
    auto isOther = [&](Operation *user) { return user != op; };
    if (dim < 0 || depth == maxDepth || !producer || producer->getNumResults() != 1 ||
        llvm::any_of(operand.getUsers(), isOther))
      continue;
    auto found = findPlainDims(producer, producer.getDefinition(), dim);
    if (found && savesWork(producer, *found, depth + 1))
      return true;
  }
  return false;
}

/// `value` without what lies outside of `box`.
static Value sliceTo(OpBuilder &builder, Value value, ArrayRef<Interval> box) {
  SmallVector<int64_t> starts, sizes;
  for (Interval interval : box) {
    starts.push_back(interval.lo);
    sizes.push_back(interval.size());
  }
  if (sizes == shapeOf(value))
    return value;
  return SliceOp::create(builder, withoutTensorName(value.getLoc()), value, starts, sizes,
                         SmallVector<int64_t>(sizes.size(), 1));
}

static SmallVector<Interval> getWhole(Value value) {
  return llvm::map_to_vector(shapeOf(value), [](int64_t extent) { return Interval{0, extent}; });
}

static void hoistAbove(SplitOpInterface op) {
  if (op->getNumResults() != 1 || isa<SliceOp>(op) || op.getLoopShardings())
    return;
  Value result = op->getResult(0);
  std::optional<SmallVector<Interval>> taken = getTaken(result);
  SmallVector<Interval> box = getWhole(result);
  if (!taken || *taken == box)
    return;
  Definition definition = op.getDefinition();
  SmallVector<SmallVector<Interval>> operands = llvm::map_to_vector(op->getOperands(), getWhole);
  bool saves = false;
  for (unsigned loop = 0; loop < box.size(); ++loop) {
    if ((*taken)[loop] == box[loop])
      continue;
    std::optional<SmallVector<int64_t>> dims = findPlainDims(op, definition, loop);
    if (!dims)
      continue;
    box[loop] = (*taken)[loop];
    for (auto [operand, dim] : llvm::zip_equal(operands, *dims))
      if (dim >= 0)
        operand[dim] = box[loop];
    saves |= savesWork(op, *dims);
  }
  if (!saves)
    return;
  OpBuilder builder(op);
  SmallVector<Value> sliced;
  for (auto [operand, part] : llvm::zip_equal(op->getOperands(), operands))
    sliced.push_back(sliceTo(builder, operand, part));
  SmallVector<int64_t> shape = llvm::map_to_vector(box, [](Interval interval) { return interval.size(); });
  Operation *copy = cloneOn(builder, op, sliced, shape);
  if (!copy) {
    for (auto [value, operand] : llvm::zip_equal(sliced, op->getOperands()))
      if (value != operand && value.use_empty())
        value.getDefiningOp()->erase();
    return;
  }
  for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
    auto slice = cast<SliceOp>(user);
    SmallVector<int64_t> starts(slice.getStarts());
    for (auto [start, interval] : llvm::zip_equal(starts, box))
      start -= interval.lo;
    builder.setInsertionPoint(slice);
    auto moved =
        SliceOp::create(builder, slice.getLoc(), copy->getResult(0), starts, slice.getSizes(), slice.getSteps());
    slice.getResult().replaceAllUsesWith(moved.getResult());
    slice.erase();
  }
  op->erase();
}

namespace {
struct HoistSlices : dovetail::impl::HoistSlicesBase<HoistSlices> {
  void runOnOperation() override {
    if (failed(requireUnsharded(getOperation())))
      return signalPassFailure();
    // Users first, so that slices go up as far as they may.
    SmallVector<SplitOpInterface> ops;
    getOperation()->walk([&](SplitOpInterface op) { ops.push_back(op); });
    for (SplitOpInterface op : llvm::reverse(ops))
      hoistAbove(op);
  }
};
} // namespace
