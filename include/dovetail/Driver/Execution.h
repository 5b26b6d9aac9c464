//===- Execution.h - Running compiled programs in process -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the driver runs the programs that it has compiled.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_EXECUTION_H
#define DOVETAIL_DRIVER_EXECUTION_H

#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/runtime/Program.h"
#include "dovetail/tools/TensorFile.h"

#include "absl/status/status.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace dovetail {

/// What an error of the runtime means for the user.
ExitCode getExitCode(const absl::Status &status);

/// Loads an artifact that was just compiled, which messages call `what`, such as "the partitioned program".
llvm::FailureOr<std::shared_ptr<const runtime::Program>> load(llvm::ArrayRef<std::byte> artifact,
                                                              const llvm::Twine &what, Diagnostics &diagnostics);

/// Runs a program on all of its ranks, as threads of this process. `inputs` come in the order of the program's, as its
/// outputs do.
llvm::FailureOr<std::vector<tools::NamedTensor>> execute(std::shared_ptr<const runtime::Program> program,
                                                         std::vector<tools::NamedTensor> &inputs, int threads,
                                                         const llvm::Twine &what, Diagnostics &diagnostics);

/// The weights of all ranks of a program as library calls with so many threads a rank want them on this machine, as
/// `runtime::ProgramRunner::packedImage` gives them.
llvm::FailureOr<std::vector<std::byte>> packWeights(std::shared_ptr<const runtime::Program> program, int threads,
                                                    Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_EXECUTION_H
