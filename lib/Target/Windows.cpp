//===- Windows.cpp - Windows that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what libraries have in common about operations with windows.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

#include "dovetail/Layout/Window.h"

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

bool dovetail::isModestConvolution(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return hasModestWindows(conv);
  auto conv = dyn_cast<ConvTransposeOp>(op);
  return conv && hasModestWindows(conv);
}

bool dovetail::isModestPool(PoolOp op) { return hasModestWindows(op); }
