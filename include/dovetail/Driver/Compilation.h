//===- Compilation.h - A model on its way to an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Compilation, which takes one model through the phases.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_COMPILATION_H
#define DOVETAIL_DRIVER_COMPILATION_H

#include "dovetail/Artifact/Writer.h"
#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/Driver/Options.h"
#include "dovetail/Driver/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dovetail {

/// What all runs of a pass took in one phase, verification after the pass included.
struct PassTime {
  std::string name;
  /// Of processor time.
  double seconds;
};

/// What a phase took.
struct PhaseTime {
  Phase phase;
  double seconds;
  /// The largest memory of the process so far.
  int64_t peakBytes;
  /// Processor time of all threads, which other work on the machine hardly changes.
  double processorSeconds;
  /// In the order in which they first ran. Phases do work outside of passes, too, such as machine code.
  std::vector<PassTime> passes = {};
  /// The name of work on copies beside the phase, which counts by itself; empty for the phase.
  llvm::StringRef aside = {};

  llvm::StringRef getName() const { return aside.empty() ? getPhaseName(phase) : aside; }
};

/// A model: a file, or the contents of one under a name, beside which its external data is looked for.
struct ModelSource {
  std::string path;
  std::optional<llvm::StringRef> bytes = std::nullopt;
};

/// Takes one model through the phases. Errors are reported to `diagnostics`; after one, nothing more can be done. Not
/// thread-safe, and compilations that share a context must not run at the same time.
class Compilation {
public:
  /// `context` and `diagnostics` must outlive this.
  Compilation(mlir::MLIRContext &context, CompileOptions options, Diagnostics &diagnostics)
      : context(context), options(std::move(options)), diagnostics(diagnostics) {}

  /// Runs the phase import on the ONNX file `path`.
  llvm::LogicalResult import(llvm::StringRef path);
  /// The same for a model in memory; the buffer's identifier is its name.
  llvm::LogicalResult import(llvm::MemoryBufferRef model);
  llvm::LogicalResult import(const ModelSource &model);
  /// Runs the phases that are left, up to and with `last`. The phase emit is run by `write` and `serialize` alone.
  llvm::LogicalResult runTo(Phase last);
  /// Runs the phases that are left and writes the artifact.
  llvm::LogicalResult write(llvm::StringRef path);
  /// The same, in memory.
  llvm::FailureOr<std::vector<std::byte>> serialize();

  /// A copy at the same point, to be finished with other options: those that matter to the phases which are left.
  Compilation fork(CompileOptions otherOptions) { return fork(std::move(otherOptions), diagnostics); }
  /// The same with other diagnostics, which must outlive the copy.
  Compilation fork(CompileOptions otherOptions, Diagnostics &otherDiagnostics);

  mlir::ModuleOp getModule() { return *module; }
  const CompileOptions &getOptions() const { return options; }
  const std::vector<PhaseTime> &getTimes() const { return times; }
  /// Bytes of each rank as the user or the cluster says; empty before the phase propagate, and if no rank has a limit.
  const std::vector<double> &getMemoryLimits() const { return memoryLimits; }
  /// The files of external data that the model was read from.
  const std::vector<std::string> &getExternalFiles() const { return externalFiles; }
  /// Those that are missing, as they may be where options say so.
  const std::vector<std::string> &getMissingFiles() const { return missingFiles; }

  /// Called after each phase but emit, while its result can be looked at.
  std::function<llvm::LogicalResult(Phase)> afterPhase;
  /// The last phase that will run, for progress.
  Phase lastPhase = Phase::Emit;
  /// If not null, receive the kernels as optimised LLVM IR and as assembly.
  llvm::raw_ostream *dumpLLVM = nullptr;
  llvm::raw_ostream *dumpAssembly = nullptr;

private:
  struct Instant;

  /// Settles what options leave open about meshes and memory. `begin` is put off by work that counts by itself.
  llvm::LogicalResult settleOptions(Instant &begin);
  /// Measures what they want measured; what is then to be decided so goes into `tuned`, a copy of them.
  llvm::LogicalResult autotune(CompileOptions &tuned);
  llvm::LogicalResult import(llvm::StringRef name, llvm::function_ref<ImportResult()> import);
  /// Shows that a phase begins.
  void showPhase(Phase phase) const;
  llvm::LogicalResult runPhase(Phase phase);
  llvm::LogicalResult runPasses(Phase phase, const CompileOptions &tuned, std::vector<PassTime> &passTimes);
  /// Runs the passes of the phase propagate, and says what they do once it is settled.
  llvm::LogicalResult propagate(std::vector<PassTime> &passTimes);
  /// Takes a plan that follows all that is stated, of the module `before`, if programs tell that departures do not save
  /// enough. `said` is what is said of the plan.
  void compareDepartures(mlir::OwningOpRef<mlir::ModuleOp> before, std::vector<mlir::Diagnostic> &said,
                         std::vector<PassTime> &passTimes);
  /// Runs the phases that are left before emit, and compiles the kernels to machine code.
  llvm::LogicalResult generateCode();
  /// Says, after the phase lower, with which sizes near those that are asked for ranks receive less.
  void adviseSizes();
  /// Says, after the phase lower, where fewer ranks are predicted to be faster.
  void adviseMesh();
  /// Adds weights as calls on this machine want them to the artifact.
  llvm::LogicalResult prepack(Artifact &artifact);
  /// Runs the phases that are left, the last one with `write`.
  llvm::LogicalResult emit(llvm::function_ref<llvm::LogicalResult(const Artifact &)> write);
  /// Notes what `phase` took since `begin`, and calls the hook.
  llvm::LogicalResult finishPhase(Phase phase, const Instant &begin, std::vector<PassTime> passes = {});

  mlir::MLIRContext &context;
  CompileOptions options;
  Diagnostics &diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> externalFiles, missingFiles;
  std::optional<Phase> done;
  /// Bytes of each rank as the user says, which are settled in `options`.
  std::vector<double> memoryLimits;
  ProgramCode code;
  std::vector<PhaseTime> times;
  /// As it was at the end of the phase legalize, and how long the search expects it to take as it is split.
  std::unique_ptr<Compilation> unsplit;
  double expectedSeconds = 0;
  /// Sizes that are asked for and cut between the steps of operations: `kDeparturesAttrName` says of them.
  llvm::SmallVector<mlir::DictionaryAttr, 1> unalignedSizes;
};

/// The exit code for a model that is not imported.
ExitCode getImportCode(ImportError error);

/// A context for compilations, without threads of its own.
std::unique_ptr<mlir::MLIRContext> createContext();

} // namespace dovetail

#endif // DOVETAIL_DRIVER_COMPILATION_H
