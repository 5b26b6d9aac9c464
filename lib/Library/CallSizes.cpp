//===- CallSizes.cpp - Sizes that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which sizes of calls libraries have in common.
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"

#include "dovetail/Layout/Window.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

/// True for windows that libraries have, and of a sensible size, as the loader of artifacts wants them. Larger ones are
/// mistakes that a generated kernel gets right, too.
static bool hasModestWindows(const CallShape &call, ArrayRef<layout::Window> windows) {
  auto isModest = [](int64_t value) { return -layout::maxWindowStep <= value && value <= layout::maxWindowStep; };
  if (windows.size() > layout::maxWindows)
    return false;
  return llvm::all_of(llvm::enumerate(windows), [&](auto each) {
    const layout::Window &window = each.value();
    return isModest(window.stride) && isModest(window.dilation) && isModest(window.pad) &&
           isModest(call.getPadBehind(each.index(), window));
  });
}

/// True if what windows go through, with its pads, has a sensible number of elements.
static bool hasModestVolume(const CallShape &call, const calls::ConvolutionForm &form) {
  uint64_t volume = 1;
  for (auto [dim, extent] : llvm::enumerate((form.isTransposed ? call.result : call.operands.front()).getShape())) {
    int64_t pads = dim < 2 ? 0 : form.windows[dim - 2].pad + call.getPadBehind(dim - 2, form.windows[dim - 2]);
    volume = llvm::SaturatingMultiply<uint64_t>(volume, std::max<int64_t>(extent + pads, 0));
  }
  return volume <= static_cast<uint64_t>(layout::maxPaddedVolume);
}

bool dovetail::isModest(const CallShape &call) {
  return std::visit(FormVisitor{[&](const calls::ConvolutionForm &form) {
                                  return hasModestWindows(call, form.windows) && hasModestVolume(call, form);
                                },
                                [&](const ProductCall &) {
                                  return call.result.getRank() <= static_cast<int64_t>(layout::maxProductDims);
                                },
                                [&](const PoolCall &form) { return hasModestWindows(call, form.windows); },
                                [](const auto &) { return true; }},
                    call.form);
}

bool dovetail::isProductOfTaps(const CallShape &call) {
  const auto *form = call.as<calls::ConvolutionForm>();
  return form && llvm::all_of(llvm::enumerate(form->windows), [&](auto each) {
           const layout::Window &window = each.value();
           if (window.isTransposed)
             return window.kernel == window.stride && window.dilation == 1;
           return window.kernel == 1 && window.pad == 0 && call.getPadBehind(each.index(), window) <= 0;
         });
}
