//===- ExpandWraps.cpp - Padding that wraps as a concatenation ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces padding that wraps around by a concatenation of the tensor and of slices of its ends.
//
// A rank at an end of a dimension reads the other end, too: two boxes, of which the hull is all of the dimension. Each
// operand of a concatenation has a box of its own.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

#include "llvm/Support/MathExtras.h"

namespace dovetail {
#define GEN_PASS_DEF_EXPANDWRAPS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// A dimension is repeated at most so many times. Each repetition is an operand, and kernels look for an element in one
/// operand after another.
static constexpr int64_t kMaxImages = 8;

static void expand(PadOp op) {
  if (op.getMode() != PadMode::Wrap)
    return;
  /// How a dimension is continued.
  struct Extension {
    int64_t dim, low, high;
  };
  SmallVector<Extension> extensions;
  // One pad crops, and continues dimensions that stay as they are.
  SmallVector<int64_t> lows(op.getLow()), highs(op.getHigh());
  for (auto [dim, own] : llvm::enumerate(shapeOf(op.getOperand()))) {
    int64_t low = std::max<int64_t>(lows[dim], 0), high = std::max<int64_t>(highs[dim], 0);
    if (low == 0 && high == 0)
      continue;
    int64_t extent = own + (lows[dim] - low) + (highs[dim] - high);
    if (llvm::divideCeil(low, extent) + 1 + llvm::divideCeil(high, extent) > kMaxImages)
      continue;
    extensions.push_back({static_cast<int64_t>(dim), low, high});
    lows[dim] -= low;
    highs[dim] -= high;
  }
  if (extensions.empty())
    return;
  OpBuilder builder(op);
  Location loc = withoutTensorName(op.getLoc());
  Value value = op.getOperand();
  if (llvm::any_of(llvm::concat<int64_t>(lows, highs), [](int64_t pad) { return pad != 0; }))
    value = PadOp::create(builder, loc, value, Value(), lows, highs, PadMode::Wrap);
  for (auto [dim, low, high] : extensions) {
    int64_t extent = shapeOf(value)[dim];
    SmallVector<Value> images;
    // The whole images and the end of one before them.
    if (int64_t part = low % extent)
      images.push_back(sliceAlong(builder, loc, value, dim, extent - part, part));
    images.append(low / extent + 1 + high / extent, value);
    if (int64_t part = high % extent)
      images.push_back(sliceAlong(builder, loc, value, dim, 0, part));
    value = ConcatOp::create(builder, dim == extensions.back().dim ? op.getLoc() : loc, images, dim);
  }
  op.replaceAllUsesWith(value);
  op.erase();
}

namespace {
struct ExpandWraps : dovetail::impl::ExpandWrapsBase<ExpandWraps> {
  void runOnOperation() override {
    if (failed(requireUnsharded(getOperation())))
      return signalPassFailure();
    SmallVector<PadOp> pads;
    getOperation()->walk([&](PadOp op) { pads.push_back(op); });
    for (PadOp op : pads)
      expand(op);
  }
};
} // namespace
