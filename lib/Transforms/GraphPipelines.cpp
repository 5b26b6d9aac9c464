//===- GraphPipelines.cpp - The order of the passes over unsplit graphs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says in which order the passes of simplify and legalize run.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dovetail;

void dovetail::buildSimplifyPipeline(OpPassManager &functions) {
  // Patterns compare values, so that what is written twice must be one value, and constants must be computed. Weights
  // that are stored as integers stay so: they are smaller, and legalize decides whether they are multiplied as they
  // are.
  FoldConstantsOptions folding;
  folding.keepFactors = true;
  functions.addPass(createCSEPass());
  functions.addPass(createFoldConstants(folding));
  functions.addPass(createSimplifyArithmetic());
  functions.addPass(createFoldConstants(folding));
  functions.addPass(createSimplifyShapes());
  functions.addPass(createCSEPass());
  functions.addPass(createRecognizeNorms());
  functions.addPass(createRecognizeSoftmax());
  functions.addPass(createRecognizeActivations());
  // What was recognised has fewer reshapes around it, and products have their factors next to them.
  functions.addPass(createSimplifyShapes());
  functions.addPass(createRestoreRows());
  functions.addPass(createHoistSlices());
  functions.addPass(createSinkPads());
  functions.addPass(createSimplifyShapes());
  functions.addPass(createFoldPads());
}

void dovetail::buildLegalizePipeline(OpPassManager &functions, const GraphTarget &target) {
  // Weights that are stored as integers are told from others until constants are computed.
  if (target.hasIntegerProducts)
    functions.addPass(createFormIntegerProducts());
  else if (target.hasPlainProducts)
    functions.addPass(createFormFloatProducts());
  functions.addPass(createFoldConstants());
  if (target.hasIntegerProducts || target.hasPlainProducts) {
    // Products have moves and pads of integers next to them now, and other scales behind them.
    functions.addPass(createSimplifyArithmetic());
    functions.addPass(createSinkPads());
    functions.addPass(createSimplifyShapes());
    functions.addPass(createFoldPads());
  }
  if (target.hasTransforms)
    functions.addPass(createExpandTransforms());
  functions.addPass(createFoldScales());
  if (target.hasNarrowProducts)
    functions.addPass(createFoldNarrowScales());
  if (target.hasAttention)
    functions.addPass(createFormAttention());
  functions.addPass(createExpandNorms());
  functions.addPass(createExpandWraps());
  functions.addPass(createFoldConstants());
  functions.addPass(createCSEPass());
  functions.addPass(createTransposeConstants());
  functions.addPass(createPackConstants());
}

void dovetail::registerGraphPipelines() {
  PassPipelineRegistration<>("dovetail-simplify", "Simplify the graph",
                             [](OpPassManager &passes) { buildSimplifyPipeline(passes.nest<func::FuncOp>()); });
  PassPipelineRegistration<>(
      "dovetail-legalize", "Make of the graph what suits a target that has nothing special",
      [](OpPassManager &passes) { buildLegalizePipeline(passes.nest<func::FuncOp>(), GraphTarget()); });
}
