//===- GenerateBlockKernels.cpp - Generates kernels for thread blocks -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-generate-block-kernels, and which passes come before it.
//
//===----------------------------------------------------------------------===//

#include "Mapping/BlockMapping.h"
#include "dovetail/CodeGen/GPU/BlockPasses.h"

#include "dovetail/CodeGen/GPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_GENERATEBLOCKKERNELS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// The options of a pass that describe `device`.
template <typename Options> static Options getOptions(const DeviceDescription &device) {
  return {device.warpThreads, device.blockThreads, device.accessBytes,
          device.sharedBytes, device.sharedBanks,  device.busyBlocks};
}

void dovetail::addBlockPasses(OpPassManager &passes, const DeviceDescription &device) {
  passes.addPass(createPlaceWeights());
  passes.addPass(createSplitReductions(getOptions<SplitReductionsOptions>(device)));
  passes.addPass(createFuseEpilogues(getOptions<FuseEpiloguesOptions>(device)));
  // Reductions of one shape combine their parts in one way.
  passes.addPass(createShareKernels());
  passes.addPass(createGenerateBlockKernels(getOptions<GenerateBlockKernelsOptions>(device)));
}

namespace {
struct GenerateBlockKernels : dovetail::impl::GenerateBlockKernelsBase<GenerateBlockKernels> {
  using GenerateBlockKernelsBase::GenerateBlockKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = llvm::to_vector(module.getOps<plan::KernelOp>());
    if (kernels.empty())
      return;
    const DeviceDescription device = {warpThreads, blockThreads, accessBytes, sharedBytes, sharedBanks, busyBlocks};
    if (failed(verifyDevice(module.getLoc(), device)))
      return signalPassFailure();
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    auto code = gpu::GPUModuleOp::create(builder, module.getLoc(), blockKernelsModule);
    for (plan::KernelOp kernel : kernels) {
      builder.setInsertionPointToEnd(&code.getBodyRegion().front());
      if (failed(checkKernel(kernel)))
        return signalPassFailure();
      KernelAnalysis analysis(kernel);
      if (analysis.getInPlaceReads()) {
        kernel.emitOpError("reads operands that it overwrites, which only kernels for CPUs do");
        return signalPassFailure();
      }
      std::unique_ptr<BlockMapping> mapping = chooseMapping({kernel, builder, analysis, device});
      if (failed(mapping->emit()))
        return signalPassFailure();
      kernel.setBlocksAttr(mapping->getBlocks());
    }
    simplifyKernels(code);
  }
};
} // namespace
