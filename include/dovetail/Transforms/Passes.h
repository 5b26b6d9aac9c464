//===- Passes.h - Passes that simplify the graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes of the phases simplify and legalize.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TRANSFORMS_PASSES_H
#define DOVETAIL_TRANSFORMS_PASSES_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/Transforms/Passes.h.inc"

/// What the target has that not all have, as far as `legalize` asks.
struct GraphTarget {
  bool hasAttention = false;
  /// Its libraries have products of integers of 8 bits.
  bool hasIntegerProducts = false;
  /// They have none, but products of f32 that multiply and add, and round nowhere else.
  bool hasPlainProducts = false;
  /// They have Fourier transforms.
  bool hasTransforms = false;
  /// They have convolutions of 16 bits in that type.
  bool hasNarrowProducts = false;
};

/// Adds the passes of the phase `simplify`, in their order, to a pass manager of functions. They know no target: the
/// graph is the same for all.
void buildSimplifyPipeline(mlir::OpPassManager &functions);
/// Adds those of the phase `legalize`, which make of the graph what suits a target.
void buildLegalizePipeline(mlir::OpPassManager &functions, const GraphTarget &target);

/// Registers these as the pipelines `dovetail-simplify` and, for a target that has nothing special,
/// `dovetail-legalize`.
void registerGraphPipelines();

} // namespace dovetail

#endif // DOVETAIL_TRANSFORMS_PASSES_H
