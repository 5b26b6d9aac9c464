//===- Scattered.h - Sizes of scattered convolutions ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines for compiler and runtime which transposed convolutions add products of each input to results, instead of
// gathering the inputs of each result. Defines the memory that they take.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_SCATTERED_H
#define DOVETAIL_CALLS_SCATTERED_H

#include "dovetail/Calls/CallForm.h"

#include <algorithm>

namespace dovetail::calls {

/// Whether each input is multiplied with the weights of all taps at once. That fills vectors where results have few
/// channels, and copies no inputs. It depends on the channels of the whole call, so that all ranks do the same.
inline bool isScattered(const ConvolutionForm &form, int64_t wholeInputs, int64_t wholeOutputs) {
  constexpr int64_t fewOutputs = 16, leastColumns = 8;
  return form.isTransposed && form.groups == 1 && wholeOutputs <= fewOutputs && wholeInputs >= 2 * wholeOutputs &&
         form.numTaps() * wholeOutputs >= leastColumns;
}

/// Sums along a dimension with so many results, of a window with this stride.
inline int64_t scatteredExtent(int64_t results, int64_t stride) { return (results + stride - 1) / stride * stride; }

/// Results along the outermost spatial dimension whose sums are kept together. Of `reach`, the extent of a window
/// there, at least twice as many, as inputs that two such blocks need are multiplied twice. The sums of each have
/// `size` elements.
inline int64_t scatteredLines(int64_t results, int64_t size, int64_t reach) {
  constexpr int64_t elements = 32 << 10;
  return std::max<int64_t>(std::min(results, std::max(elements / std::max<int64_t>(size, 1), 2 * reach)), 1);
}

/// Bytes of scratch memory for each thread: what is known of each tap, inputs of a panel of so many columns, and sums
/// of `lines`.
inline constexpr int64_t scatteredTapBytes = 80;
inline int64_t scatteredScratchBytes(int64_t taps, int64_t inputs, int64_t panel, int64_t lines, int64_t size) {
  return scatteredTapBytes * taps + 4 * (inputs * panel + lines * size);
}

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_SCATTERED_H
