//===- Attention.h - Sizes of attention -------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines for compiler and runtime how many queries and keys attention takes at once, and what memory that takes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_ATTENTION_H
#define DOVETAIL_CALLS_ATTENTION_H

#include <cstdint>

namespace dovetail::calls {

/// Queries whose scores with a block of keys are computed at once: many, so that keys and values are packed less often,
/// and few enough for a cache near the core.
inline constexpr int64_t attentionRows = 384, attentionKeys = 256;
/// Columns of packed keys and values are in multiples of that, and vectors have so many elements, at most.
inline constexpr int64_t attentionPanel = 32, attentionVector = 16;
/// Rows whose scores are computed and used at a time, at most, in whole vectors.
inline constexpr int64_t attentionProductRows = 16;

/// Elements, of f32, of scratch memory for each thread: queries, sums, packed keys and values, for each row a vector
/// and a number, and scores of the rows of a product with a vector and two numbers for each.
inline constexpr int64_t attentionScratch(int64_t depth, int64_t columns) {
  int64_t padded = (columns + attentionPanel - 1) / attentionPanel * attentionPanel;
  int64_t elements = attentionRows * (depth + padded + attentionVector + 1) + attentionKeys * (depth + padded) +
                     attentionProductRows * (attentionKeys + attentionVector + 2);
  return (elements + 15) / 16 * 16; // Whole cache lines.
}

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_ATTENTION_H
