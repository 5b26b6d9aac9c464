//===- LowerGraphPipeline.cpp - From a graph to a plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says which passes make a plan of a partitioned graph, one for each decision.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace dovetail;

/// Up to so many rows, kernels that widen weights where they read them take about as long as libraries do. On devices
/// it is those whose products wait for memory.
static constexpr int64_t kHostKernelRows = 1024, kDeviceKernelRows = 4;

/// Devices do so much, 64 MB of f32, in the time that a decision takes: tens of microseconds.
static constexpr int64_t kDeviceChoiceWork = 1 << 24;

void dovetail::buildLowerGraphPipeline(OpPassManager &passes, ArrayRef<std::string> libraries,
                                       ArrayRef<std::string> features, bool gathersAhead,
                                       const DovetailToPlanOptions &program) {
  SmallVector<std::string> names(libraries), available(features);
  OpPassManager &functions = passes.nest<func::FuncOp>();
  functions.addPass(createChooseFormats({names, available}));
  functions.addPass(createFormLoops());
  functions.addPass(createFormChoices({program.target == "cpu" ? 0 : kDeviceChoiceWork}));
  functions.addPass(createKeepPacked({program.target == "cpu" ? kHostKernelRows : kDeviceKernelRows}));
  functions.addPass(createFormCalls({names, available}));
  functions.addPass(createFuseKernels());
  functions.addPass(createConvertFormats({names, available}));
  functions.addPass(createFormPrologue());
  functions.addPass(createPlaceGathers({gathersAhead}));
  passes.addPass(createShareStorage({/*kernelsInPlace=*/program.target == "cpu", names, available}));
  passes.addPass(createDovetailToPlan(program));
}

namespace {
struct LowerGraphOptions : PassPipelineOptions<LowerGraphOptions> {
  ListOption<std::string> libraries{*this, "libraries", llvm::cl::desc("The libraries that calls may use")};
  ListOption<std::string> features{*this, "features", llvm::cl::desc("What the processor has, in LLVM's spelling")};
  Option<bool> gathersAhead{*this, "gathers-ahead", llvm::cl::desc("Whether gathers begin a layer ahead"),
                            llvm::cl::init(false)};
  Option<std::string> target{*this, "target", llvm::cl::desc("Target of the program"), llvm::cl::init("cpu")};
};
} // namespace

void dovetail::registerLowerGraphPipeline() {
  PassPipelineRegistration<LowerGraphOptions>(
      "dovetail-lower-graph", "Make a plan of a partitioned graph",
      [](OpPassManager &passes, const LowerGraphOptions &options) {
        DovetailToPlanOptions program;
        program.target = options.target;
        buildLowerGraphPipeline(passes, SmallVector<std::string>(options.libraries.begin(), options.libraries.end()),
                                SmallVector<std::string>(options.features.begin(), options.features.end()),
                                options.gathersAhead, program);
      });
}
