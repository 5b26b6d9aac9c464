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

#include "dovetail/Layout/CallForm.h"

using namespace mlir;
using namespace dovetail;

/// True for one to three spatial dimensions and windows of a sensible size, which the loader of artifacts takes. Larger
/// ones are mistakes that a generated kernel gets right, too.
template <typename OpT> static bool hasModestWindows(OpT op, ArrayRef<layout::Window> windows) {
  constexpr int64_t limit = int64_t(1) << 20;
  auto isModest = [](int64_t value) { return -limit <= value && value <= limit; };
  return windows.size() <= 3 && llvm::all_of(op.getPadsHigh(), isModest) &&
         llvm::all_of(windows, [&](const layout::Window &window) {
           return isModest(window.stride) && isModest(window.dilation) && isModest(window.pad);
         });
}

static SmallVector<int64_t> getExtents(const Definition &definition) {
  return llvm::map_to_vector(definition.loops, [](const Loop &loop) { return loop.extent; });
}

template <typename OpT> static bool isModestConvolution(OpT op) {
  Definition definition = op.getDefinition();
  auto form = layout::ConvolutionForm::find(definition.reads[0].dims, definition.reads[1].dims, getExtents(definition));
  return form && hasModestWindows(op, form->windows);
}

bool dovetail::isModestConvolution(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return ::isModestConvolution(conv);
  auto conv = dyn_cast<ConvTransposeOp>(op);
  return conv && ::isModestConvolution(conv);
}

bool dovetail::isModestPool(PoolOp op) {
  Definition definition = op.getDefinition();
  auto form = layout::PoolForm::find(definition.reads[0].dims, getExtents(definition));
  return form && hasModestWindows(op, form->windows);
}
