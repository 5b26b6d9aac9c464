//===- PlanControlOps.td - Steps that are repeated or chosen -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where loops and choices begin and end, in a graph that is lowered and in the steps of a program. Both are lists, in
// which what is repeated or chosen stands between two operations.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANCONTROLOPS_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANCONTROLOPS_TD

include "dovetail/Dialect/Plan/IR/PlanInterfaces.td"
include "dovetail/Dialect/Plan/IR/PlanOpBase.td"
include "dovetail/Dialect/Plan/IR/PlanTypes.td"

//===----------------------------------------------------------------------===//
// In a graph
//===----------------------------------------------------------------------===//

def Plan_BeginLoopOp : Plan_Op<"begin_loop"> {
  let summary = "What follows, up to the end of the loop, is repeated as long as `condition` holds";
  let arguments = (ins 0DTensorOf<[I1]>:$condition);
  let assemblyFormat = "$condition attr-dict `:` type($condition)";
}

def Plan_EndLoopOp : Plan_Op<"end_loop", [SameVariadicOperandSize]> {
  let summary = "The end of what the last `plan.begin_loop` that has none begins";
  let description = [{
    All of `next` is there; then each of `carried` becomes that of the same number.

    ```mlir
    plan.end_loop %0, %1 becomes %2, %3 : tensor<i1>, tensor<8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$carried, Variadic<AnyRankedTensor>:$next);
  let assemblyFormat = "$carried `becomes` $next attr-dict `:` type($carried) `becomes` type($next)";
  let hasVerifier = 1;
}

def Plan_BeginChoiceOp : Plan_Op<"begin_choice"> {
  let summary = "What follows, up to `plan.end_choice`, is needed only if `condition` holds or, with `negated`, does not";
  let description = [{
    It is done or not; what reads its results then takes none of their elements.
  }];
  let arguments = (ins 0DTensorOf<[I1]>:$condition, UnitAttr:$negated);
  let assemblyFormat = "(`not` $negated^)? $condition attr-dict `:` type($condition)";
}

def Plan_EndChoiceOp : Plan_Op<"end_choice"> {
  let summary = "The end of what the last `plan.begin_choice` that has none begins";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// In a program
//===----------------------------------------------------------------------===//

class Plan_ControlStepOp<string mnemonic>
    : Plan_Op<mnemonic, [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<StepOpInterface>]>;

def Plan_RepeatOp : Plan_ControlStepOp<"repeat"> {
  let summary = "Repeats the steps up to its `plan.end` as long as `condition` holds";
  let description = [{
    It is read before each iteration, the first one too, on rank 0, which tells the others. Repeats may be nested. No
    exchange is under way where one begins or ends an iteration.

    ```mlir
    plan.repeat %on : !plan.ref<tensor<i1>>
    plan.launch @step(%x) -> (%y) loops [8] : (!plan.ref<tensor<8xf32>>) -> (!plan.ref<tensor<8xf32>>)
    plan.end
    ```
  }];
  let arguments = (ins Plan_RefType:$condition, OptionalAttr<StrAttr>:$step_name);
  let assemblyFormat = "$condition attr-dict `:` type($condition)";
  let hasVerifier = 1;
}

def Plan_IfOp : Plan_ControlStepOp<"if"> {
  let summary = "Runs the steps up to its `plan.end` only if `condition` holds or, with `negated`, does not";
  let description = [{
    As `plan.repeat`, of one iteration or none.

    ```mlir
    plan.if not %on : !plan.ref<tensor<i1>>
    ```
  }];
  let arguments = (ins Plan_RefType:$condition, UnitAttr:$negated, OptionalAttr<StrAttr>:$step_name);
  let assemblyFormat = "(`not` $negated^)? $condition attr-dict `:` type($condition)";
  let hasVerifier = 1;
}

def Plan_EndOp : Plan_ControlStepOp<"end"> {
  let summary = "The end of the last `plan.repeat` or `plan.if` that has none";
  let arguments = (ins OptionalAttr<StrAttr>:$step_name);
  let assemblyFormat = "attr-dict";
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANCONTROLOPS_TD
