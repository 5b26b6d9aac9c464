//===- Planning.h - What is settled before shardings are chosen -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a mesh of so many ranks is made, and how a program is made to fit the memory of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_PLANNING_H
#define DOVETAIL_DRIVER_PLANNING_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// The mesh of `options.autoRanks` ranks, over up to three axes `a`, `b` and `c`, with which what the objective asks
/// for is least. `compilation` is at the end of the phase simplify and stays there. Alternatives are a remark.
llvm::FailureOr<layout::Mesh> chooseMesh(Compilation &compilation, Diagnostics &diagnostics);

/// The options, but for `memory`, with which the program fits `options.memory` on every rank, as `inspect` tells: the
/// planner is told what its estimate must not exceed or, where that is not enough, that memory is to be least. Where
/// that is the objective, the one of all objectives whose program takes least.
/// `compilation` is at the end of the phase simplify and stays there. An error, of what does not fit, where no such
/// program is found: with how many ranks there would be one, and what takes most room.
llvm::FailureOr<CompileOptions> fitMemory(Compilation &compilation, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_PLANNING_H
