//===- KernelArguments.h - What kernels are called with ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_KERNELARGUMENTS_H
#define DOVETAIL_RUNTIME_SESSION_KERNELARGUMENTS_H

#include "dovetail/runtime/RankMemory.h"

namespace dovetail::runtime {

/// The arguments of a kernel on one rank, as KernelAbi.h has them.
struct KernelArguments {
  std::vector<layout::Interval> ranges; ///< Of the loops.
  std::vector<void *> pointers;
  std::vector<int64_t> numbers;
};

/// The ranges that the rank has of the loops.
std::vector<layout::Interval> kernelRanges(const RankMemory &memory, const KernelCall &call);
/// Whether one of the loops that matter is empty.
bool hasNothingToDo(const RankMemory &memory, const KernelCall &call);
KernelArguments kernelArguments(const RankMemory &memory, const KernelCall &call);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_KERNELARGUMENTS_H
