//===- AttentionForm.h - What attention is told by accesses -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how attention reads its operands, as it is found in the accesses of a call.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_ATTENTIONFORM_H
#define DOVETAIL_CALLS_ATTENTIONFORM_H

#include "dovetail/Calls/CallForm.h"

namespace dovetail::calls {

/// Columns of the result of parts of the keys behind those of values: the largest score, and the sum of weights.
inline constexpr int64_t attentionPartColumns = 2;

/// Attention of queries, keys, values and maybe a mask. The loops are the dimensions of the result, [batch..., M, C],
/// then keys and depth. The columns of the result are those of one head, or of several that follow each other.
struct AttentionForm {
  int64_t columns = 0; ///< Of a head.

  /// Found in accesses in loops of these extents, none of which names others; nothing if they are something else. Where
  /// an operand is read is a sum of multiples of those loops that it may depend on, which are batch, row and depth for
  /// queries; batch, key and depth for keys; batch, key and column for values; batch, row and key for a mask; and of
  /// anything that depends on the head alone. No index decreases along a loop.
  static std::optional<AttentionForm> find(std::span<const AccessDims> accesses, std::span<const int64_t> loops);
};

/// Whether `access` stays inside of a tensor of `shape` in loops of these extents.
bool staysInside(std::span<const AccessDim> access, std::span<const int64_t> shape, std::span<const int64_t> loops);

/// Whether the result of attention may lie where its queries do: each head of a row is written over what is read for
/// it, and for nothing else.
bool mayWriteOverQueries(std::span<const AccessDims> accesses, std::span<const int64_t> loops);

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_ATTENTIONFORM_H
