//===- ControlOps.td - Loops and choices of a graph -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop whose iterations are counted when the program runs is no region: its operations are those of the graph that
// depend on what it carries, and what it gives depends on `loop_result`. So whatever decides about graphs decides about those
// of loops, too, as if there were one iteration. `dovetail-form-loops` puts them one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

/// The loops are split as those of the operation that gives the first operand.
def Dovetail_SplitAsFirst : NativeOpTrait<"SplitAsFirst"> {
  let cppNamespace = "::dovetail";
}

/// Its elements are not what its operands say: it is neither folded, nor moved, nor computed twice.
class Dovetail_ControlOp<string mnemonic, list<Trait> traits = []>
    : Op<Dovetail_Dialect, mnemonic, [Dovetail_Defined<["emitBody", "isLinearIn"]>] # traits> {
  let results = (outs Dovetail_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  // Iterations and branches have values that are complete.
  let extraClassDefinition = [{
    bool $cppClass::isLinearIn(::llvm::ArrayRef<unsigned>) { return false; }
  }];
}

def Dovetail_IterArgOp : Dovetail_ControlOp<"iter_arg"> {
  let summary = "What an iteration of loop `loop` gets as its value number `slot`: `init` in the first one";
  let description = [{
    Value 0 is a boolean of rank 0, the condition: as long as it holds, there is another iteration. Each value has one
    `yield`, and may have one `loop_result`.

    ```mlir
    %on = dovetail.iter_arg %0 {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
    %x = dovetail.iter_arg %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = dovetail.add %x, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = dovetail.yield %x, %2 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %5 = dovetail.yield %on, %6 {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %7 = dovetail.loop_result %x, %4 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Dovetail_Tensor:$init, I64Attr:$loop, I64Attr:$slot);
}

def Dovetail_YieldOp : Dovetail_ControlOp<"yield", [Dovetail_SplitAsFirst]> {
  let summary = "`value`, which the iteration after this one gets in place of `carried`";
  let arguments = (ins Dovetail_Tensor:$carried, Dovetail_Tensor:$value, I64Attr:$loop, I64Attr:$slot);
}

def Dovetail_LoopResultOp : Dovetail_ControlOp<"loop_result", [Dovetail_SplitAsFirst]> {
  let summary = "What there is of a carried value after the last iteration: `last`, or `carried` if there was none";
  let arguments = (ins Dovetail_Tensor:$carried, Dovetail_Tensor:$last, I64Attr:$loop, I64Attr:$slot);
}

def Dovetail_IfOp : Dovetail_ControlOp<"if"> {
  let summary = "`on_true` if `condition`, a boolean of rank 0, holds, and else `on_false`";
  let description = [{
    What only one of them depends on need not be computed if it is the other's turn: `dovetail-form-choices` sees to that
    for all operations of the same number `choice` and condition together. Else it is `dovetail.select`.

    ```mlir
    %0 = dovetail.if %c, %a, %b {choice = 0 : i64}
        : (tensor<i1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Dovetail_BoolTensor:$condition, Dovetail_Tensor:$on_true, Dovetail_Tensor:$on_false,
                       I64Attr:$choice);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_TD
