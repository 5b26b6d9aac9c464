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

def CallOpInterface : OpInterface<"CallOpInterface", [StepOpInterface]> {
  let cppNamespace = "::dovetail::plan";
  let description = [{
    A call of a library: writes one value, and reads operands as `reads` say, then the tensors of its epilogue.
  }];
  let methods = [
    InterfaceMethod<"The form of the call, which its accesses say; none if they do not fit.",
                    "::std::optional<::dovetail::CallForm>", "getCallForm">,
    InterfaceMethod<"The loops, of which the first ones are the dimensions of the output.", "::mlir::ArrayAttr",
                    "getLoops", (ins), [{ return $_op.getLoops(); }]>,
    InterfaceMethod<"Where each operand is read.", "::mlir::ArrayAttr", "getReads", (ins),
                    [{ return $_op.getReads(); }]>,
    InterfaceMethod<"What is applied to the result, and the tensors that this reads.", "::mlir::ArrayAttr",
                    "getPostOps", (ins), "", [{ return ::mlir::ArrayAttr::get($_op->getContext(), {}); }]>,
    InterfaceMethod<"Which of several ways to compute it is taken.", "::dovetail::plan::ConvolutionAlgorithm",
                    "getAlgorithm", (ins), "", [{ return ::dovetail::plan::ConvolutionAlgorithm::Library; }]>,
    InterfaceMethod<"Bounds of what the library takes; null if they are not known.",
                    "::dovetail::plan::CallMemoryAttr", "getMemoryAttr", (ins), [{ return $_op.getMemoryAttr(); }]>,
    InterfaceMethod<"Sets them.", "void", "setMemoryAttr", (ins "::dovetail::plan::CallMemoryAttr":$memory),
                    [{ $_op.setMemoryAttr(memory); }]>,
    InterfaceMethod<"How the threads of a rank divide it; null if they do not.", "::dovetail::plan::DivisionAttr",
                    "getDivisionAttr", (ins), [{ return $_op.getDivisionAttr(); }]>,
    InterfaceMethod<"Sets it.", "void", "setDivisionAttr", (ins "::dovetail::plan::DivisionAttr":$division),
                    [{ $_op.setDivisionAttr(division); }]>
  ];
  let extraClassDeclaration = [{
    ::mlir::Value getOutput() { return getStepWrites().front(); }
    /// The operands that `getReads` has accesses of.
    ::llvm::SmallVector<::mlir::Value> getCallOperands() {
      ::llvm::SmallVector<::mlir::Value> operands = getStepReads();
      operands.truncate(getReads().size());
      return operands;
    }
    /// The tensors that post-operations read.
    ::llvm::SmallVector<::mlir::Value> getPostTensors() {
      return ::llvm::to_vector(::llvm::drop_begin(getStepReads(), getReads().size()));
    }
  }];
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANINTERFACES_TD
