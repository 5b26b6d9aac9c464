//===- Passes.td - Passes that generate code -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_PASSES_TD
#define DOVETAIL_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ShareKernels : Pass<"plan-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Keep one of the kernels that are equal but for their name";
  let description = [{
    Launches of the others are redirected to the one that is kept. Locations and names of values do not count.
  }];
  let statistics = [Statistic<"numShared", "num-shared", "Number of kernels removed">];
}

def GenerateCpuKernels : Pass<"plan-generate-cpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Generate loops for every kernel, for CPUs";
  let description = [{
    For each `plan.kernel @k`, a function `@k` of the runtime's calling convention and the function `@k.body` that it calls, with loops in
    global coordinates, both in the nested module `@cpu_kernels`. Loops follow the physical order of the first result, except that
    loops which an expensive value inside does not depend on become innermost, so that the value is computed outside of them. Sets
    the kernel's `parallel_loop`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // DOVETAIL_CODEGEN_PASSES_TD
