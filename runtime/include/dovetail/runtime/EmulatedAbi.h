//===- EmulatedAbi.h - Kernels of the emulated device -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the emulated device calls a kernel that the compiler generated for blocks of threads.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_EMULATEDABI_H
#define DOVETAIL_RUNTIME_EMULATEDABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One thread of a block, as its kernel sees it.
typedef struct DovetailBlockThread {
  int64_t threadIndex, blockIndex, blockSize, gridSize;
  /// The block's shared memory, as long as the step asks for.
  void *shared;
  /// Returns when all threads of the block have come.
  void (*barrier)(struct DovetailBlockThread *thread);
  /// Returns the value of the thread whose index within the warp of 32 differs by `mask`, and which must be there. All
  /// threads of the warp must come, with the same mask.
  uint64_t (*shuffleXor)(struct DovetailBlockThread *thread, uint64_t value, int32_t mask);
  /// Called before each access to memory that is not `shared` and not the thread's own. Does not return when the
  /// access is outside of what the launch may read or write, or the address no multiple of `alignment`.
  void (*check)(struct DovetailBlockThread *thread, const void *address, int64_t bytes, int64_t alignment,
                int32_t isWrite);
  /// The same for accesses to `shared`, at multiples of `bytes` from its beginning.
  void (*checkShared)(struct DovetailBlockThread *thread, const void *address, int64_t bytes, int32_t isWrite);
} DovetailBlockThread;

/// A generated kernel, called once for each thread. `pointers` and `numbers` are those of KernelAbi.h.
typedef void (*DovetailBlockKernel)(void *const *pointers, const int64_t *numbers, DovetailBlockThread *thread);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DOVETAIL_RUNTIME_EMULATEDABI_H
