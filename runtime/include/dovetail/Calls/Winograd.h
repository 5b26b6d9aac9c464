//===- Winograd.h - Sizes of Winograd's algorithm ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines for compiler and runtime which convolutions are done by Winograd's algorithm F(4 x 4, 3 x 3), and what memory
// that takes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_WINOGRAD_H
#define DOVETAIL_CALLS_WINOGRAD_H

#include "dovetail/Calls/CallForm.h"

#include <algorithm>

namespace dovetail::calls {

/// Results of a tile along each dimension, and the products for it.
inline constexpr int64_t winogradTile = 4, winogradTaps = 36;
/// Tiles that make good use of weights while these are in registers and in the cache next to them.
inline constexpr int64_t winogradRows = 24;
/// Output channels of packed weights, and channels of scratch memory, are in multiples of that, at most.
inline constexpr int64_t winogradPanel = 32, winogradVector = 16;

/// Whether a convolution is of a form that the algorithm is for.
inline bool isWinogradForm(const ConvolutionForm &form) {
  return form.groups == 1 && !form.isTransposed && form.windows.size() == 2 &&
         std::all_of(form.windows.begin(), form.windows.end(), [](const Window &window) {
           return window.kernel == 3 && window.stride == 1 && window.dilation == 1;
         });
}

/// How many of `tiles` go through all steps at once. What is transformed of them stays in a cache near the core, but
/// where weights come from further away it is more, so that they are read less often. That takes at most 32 MB.
inline int64_t winogradBlock(int64_t inputs, int64_t outputs, int64_t tiles) {
  int64_t weights = winogradTaps * 4 * inputs * outputs;
  int64_t bytes = std::clamp<int64_t>(weights / 4, 256 << 10, 4 << 20);
  int64_t fitting = bytes / (winogradTaps * 4 * inputs);
  int64_t most = (30 << 20) / (winogradTaps * 4 * (inputs + winogradVector + winogradPanel));
  return std::max<int64_t>(std::min({std::clamp<int64_t>(fitting / 12 * 12, winogradRows, 192), most, tiles}), 1);
}

/// Bytes of packed weights, and of scratch memory for each thread that has so many tiles, at most.
inline int64_t winogradWeightBytes(int64_t inputs, int64_t outputs) {
  return 4 * winogradTaps * inputs * ((outputs + winogradPanel - 1) / winogradPanel * winogradPanel);
}
inline int64_t winogradScratchBytes(int64_t inputs, int64_t outputs, int64_t tiles) {
  int64_t padded = (inputs + winogradVector - 1) / winogradVector * winogradVector;
  return 4 * winogradTaps * (winogradBlock(inputs, outputs, tiles) * (padded + winogradPanel) + 2 * winogradVector);
}

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_WINOGRAD_H
