//===- Passes.td - Passes that simplify the graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TRANSFORMS_PASSES_TD
#define DOVETAIL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldConstants : Pass<"dovetail-fold-constants"> {
  let summary = "Compute operations whose operands are all constant and whose result is small";
  let description = [{
    Runs the element definitions of operations, so that every operator can be folded. What is left to run time are large results, such as
    reordered weights, and functions that LLVM cannot evaluate.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
  let options = [
    Option<"maxElements", "max-elements", "int64_t", "4096", "Largest number of elements of a result to compute">
  ];
}

#endif // DOVETAIL_TRANSFORMS_PASSES_TD
