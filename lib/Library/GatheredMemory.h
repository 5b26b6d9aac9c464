//===- GatheredMemory.h - Memory of own convolutions ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what memory convolutions by the runtime's own kernels take.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_GATHEREDMEMORY_H
#define DOVETAIL_LIB_LIBRARY_GATHEREDMEMORY_H

#include "dovetail/Library/Library.h"

namespace dovetail {

/// As `Library::getMemoryBound`, of a convolution whose algorithm is `Gathered`, on processors whose vectors have at
/// least so many elements of f32.
CallBytes getGatheredMemory(const CallShape &call, const layout::Box &loops, bool packsOnce, int64_t leastVector);

/// The same if results are computed one at a time, which is slow.
CallBytes getLeastGatheredMemory(const CallShape &call, const layout::Box &loops, bool packsOnce, int64_t leastVector);

/// Elements of f32 in the vectors that the runtime's kernels have at least, on processors with these features.
int64_t getLeastVector(llvm::ArrayRef<std::string> features);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_GATHEREDMEMORY_H
