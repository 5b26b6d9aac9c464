//===- MemoryFit.h - Programs that fit into memory --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares fitMemory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_MEMORYFIT_H
#define DOVETAIL_LIB_DRIVER_MEMORYFIT_H

#include "dovetail/Driver/Compilation.h"

namespace dovetail {

/// The options, but for `memory`, with which the program fits `options.memory` on every rank, as `inspect` tells. The
/// search for shardings gets a limit for its estimate. Where that is not enough, memory is to be least. Where memory is
/// the objective, the options are those of the objective whose program takes least.
/// `compilation` is at the end of the phase simplify and stays there. Errors: no such program is found. The message
/// says what does not fit and what takes most room, and with how many ranks there would be a program.
llvm::FailureOr<CompileOptions> fitMemory(Compilation &compilation, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_MEMORYFIT_H
