//===- BatchLoops.h - Batches of library calls ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the dimensions that a library repeats a call over become one batch and calls one after another.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_BATCHLOOPS_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_BATCHLOOPS_H

#include "absl/status/status.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dovetail::runtime {

/// So many repetitions, with elements from one to the next in each of `operands` memories.
template <size_t operands> struct BatchLoop {
  int64_t count = 1;
  std::array<int64_t, operands> strides = {};
};

/// Loops over the repetitions of a call, outermost first.
template <size_t operands> class BatchLoops {
public:
  using Loop = BatchLoop<operands>;

  /// Adds a loop inside of the others: nothing if it has one iteration, and part of the last one where that goes on at
  /// the same distance in all memories.
  void add(Loop loop) {
    if (loop.count == 1)
      return;
    auto follows = [&](const Loop &outer) {
      for (size_t i = 0; i < operands; ++i)
        if (outer.strides[i] != loop.strides[i] * loop.count)
          return false;
      return true;
    };
    if (!loops.empty() && follows(loops.back())) {
      loop.count *= loops.back().count;
      loops.pop_back();
    }
    loops.push_back(loop);
  }

  /// Removes the longest loop and returns it: the batch of a library. One iteration if there is none.
  Loop takeLongest() {
    auto longest =
        std::max_element(loops.begin(), loops.end(), [](const Loop &a, const Loop &b) { return a.count < b.count; });
    if (longest == loops.end())
      return {};
    Loop loop = *longest;
    loops.erase(longest);
    return loop;
  }

  /// Removes the innermost loop and returns it. One iteration if there is none.
  Loop takeInnermost() {
    if (loops.empty())
      return {};
    Loop loop = loops.back();
    loops.pop_back();
    return loop;
  }

  const std::vector<Loop> &get() const { return loops; }
  int64_t countIterations() const {
    int64_t count = 1;
    for (const Loop &loop : loops)
      count *= loop.count;
    return count;
  }

  /// Calls `body` with the offsets of each iteration, in elements, until it fails.
  template <typename Body> absl::Status forEach(Body body) const {
    for (int64_t index = 0, count = countIterations(); index < count; ++index) {
      std::array<int64_t, operands> offsets = {};
      int64_t rest = index;
      for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
        for (size_t i = 0; i < operands; ++i)
          offsets[i] += rest % loop->count * loop->strides[i];
        rest /= loop->count;
      }
      if (absl::Status status = body(offsets); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

private:
  std::vector<Loop> loops;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_BATCHLOOPS_H
