//===- Passes.h - Passes that lower the graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes of lower.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CONVERSION_PASSES_H
#define DOVETAIL_CONVERSION_PASSES_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/Conversion/Passes.h.inc"

/// Numbers that decide between ways to compute the same, each with the pass that has it as an option.
struct LowerGraphCosts {
  int64_t choiceWork; ///< `dovetail-form-choices`.
  int64_t packedRows; ///< `dovetail-keep-packed`.
  bool gathersAhead;  ///< `dovetail-place-gathers`.
};

/// Adds the passes that make plans of a module's partitioned graphs, in their order. `libraries` and `features` are as
/// in the options of passes.
void buildLowerGraphPipeline(mlir::OpPassManager &passes, llvm::ArrayRef<std::string> libraries,
                             llvm::ArrayRef<std::string> features, const LowerGraphCosts &costs,
                             const DovetailToPlanOptions &program);

/// Registers that as the pipeline `dovetail-lower-graph`.
void registerLowerGraphPipeline();

} // namespace dovetail

#endif // DOVETAIL_CONVERSION_PASSES_H
