//===- KernelStep.h - Calls of generated kernels ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELSTEP_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELSTEP_H

#include "../../Session/StepExecutor.h"
#include "../../Threads/ThreadPool.h"

#include "dovetail/runtime/KernelAbi.h"

namespace dovetail::runtime {

/// Null when the rank has nothing to do. `threads` outlives the step.
StepExecutorOr createKernelStep(const RankMemory &memory, const KernelCall &call, DovetailKernel kernel,
                                ThreadPool &threads);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELSTEP_H
