//===- KernelAbi.h - Calling convention of generated CPU kernels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the runtime calls a kernel that the compiler generated.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_KERNELABI_H
#define DOVETAIL_RUNTIME_KERNELABI_H

#include <cstdint>

extern "C" {

/// A generated kernel. All coordinates are global: a kernel computes its result on the box given by the ranges of
/// its loops, and addresses each tensor as if the whole of it were in memory.
///
/// `pointers[i]` is the address that the element at global coordinate (0, ..., 0) of tensor i *would* have: the
/// buffer's address less the offset of the box that it holds, so it may lie outside of the buffer. Tensors come in the
/// order of the step's reads, then its writes. If the step has checks, one more pointer is that of their records, a
/// word of 64 bits for each: the kernel writes an index there that is out of range, and nothing otherwise. It reads at
/// the nearest one that is in range.
///
/// The last pointer, which is always there, is that of the run-time counts of the plan, a word of 64 bits for each, in
/// the memory of the tensors: what bounds those loops and dimensions that the plan says are bounded. The kernel of an
/// operation that finds a count writes its word; one with bounded loops ends their ranges there. It is null where no
/// loop of the plan is bounded, as in all plans of today; kernels take it and do not look at it.
///
/// `numbers` holds, for each loop of the step, `lo` and `hi` (a half-open range of global coordinates), and then,
/// for each tensor, one stride for each logical dimension, in elements.
///
/// Thread-safe: calls with disjoint ranges of the step's parallel loop may run at the same time.
typedef void (*DovetailKernel)(void *const *pointers, const int64_t *numbers);

} // extern "C"

#endif // DOVETAIL_RUNTIME_KERNELABI_H
