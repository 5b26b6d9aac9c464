//===- SimplifyPipeline.cpp - The order of simplification -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says in which order the passes of simplify run.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dovetail;

void dovetail::buildSimplifyPipeline(OpPassManager &functions, const SimplifyTarget &target) {
  // Patterns compare values, so that what is written twice must be one value, and constants must be computed.
  functions.addPass(createCSEPass());
  if (target.hasIntegerProducts)
    functions.addPass(createFormIntegerProducts());
  else if (target.hasPlainProducts)
    functions.addPass(createFormFloatProducts());
  functions.addPass(createFoldConstants());
  functions.addPass(createSimplifyArithmetic());
  functions.addPass(createFoldConstants());
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
  if (target.hasTransforms)
    functions.addPass(createExpandTransforms());
  functions.addPass(createFoldScales());
  if (target.hasNarrowProducts)
    functions.addPass(createFoldNarrowScales());
  functions.addPass(createFoldPads());
  if (target.hasAttention)
    functions.addPass(createFormAttention());
  functions.addPass(createExpandNorms());
  functions.addPass(createExpandWraps());
  functions.addPass(createFoldConstants());
  functions.addPass(createCSEPass());
  functions.addPass(createTransposeConstants());
  functions.addPass(createPackConstants());
}

void dovetail::registerSimplifyPipeline() {
  PassPipelineRegistration<>(
      "dovetail-simplify", "Simplify the graph before shardings are chosen",
      [](OpPassManager &passes) { buildSimplifyPipeline(passes.nest<func::FuncOp>(), SimplifyTarget()); });
}
