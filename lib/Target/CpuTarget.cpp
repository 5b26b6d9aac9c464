//===- CpuTarget.cpp - The target cpu -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the target of x86-64 CPUs.
//
//===----------------------------------------------------------------------===//

#include "CpuTarget.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace dovetail;

namespace {
class CpuTarget : public Target {
public:
  StringRef getName() const override { return "cpu"; }
  plan::ProgramMemory getMemory() const override { return plan::ProgramMemory::Host; }
  int64_t getChoiceWork() const override { return 0; }
  int64_t getPackedRows() const override { return 1024; }
  bool keepsRows() const override { return true; }
  bool runsHere() const override { return true; }
  ArrayRef<std::string> getLibraries() const override {
    static const std::string libraries[] = {"onednn", "kernels"};
    return libraries;
  }
  ArrayRef<plan::MathMode> getMathModes() const override {
    static constexpr plan::MathMode modes[] = {plan::MathMode::F32, plan::MathMode::F32Strict};
    return modes;
  }
  std::vector<std::string> getFeatures(const CodeGenOptions &options) const override {
    return getCpuFeatures(options.cpu);
  }
  bool hasAlgorithms(const CodeGenOptions &options) const override {
    std::vector<std::string> features = getFeatures(options);
    return llvm::is_contained(features, "avx2") && llvm::is_contained(features, "fma");
  }
  bool hasAttention() const override { return true; }
  void addPasses(OpPassManager &passes) const override { passes.addPass(createGenerateCpuKernels()); }
  FailureOr<ProgramCode> compile(ModuleOp module, const CodeGenOptions &options) const override {
    return compileCpuKernels(module, options);
  }
};
} // namespace

const Target *dovetail::getCpuTarget() {
  static const CpuTarget target;
  return &target;
}
