//===- MeshChoice.h - Axes of the mesh that the compiler makes --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares chooseMesh.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_MESHCHOICE_H
#define DOVETAIL_LIB_DRIVER_MESHCHOICE_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// The mesh of `options.autoRanks` ranks, over up to three axes `a`, `b` and `c`, with which what the objective asks
/// for is least. `compilation` is at the end of the phase simplify and stays there. Alternatives are a remark.
llvm::FailureOr<layout::Mesh> chooseMesh(Compilation &compilation, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_MESHCHOICE_H
