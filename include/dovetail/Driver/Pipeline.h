//===- Pipeline.h - The compiler's phases -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the phases of the compiler and the passes that each of them runs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_PIPELINE_H
#define DOVETAIL_DRIVER_PIPELINE_H

#include "dovetail/Driver/ExitCode.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace dovetail {

struct CompileOptions;

/// In the order in which they run.
enum class Phase { Import, Simplify, Legalize, Propagate, Partition, Lower, CodeGen, Emit };

/// All phases, in that order.
llvm::ArrayRef<Phase> getPhases();
/// The name of a phase on the command line, such as `propagate`.
llvm::StringRef getPhaseName(Phase phase);
/// The phase of that name, if there is one.
std::optional<Phase> parsePhase(llvm::StringRef name);

/// What an error in a phase means for the user, unless the phase says otherwise.
ExitCode getPhaseExitCode(Phase phase);

/// Whether convolutions may be done by algorithms of the runtime's own, for which weights are transformed to larger
/// ones.
bool hasAlgorithms(const CompileOptions &options);

/// Adds the passes of `phase` to `passes`, a pass manager of modules. Import and Emit have none.
void addPasses(Phase phase, const CompileOptions &options, mlir::PassManager &passes);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_PIPELINE_H
