//===- Arena.h - Memory shared by liveness ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_ARENA_H
#define DOVETAIL_RUNTIME_SESSION_ARENA_H

#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dovetail::runtime {

/// Memory that is needed from one position of a program to another, both included.
struct ArenaItem {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = 0; ///< Set by `planArena`.
};

/// The most that items need at once, each of them aligned: no arena is smaller.
int64_t arenaBound(const std::vector<ArenaItem> &items);

/// Gives items whose lives overlap disjoint places: large ones first, each into the tightest gap, and, where that takes
/// 1 % more than `arenaBound`, in some other orders, those that are large and live long first among them; the smallest
/// arena of these. Offsets are multiples of
/// `bufferAlignment`. Returns the size of the arena.
int64_t planArena(std::vector<ArenaItem> &items);

/// Gives whole pages of a part of an `Allocation` back to the system: what they held is lost, and they can be used
/// again.
void releasePages(std::byte *memory, int64_t bytes);

/// Memory aligned to pages, zeroed but for `fillMemory`.
class Allocation {
public:
  Allocation() = default;
  ~Allocation();
  Allocation(Allocation &&other) noexcept;
  Allocation &operator=(Allocation &&other) noexcept;

  /// Errors: RESOURCE_EXHAUSTED when the machine has less memory.
  static absl::StatusOr<Allocation> create(int64_t bytes);

  std::byte *data() const { return memory; }
  int64_t size() const { return bytes; }

private:
  std::byte *memory = nullptr;
  int64_t bytes = 0;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_ARENA_H
