//===- PlanDialect.td - The plan dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANDIALECT_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANDIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::dovetail::plan";
  let summary = "What every rank executes: buffers, kernels, library calls and exchanges in a fixed order";
  let description = [{
    The dialect mirrors the plan of an artifact (`runtime/schema/plan.fbs`). A `plan.program` says what memory each rank
    has, which logical values lie in it, and which steps run; `plan.kernel`s are the fused subgraphs that code is
    generated from. Shapes are global, and shardings say which box of a buffer or value each rank holds.

    While a graph is lowered, what has been decided stands in it, for the next pass to read and to change: groups
    (`plan.group`), copies into other formats (`plan.convert_format`), shared memory (`plan.storage`), and attributes:
    `plan.formats`, the memory formats of an operation's results; `plan.format`, that of a function's argument;
    `plan.prologue` on what runs once, when a session starts; and `plan.view` on a reshard that needs no step, as its
    result is a part of its operand, in the same memory.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = ["::dovetail::DovetailDialect"];
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANDIALECT_TD
