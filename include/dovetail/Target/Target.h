//===- Target.h - What programs are compiled for ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Target, the only thing that the driver knows of a target, and the list of targets.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TARGET_TARGET_H
#define DOVETAIL_TARGET_TARGET_H

#include "dovetail/Artifact/ProgramCode.h"
#include "dovetail/CodeGen/Options.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace dovetail {

/// What programs are compiled for. Stateless.
class Target {
public:
  virtual ~Target() = default;

  /// As in `--target`.
  virtual llvm::StringRef getName() const = 0;
  /// Where its programs have their memory; on devices, they launch steps beside each other.
  virtual plan::ProgramMemory getMemory() const { return plan::ProgramMemory::Device; }
  /// Work, in additions, that takes as long as a decision of a run: what takes less is computed in any case. A device
  /// does 64 MB of f32 in tens of microseconds.
  virtual int64_t getChoiceWork() const { return int64_t(1) << 24; }
  /// Rows of products, at most, for which kernels that widen packed weights where they read them take about as long as
  /// libraries do. On devices it is those whose products wait for memory.
  virtual int64_t getPackedRows() const { return 4; }
  /// Whether kernels keep rows in memory that they go over several times.
  virtual bool keepsRows() const { return false; }
  /// Whether weights can be stored as its library calls read them, and algorithms be measured, when it is compiled.
  virtual bool runsHere() const { return false; }
  /// The names of its libraries, which `dovetail/Library/Library.h` describes.
  virtual llvm::ArrayRef<std::string> getLibraries() const { return {}; }
  /// What the processor that `options` name has, as LLVM calls it, as far as libraries ask.
  virtual std::vector<std::string> getFeatures(const CodeGenOptions &options) const { return {}; }
  /// What its libraries can do with the factors of products of f32, the default first.
  virtual llvm::ArrayRef<plan::MathMode> getMathModes() const;
  /// Whether the runtime has kernels for algorithms of its own (`calls::getAlgorithms`) on the processor that `options`
  /// name.
  virtual bool hasAlgorithms(const CodeGenOptions &options) const { return false; }
  /// Whether the runtime has kernels for attention, which its libraries do.
  virtual bool hasAttention() const { return false; }
  /// Architectures that code can be generated for, ascending; none where CPUs are named instead.
  virtual llvm::ArrayRef<std::string> getArchs() const { return {}; }
  /// The built-in cluster whose devices and links ranks are taken to have, unless the user says otherwise.
  virtual llvm::StringRef getCluster() const { return "cpu"; }
  /// The passes that generate functions from the kernels of a plan.
  virtual void addPasses(mlir::OpPassManager &passes) const = 0;
  /// Compiles what the passes left in `module`, which is consumed. Emits an error, at the module's location, when that
  /// fails.
  virtual llvm::FailureOr<ProgramCode> compile(mlir::ModuleOp module, const CodeGenOptions &options) const = 0;
};

/// The target called `name`; null if there is none.
const Target *findTarget(llvm::StringRef name);

/// The public targets, as in messages: `cpu, cuda`.
std::string listTargets();

} // namespace dovetail

#endif // DOVETAIL_TARGET_TARGET_H
