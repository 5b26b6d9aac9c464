//===- CallSizes.cpp - Sizes that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which sizes of operations libraries have in common.
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Layout/Window.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

/// True for windows that libraries have, and of a sensible size, as the loader of artifacts wants them. Larger ones are
/// mistakes that a generated kernel gets right, too.
template <typename OpT> static bool hasModestWindows(OpT op) {
  auto isModest = [](ArrayRef<int64_t> values) {
    return llvm::all_of(
        values, [](int64_t value) { return -layout::maxWindowStep <= value && value <= layout::maxWindowStep; });
  };
  int64_t rank = op.getType().getRank();
  return rank >= 3 && rank <= 2 + static_cast<int64_t>(layout::maxWindows) && isModest(op.getStrides()) &&
         isModest(op.getDilations()) && isModest(op.getPadsLow()) && isModest(op.getPadsHigh());
}

/// True if `type`, with these pads around its spatial dimensions, has a sensible number of elements.
static bool isModest(RankedTensorType type, ArrayRef<int64_t> padsLow, ArrayRef<int64_t> padsHigh) {
  uint64_t volume = 1;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    int64_t pads = dim < 2 ? 0 : padsLow[dim - 2] + padsHigh[dim - 2];
    volume = llvm::SaturatingMultiply<uint64_t>(volume, std::max<int64_t>(extent + pads, 0));
  }
  return volume <= static_cast<uint64_t>(layout::maxPaddedVolume);
}

bool dovetail::isModestConvolution(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return hasModestWindows(conv) && isModest(conv.getInput().getType(), conv.getPadsLow(), conv.getPadsHigh());
  auto conv = dyn_cast<ConvTransposeOp>(op);
  return conv && hasModestWindows(conv) && isModest(conv.getType(), conv.getPadsLow(), conv.getPadsHigh());
}

bool dovetail::isProductOfTaps(Operation *op) {
  auto isAll = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t each) { return each == value; });
  };
  if (auto conv = dyn_cast<ConvOp>(op))
    return isAll(cast<RankedTensorType>(conv.getWeights().getType()).getShape().drop_front(2), 1) &&
           isAll(conv.getPadsLow(), 0) && isAll(conv.getPadsHigh(), 0);
  auto conv = dyn_cast<ConvTransposeOp>(op);
  return conv && cast<RankedTensorType>(conv.getWeights().getType()).getShape().drop_front(2) == conv.getStrides() &&
         isAll(conv.getDilations(), 1);
}

bool dovetail::isModestPool(PoolOp op) { return hasModestWindows(op); }

bool dovetail::isModestProduct(Operation *op) {
  auto product = dyn_cast<MatMulOp>(op);
  return product && product.getType().getRank() <= static_cast<int64_t>(layout::maxProductDims);
}
