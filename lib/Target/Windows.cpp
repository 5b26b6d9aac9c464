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

using namespace mlir;
using namespace dovetail;

/// True for one to three spatial dimensions and windows of a sensible size. Larger ones are mistakes that a generated
/// kernel gets right, too.
template <typename OpT> static bool hasModestWindows(OpT op) {
  constexpr int64_t limit = int64_t(1) << 20;
  auto isModest = [](ArrayRef<int64_t> values) {
    return llvm::all_of(values, [](int64_t value) { return -limit <= value && value <= limit; });
  };
  int64_t rank = op.getType().getRank();
  return rank >= 3 && rank <= 5 && isModest(op.getStrides()) && isModest(op.getDilations()) &&
         isModest(op.getPadsLow()) && isModest(op.getPadsHigh());
}

bool dovetail::isModestConvolution(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return hasModestWindows(conv);
  auto conv = dyn_cast<ConvTransposeOp>(op);
  return conv && hasModestWindows(conv);
}

bool dovetail::isModestPool(PoolOp op) { return hasModestWindows(op); }
