//===- JobLoops.h - Parts of loops that a job can take ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how nested loops are taken apart for kernels whose jobs have few loops and count their rounds in 32 bits.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_JOBLOOPS_H
#define DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_JOBLOOPS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dovetail::runtime::device {

/// A box of the rounds of nested loops.
struct LoopPart {
  std::vector<int64_t> first, count;

  int64_t rounds() const;
};

/// Takes loops of `counts` rounds, outermost first, apart into parts that have at most 2^31 rounds, and
/// at most `mostLoops` loops of more than one round. Parts are few.
std::vector<LoopPart> splitLoops(const std::vector<int64_t> &counts, size_t mostLoops);

} // namespace dovetail::runtime::device

#endif // DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_JOBLOOPS_H
