//===- Alignment.h - Where buffers begin ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the alignment of buffers and scratch memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORY_ALIGNMENT_H
#define DOVETAIL_RUNTIME_MEMORY_ALIGNMENT_H

#include <cstdint>

namespace dovetail::runtime {

/// Buffers and scratch memory begin at multiples of this many bytes.
inline constexpr int64_t bufferAlignment = 64;

/// `bytes`, rounded up to the alignment of buffers and scratch memory.
inline int64_t alignedSize(int64_t bytes) { return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment; }

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORY_ALIGNMENT_H
