//===- OneDnnMemory.h - Memory that oneDNN takes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the bounds of what oneDNN's implementations take for packed weights and scratch memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_ONEDNNMEMORY_H
#define DOVETAIL_LIB_LIBRARY_ONEDNNMEMORY_H

#include "dovetail/Library/Library.h"

namespace dovetail {

/// As `Library::getMemoryBound`, on a processor with or without AVX-512.
std::optional<CallBytes> getOneDnnMemory(plan::CallOpInterface call, const layout::Box &loops, bool packsOnce,
                                         bool hasAvx512);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_ONEDNNMEMORY_H
