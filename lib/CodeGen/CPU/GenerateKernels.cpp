//===- GenerateKernels.cpp - Generates loops for every kernel, for CPUs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-generate-cpu-kernels.
//
//===----------------------------------------------------------------------===//

#include "InterchangeLoops.h"
#include "JoinChecks.h"
#include "KernelEmitter.h"
#include "PackTransposes.h"
#include "SplitLoops.h"

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace dovetail {
#define GEN_PASS_DEF_GENERATECPUKERNELS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct GenerateCpuKernels : dovetail::impl::GenerateCpuKernelsBase<GenerateCpuKernels> {
  void getDependentDialects(DialectRegistry &registry) const override {
    GenerateCpuKernelsBase::getDependentDialects(registry);
    // Of operations that go through several lines at once.
    registry.insert<vector::VectorDialect>();
  }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = llvm::to_vector(module.getOps<plan::KernelOp>());
    if (kernels.empty())
      return;
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    auto code = ModuleOp::create(builder, module.getLoc(), cpuKernelsModule);
    IndexBounds bounds;
    for (plan::KernelOp kernel : kernels) {
      builder.setInsertionPointToEnd(code.getBody());
      if (failed(checkKernel(kernel)))
        return signalPassFailure();
      KernelAnalysis analysis(kernel, /*keepsValues=*/true);
      KernelEmitter emitter(kernel, builder, analysis);
      if (failed(emitter.emit()))
        return signalPassFailure();
      kernel.setParallelLoop(emitter.getParallelLoop());
      emitter.addBounds(bounds);
    }
    simplifyKernels(code);
    if (interchangeLoops(code))
      simplifyKernels(code);
    packTransposes(code);
    // Much of what changed in a loop does not change in its parts.
    if (splitLoops(code, bounds))
      simplifyKernels(code);
    if (unswitchLoops(code))
      simplifyKernels(code);
    joinChecks(code);
  }
};
} // namespace
