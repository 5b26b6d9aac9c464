//===- OneDnnConvolutions.h - Convolutions oneDNN is slow at ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which convolutions oneDNN 2.6 has no fast implementation for.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_ONEDNNCONVOLUTIONS_H
#define DOVETAIL_LIB_LIBRARY_ONEDNNCONVOLUTIONS_H

#include "dovetail/Layout/Box.h"
#include "dovetail/Library/CallShape.h"

namespace dovetail {

/// Whether the runtime's own kernels can do `call`, over gathered rows.
bool mayGather(const CallShape &call);

/// As `Library::isSlow`, of the part of `call` that computes `loops`, on a processor with AVX2 and AVX-512 or without.
bool isSlowConvolution(const CallShape &call, const layout::Box &loops, bool hasAvx2, bool hasAvx512);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_ONEDNNCONVOLUTIONS_H
