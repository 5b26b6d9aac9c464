//===- PlanInterfaces.td - What steps of a plan have in common -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANINTERFACES_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::dovetail::plan";
  let description = [{
    A step of a program: reads some values and writes others, all of type `!plan.ref`. Reads and writes of kernels and
    library calls never overlap in memory.
  }];
  let methods = [
    InterfaceMethod<"The values read, in the order of the operands.", "::llvm::SmallVector<::mlir::Value>",
      "getStepReads">,
    InterfaceMethod<"The values written, in the order of the operands.", "::llvm::SmallVector<::mlir::Value>",
                    "getStepWrites">,
    InterfaceMethod<"Whether the step may need memory of its own while it runs.", "bool", "takesScratch", (ins),
                    /*methodBody=*/"", /*defaultImplementation=*/"return false;">
  ];
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANINTERFACES_TD
