//===- BoxJobs.h - Work for the box kernels ---------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how boxes become the table that the box kernels read.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXJOBS_H
#define DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXJOBS_H

#include "BoxKernels.h"

#include "dovetail/runtime/Device.h"

#include <vector>

namespace dovetail::runtime::device {

struct BoxJobs {
  std::vector<BoxJob> jobs; ///< Those with tiles first.
  int64_t tileJobs = 0, tiles = 0, chunks = 0;
  unsigned sharedBytes = 0; ///< For the largest tile.

  int64_t chunkJobs() const { return static_cast<int64_t>(jobs.size()) - tileJobs; }

  /// Chunks are as wide as alignment allows. Empty boxes make no jobs.
  static BoxJobs copies(const std::vector<StridedBox> &boxes);
  static BoxJobs combinations(const CombinationDescription &description);
};

/// Bytes of `box` if they are contiguous in both memories, else -1.
int64_t contiguousBytes(const StridedBox &box);

} // namespace dovetail::runtime::device

#endif // DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXJOBS_H
