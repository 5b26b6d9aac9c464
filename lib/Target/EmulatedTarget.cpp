//===- EmulatedTarget.cpp - The target emulated -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the target of the device that tests emulate.
//
//===----------------------------------------------------------------------===//

#include "EmulatedTarget.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/GPU/BlockPasses.h"
#include "dovetail/CodeGen/Passes.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// The kernels are those of real devices, so nothing here decides anything about them.
class EmulatedTarget : public Target {
public:
  StringRef getName() const override { return "emulated"; }
  // What the compiler does around transforms of a library is tested on no other target.
  ArrayRef<std::string> getLibraries() const override {
    static const std::string libraries[] = {"cufft"};
    return libraries;
  }
  void addPasses(OpPassManager &passes) const override {
    addBlockPasses(passes, DeviceDescription());
    passes.addPass(createEmulateBlocks());
  }
  FailureOr<ProgramCode> compile(ModuleOp module, const CodeGenOptions &options) const override {
    return compileCpuKernels(module, options);
  }
};
} // namespace

const Target *dovetail::getEmulatedTarget() {
  static const EmulatedTarget target;
  return &target;
}
