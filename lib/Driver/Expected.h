//===- Expected.h - What the search expects ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the search expects of a program before that is made.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_EXPECTED_H
#define DOVETAIL_LIB_DRIVER_EXPECTED_H

#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Prediction.h"

namespace dovetail {

/// Estimates of the search for a program.
struct Expected {
  double seconds = 0, bytes = 0, memory = 0;
  /// Of it, weights.
  double weights = 0;

  double get(Objective objective) const {
    switch (objective) {
    case Objective::Time:
      return seconds;
    case Objective::Bytes:
      return bytes;
    case Objective::Memory:
      return memory;
    }
    llvm_unreachable("covered switch");
  }
};

/// Of a module at the end of the phase propagate.
Expected getExpected(mlir::ModuleOp module);

/// With these options; nothing if they are refused. `compilation` is at the end of the phase simplify and stays there.
std::optional<Expected> tryOptions(Compilation &compilation, CompileOptions options);

/// A program that is lowered and simulated; nothing if it is refused.
std::optional<PredictedRun> tryProgram(Compilation &copy, const Cluster &cluster, bool estimatesMemory);

/// Options of a program that is made beside another one, to look at it: nothing is explained, measured or advised.
CompileOptions makeAside(CompileOptions options);
/// The same for one rank, which has all, whatever it is allowed.
CompileOptions makeAlone(CompileOptions options);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_EXPECTED_H
