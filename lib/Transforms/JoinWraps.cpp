//===- JoinWraps.cpp - Concatenations of ends as padding that wraps -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces concatenations of a tensor with its own ends by padding where no rank divides the dimension.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_JOINWRAPS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

static LoopShardingsAttr getLoops(Operation *op) { return cast<SplitOpInterface>(op).getLoopShardings(); }

/// Whether `op`, or a part of it, is on several ranks along `axis`.
static bool isSplit(Operation *op, int64_t axis) {
  LoopShardingsAttr loops = getLoops(op);
  return loops && loops.getLoops()[axis].isSplit();
}

/// `op` as padding, of all dimensions that are padded so one after the other.
static void join(ConcatOp op, const Wrap &wrap) {
  auto axis = static_cast<int64_t>(op.getAxis());
  Value source = wrap.source;
  SmallVector<int64_t> lows(shapeOf(source).size(), 0), highs(lows);
  auto inner = source.getDefiningOp<PadOp>();
  if (inner && inner.getMode() == PadMode::Wrap && inner.getLow()[axis] == 0 && inner.getHigh()[axis] == 0 &&
      getLoops(inner) == getLoops(op)) {
    source = inner.getOperand();
    lows.assign(inner.getLow().begin(), inner.getLow().end());
    highs.assign(inner.getHigh().begin(), inner.getHigh().end());
  }
  lows[axis] = wrap.low;
  highs[axis] = wrap.high;
  OpBuilder builder(op);
  auto pad = PadOp::create(builder, op.getLoc(), op.getType(), source, Value(), lows, highs, PadMode::Wrap);
  pad->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op.getResult().replaceAllUsesWith(pad.getResult());
}

/// `op`, or a part of it, is on one rank along all dimensions that `pad` extends.
static bool isWholeWhere(PadOp pad, Operation *op) {
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh()))
    if ((low != 0 || high != 0) && isSplit(op, static_cast<int64_t>(dim)))
      return false;
  return true;
}

/// If `op`, whose dimension is split, continues what is padded in dimensions that are not: it does so first. So the
/// ends that ranks exchange have no padding, and all of it is padded where it is concatenated, in one kernel.
static void concatFirst(ConcatOp op, const Wrap &wrap) {
  auto pad = wrap.source.getDefiningOp<PadOp>();
  if (!pad || pad.getMode() != PadMode::Wrap || pad.getLow()[op.getAxis()] != 0 || pad.getHigh()[op.getAxis()] != 0 ||
      !isWholeWhere(pad, op))
    return;
  auto isOf = [&](Operation *user) {
    auto slice = dyn_cast<SliceOp>(user);
    return user == op || (slice && isWholeWhere(pad, slice) &&
                          llvm::all_of(slice->getUsers(), [&](Operation *other) { return other == op; }));
  };
  if (!llvm::all_of(pad->getUsers(), isOf))
    return;
  OpBuilder builder(op);
  Value source = pad.getOperand();
  // `value`, computed as `like` is, of what is not padded yet.
  auto finish = [&](Operation *made, Operation *like) {
    made->setDiscardableAttrs(like->getDiscardableAttrDictionary());
    Value result = made->getResult(0);
    result.setType(RankedTensorType::get(shapeOf(result), typeOf(result).getElementType(),
                                         typeOf(like->getResult(0)).getEncoding()));
    return result;
  };
  SmallVector<Value> inputs;
  for (Value input : op.getInputs()) {
    auto slice = input.getDefiningOp<SliceOp>();
    if (input == wrap.source || !slice) {
      inputs.push_back(source);
      continue;
    }
    SmallVector<int64_t> sizes(shapeOf(source));
    sizes[op.getAxis()] = slice.getSizes()[op.getAxis()];
    inputs.push_back(
        finish(SliceOp::create(builder, slice.getLoc(), source, slice.getStarts(), sizes, slice.getSteps()), slice));
  }
  Value joined = finish(ConcatOp::create(builder, withoutTensorName(op.getLoc()), inputs, op.getAxis()), op);
  auto padded =
      PadOp::create(builder, op.getLoc(), op.getType(), joined, Value(), pad.getLow(), pad.getHigh(), PadMode::Wrap);
  padded->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op.getResult().replaceAllUsesWith(padded.getResult());
}

namespace {
struct JoinWraps : dovetail::impl::JoinWrapsBase<JoinWraps> {
  void runOnOperation() override {
    SmallVector<ConcatOp> concats;
    getOperation()->walk([&](ConcatOp op) { concats.push_back(op); });
    // Producers come before their users.
    for (ConcatOp op : concats)
      if (std::optional<Wrap> wrap = findWrap(op)) {
        if (isSplit(op, static_cast<int64_t>(op.getAxis())))
          concatFirst(op, *wrap);
        else
          join(op, *wrap);
      }
    SmallVector<Operation *> left;
    getOperation()->walk([&](Operation *op) {
      if (isa<ConcatOp, SliceOp, PadOp>(op))
        left.push_back(op);
    });
    for (Operation *op : llvm::reverse(left))
      if (op->use_empty())
        op->erase();
  }
};
} // namespace
