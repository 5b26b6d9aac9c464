//===- CudaTarget.cpp - The target cuda -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the target of NVIDIA devices.
//
//===----------------------------------------------------------------------===//

#include "CudaTarget.h"

#include "dovetail/CodeGen/GPU/BlockPasses.h"
#include "dovetail/CodeGen/GPU/Compile.h"

using namespace mlir;
using namespace dovetail;

namespace {
class CudaTarget : public Target {
public:
  StringRef getName() const override { return "cuda"; }
  ArrayRef<std::string> getLibraries() const override {
    static const std::string libraries[] = {"cudnn", "cublaslt", "cufft"};
    return libraries;
  }
  ArrayRef<plan::MathMode> getMathModes() const override {
    static constexpr plan::MathMode modes[] = {plan::MathMode::F32, plan::MathMode::TF32, plan::MathMode::BF16};
    return modes;
  }
  ArrayRef<std::string> getArchs() const override { return getCudaArchs(); }
  StringRef getCluster() const override { return "h100"; }
  void addPasses(OpPassManager &passes) const override { addBlockPasses(passes, DeviceDescription()); }
  FailureOr<ProgramCode> compile(ModuleOp module, const CodeGenOptions &options) const override;
};
} // namespace

FailureOr<ProgramCode> CudaTarget::compile(ModuleOp module, const CodeGenOptions &options) const {
  CodeGenOptions chosen = options;
  if (chosen.archs.empty())
    chosen.archs = {"sm_80", "sm_90", "sm_100"};
  return compileCudaKernels(module, chosen, findPtxas());
}

const Target *dovetail::getCudaTarget() {
  static const CudaTarget target;
  return &target;
}
