//===- Gathered.h - Sizes of convolutions over gathered rows ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines for compiler and runtime into which blocks the runtime's own convolutions are cut, and what memory they take.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_GATHERED_H
#define DOVETAIL_CALLS_GATHERED_H

#include "dovetail/Calls/CallForm.h"

#include <algorithm>
#include <numeric>

namespace dovetail::calls {

/// Results of a block, at most, and multiples of which they are; output channels that are computed together, at most.
inline constexpr int64_t gatheredRows = 192, gatheredRowStep = 12, gatheredPanel = 32;
/// Windows of no more terms have one sum each; of others, each block of terms has a sum, and these are added up.
inline constexpr int64_t gatheredTerms = 1024;

/// What goes through all steps at once: results, and of their windows taps and input channels. There is more than one
/// tap only with all channels. Which terms are summed together depends on the window alone, so that results do not
/// depend on the ranks and threads that compute them.
struct GatheredBlock {
  int64_t rows, taps, channels;
};

/// The same for windows of `taps` with `inputs` channels of a group. Rows of a block stay in a cache near the core, and
/// so do their sums.
inline GatheredBlock gatheredBlock(int64_t inputs, int64_t outputs, int64_t taps, int64_t results) {
  constexpr int64_t blockTerms = 512, rowElements = 40 << 10, sumElements = 64 << 10;
  auto divide = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  GatheredBlock block{0, taps, inputs};
  bool isWhole = taps * inputs <= gatheredTerms;
  if (!isWhole && inputs >= blockTerms) {
    block.taps = 1;
    block.channels = divide(divide(inputs, divide(inputs, blockTerms)), 8) * 8;
  } else if (!isWhole) {
    block.taps = divide(taps, divide(taps, blockTerms / inputs));
  }
  block.rows = rowElements / std::max<int64_t>(block.taps * block.channels, 1);
  if (!isWhole)
    block.rows = std::min(block.rows, sumElements / (divide(outputs, gatheredPanel) * gatheredPanel));
  block.rows = std::clamp(block.rows / gatheredRowStep * gatheredRowStep, gatheredRowStep, gatheredRows);
  block.rows = std::max<int64_t>(std::min(block.rows, results), 1);
  return block;
}

/// How many groups share a vector of results of `vector` elements, each of which is a term of all groups at once. If
/// all results of one fit two vectors, 1. Else 0: what windows read is gathered into rows.
/// Padding is a factor in rows alone, so that weights which are infinite tell the two ways apart. Which one it is
/// depends therefore on the channels that a group has in all, `wholeInputs` and `wholeOutputs`, not on a rank's.
inline int64_t gatheredGroups(int64_t groups, int64_t inputs, int64_t outputs, int64_t wholeInputs,
                              int64_t wholeOutputs, int64_t taps, int64_t vector) {
  if (taps * wholeInputs > gatheredTerms || wholeOutputs > 2 * vector)
    return 0;
  return std::max<int64_t>(std::min({vector / outputs, (vector - 1) / inputs + 1, groups}), 1);
}

/// Vectors of results of all groups, if `perVector` share one, as `gatheredGroups` says.
inline int64_t gatheredVectors(int64_t groups, int64_t outputs, int64_t perVector, int64_t vector) {
  return perVector > 1 ? (groups + perVector - 1) / perVector : groups * ((outputs + vector - 1) / vector);
}

/// Bytes of scratch memory for each thread, of windows of `taps`, where `perVector` groups share a vector.
inline int64_t gatheredScratchBytes(const GatheredBlock &block, int64_t inputs, int64_t outputs, int64_t taps,
                                    int64_t perVector) {
  if (perVector > 0)
    return 16 * taps;
  int64_t elements = block.rows * block.taps * block.channels;
  if (block.taps < taps || block.channels < inputs)
    elements += block.rows * ((outputs + gatheredPanel - 1) / gatheredPanel * gatheredPanel);
  return 4 * elements;
}

/// The taps along a dimension that results of a transposed convolution have, if they have any in common with others:
/// each `step`-th one. Results `stride` apart have the same ones.
inline int64_t gatheredTapStep(const Window &window) {
  return window.isTransposed ? window.stride / std::gcd(window.stride, window.dilation) : 1;
}

/// How many kinds of results a transposed convolution has, each with taps of its own.
inline int64_t gatheredPhases(const ConvolutionForm &form) {
  int64_t phases = 1;
  for (const Window &window : form.windows)
    if (window.isTransposed && phases <= layout::maxWindowStep)
      phases *= window.stride;
  return phases;
}
/// More are not kept apart.
inline constexpr int64_t gatheredMostPhases = 512;

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_GATHERED_H
