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

void dovetail::buildLowerGraphPipeline(OpPassManager &passes, ArrayRef<std::string> libraries,
                                       ArrayRef<std::string> features, const LowerGraphCosts &costs,
                                       const DovetailToPlanOptions &program) {
  SmallVector<std::string> names(libraries), available(features);
  OpPassManager &functions = passes.nest<func::FuncOp>();
  functions.addPass(createChooseFormats({names, available}));
  functions.addPass(createFormLoops());
  functions.addPass(createFormChoices({costs.choiceWork}));
  functions.addPass(createKeepPacked({costs.packedRows}));
  functions.addPass(createFormCalls({names, available}));
  functions.addPass(createFuseKernels());
  functions.addPass(createConvertFormats({names, available}));
  functions.addPass(createFormPrologue());
  functions.addPass(createPlaceGathers({costs.gathersAhead}));
  passes.addPass(
      createShareStorage({/*kernelsInPlace=*/program.memory == plan::ProgramMemory::Host, names, available}));
  passes.addPass(createDovetailToPlan(program));
}

namespace {
struct LowerGraphOptions : PassPipelineOptions<LowerGraphOptions> {
  ListOption<std::string> libraries{*this, "libraries", llvm::cl::desc("The libraries that calls may use")};
  ListOption<std::string> features{*this, "features", llvm::cl::desc("What the processor has, in LLVM's spelling")};
  Option<bool> gathersAhead{*this, "gathers-ahead", llvm::cl::desc("Whether gathers begin a layer ahead"),
                            llvm::cl::init(false)};
  Option<std::string> target{*this, "target", llvm::cl::desc("Target of the program"), llvm::cl::init("cpu")};
  Option<bool> device{*this, "device", llvm::cl::desc("Whether the program has its memory on a device"),
                      llvm::cl::init(false)};
  Option<int64_t> choiceWork{*this, "choice-work", llvm::cl::desc("Work that takes as long as a decision"),
                             llvm::cl::init(0)};
  Option<int64_t> packedRows{*this, "packed-rows", llvm::cl::desc("Rows of products of weights that stay packed"),
                             llvm::cl::init(1024)};
};
} // namespace

void dovetail::registerLowerGraphPipeline() {
  PassPipelineRegistration<LowerGraphOptions>(
      "dovetail-lower-graph", "Make a plan of a partitioned graph",
      [](OpPassManager &passes, const LowerGraphOptions &options) {
        DovetailToPlanOptions program;
        program.target = options.target;
        program.memory = options.device ? plan::ProgramMemory::Device : plan::ProgramMemory::Host;
        buildLowerGraphPipeline(passes, SmallVector<std::string>(options.libraries.begin(), options.libraries.end()),
                                SmallVector<std::string>(options.features.begin(), options.features.end()),
                                {options.choiceWork, options.packedRows, options.gathersAhead}, program);
      });
}
