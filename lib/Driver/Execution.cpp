//===- Execution.cpp - Running compiled programs in process -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements load and execute, with the runtime.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Execution.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"

using namespace dovetail;

ExitCode dovetail::getExitCode(const absl::Status &status) {
  return static_cast<ExitCode>(runtime::exitCodeOf(status));
}

static llvm::LogicalResult fail(const absl::Status &status, const llvm::Twine &what, Diagnostics &diagnostics) {
  // That this compiler's own artifact is damaged is its own fault; that it is for another CPU is not.
  ExitCode code = absl::IsDataLoss(status) ? ExitCode::Internal : getExitCode(status);
  return diagnostics.error(code, what + ": " + std::string(status.message()));
}

llvm::FailureOr<std::shared_ptr<const runtime::Program>>
dovetail::load(llvm::ArrayRef<std::byte> artifact, const llvm::Twine &what, Diagnostics &diagnostics) {
  auto program = runtime::Program::load(absl::MakeConstSpan(artifact.data(), artifact.size()));
  if (!program.ok())
    return fail(program.status(), what, diagnostics);
  return *program;
}

llvm::FailureOr<std::vector<tools::NamedTensor>> dovetail::execute(std::shared_ptr<const runtime::Program> program,
                                                                   std::vector<tools::NamedTensor> &inputs, int threads,
                                                                   const llvm::Twine &what, Diagnostics &diagnostics) {
  runtime::RunnerOptions options;
  options.threads = threads;
  auto runner = runtime::ProgramRunner::create(program, options);
  if (!runner.ok())
    return fail(runner.status(), what, diagnostics);
  std::vector<tools::NamedTensor> outputs = tools::makeOutputs(program->getPlan());
  if (absl::Status status = (*runner)->run(tools::viewsOf(inputs), tools::viewsOf(outputs)); !status.ok())
    return fail(status, what, diagnostics);
  tools::cutOutputs(**runner, outputs);
  return outputs;
}

llvm::FailureOr<std::vector<std::byte>> dovetail::packWeights(std::shared_ptr<const runtime::Program> program,
                                                              int threads, Diagnostics &diagnostics) {
  runtime::RunnerOptions options;
  options.threads = threads * program->numRanks();
  auto runner = runtime::ProgramRunner::create(program, options);
  if (!runner.ok())
    return fail(runner.status(), "--prepack", diagnostics);
  return (*runner)->packedImage();
}
