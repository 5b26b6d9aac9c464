//===- Passes.td - Passes that lower the graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CONVERSION_PASSES_TD
#define DOVETAIL_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecomposeComposites : Pass<"dovetail-decompose-composites", "::mlir::func::FuncOp"> {
  let summary = "Replace composite operations by the simpler ones that kernels are made of";
  let description = [{
    Normalisations and softmax that propagation left whole become reductions and elementwise operations. None of the
    dimensions that they reduce is split, so their parts take the shardings of the whole.
  }];
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

def DovetailToPlan : Pass<"dovetail-to-plan", "::mlir::ModuleOp"> {
  let summary = "Lower the graph to buffers, kernels, library calls and exchanges";
  let description = [{
    Chooses a memory format for each value, forms groups of operations that become one kernel or one library call with
    its epilogue, gives each value a buffer (a value and its halo-extended reshard share one), and emits the steps. What
    depends on constants alone goes to the prologue. Nothing here knows a target but for what `libraries` say that they
    do.
  }];
  let options = [
    ListOption<"libraries", "libraries", "std::string",
               "The libraries that calls may use: onednn, cudnn, cublaslt; none: every operation is a kernel">,
    ListOption<"features", "features", "std::string",
               "What the processor has, as far as libraries ask, in LLVM's spelling, such as avx512bf16">,
    Option<"target", "target", "std::string", "\"cpu\"", "Target of the program">,
    Option<"math", "math", "::dovetail::plan::MathMode", "::dovetail::plan::MathMode::F32",
           "What library calls may do with the factors of products of f32",
           [{::llvm::cl::values(
             clEnumValN(::dovetail::plan::MathMode::F32, "f32", "Nothing"),
             clEnumValN(::dovetail::plan::MathMode::TF32, "tf32", "Round them to 10 bits of mantissa"),
             clEnumValN(::dovetail::plan::MathMode::BF16, "bf16", "Round them to bfloat16"))}]>
  ];
  let dependentDialects = ["::dovetail::plan::PlanDialect"];
}

#endif // DOVETAIL_CONVERSION_PASSES_TD
