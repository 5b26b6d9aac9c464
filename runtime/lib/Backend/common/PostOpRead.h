//===- PostOpRead.h - What post-ops read ---------------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which part of a tensor a post-op of a library call reads, on CPUs and devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_POSTOPREAD_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_POSTOPREAD_H

#include "dovetail/runtime/RankMemory.h"

#include "absl/status/statusor.h"

#include <span>
#include <vector>

namespace dovetail::runtime {

/// The operand of a post-op, with the dimensions of the result that it is applied to: dimensions that the tensor lacks
/// have extent 1 and come first.
struct PostOpRead {
  MemoryView view;           ///< As the tensor lies in memory; without data as long as it has no address.
  layout::Box box;           ///< The part that is read; dimensions that repeat have extent 1.
  std::vector<bool> repeats; ///< For each dimension: the element read is the same all along the result.
  bool isFull = false;       ///< One element for each of the result.

  /// `view` as if it had all elements of `result`: with strides of 0 one stays at the same element.
  MemoryView repeated(const layout::Box &result) const;
};

/// For the result's box on this rank. Errors: DATA_LOSS when the rank does not hold what is needed.
absl::StatusOr<PostOpRead> postOpRead(const RankMemory &memory, const PostOpInfo &op, const layout::Box &result);

/// Whether the operand lies in the memory of `output`: what overwrites that too early, spoils it.
bool readsResult(const RankMemory &memory, const PostOpInfo &op, uint32_t output);
/// The same of any of them.
bool readsResult(const RankMemory &memory, std::span<const PostOpInfo> ops, uint32_t output);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_POSTOPREAD_H
