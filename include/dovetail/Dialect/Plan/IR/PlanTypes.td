//===- PlanTypes.td - Types of the plan dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANTYPES_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANTYPES_TD

include "dovetail/Dialect/Plan/IR/PlanDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"

class Plan_Type<string name, string typeMnemonic, list<Trait> traits = []> : TypeDef<Plan_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Plan_BufferType : Plan_Type<"Buffer", "buffer"> {
  let summary = "Memory of each rank";
}

def Plan_EventType : Plan_Type<"Event", "event"> {
  let summary = "What a step begins, and others may wait for";
  let builderCall = "$_builder.getType<EventType>()";
}

def Plan_RefType : Plan_Type<"Ref", "ref", [OpAsmTypeInterface]> {
  let summary = "A logical value that lies in a buffer";
  let description = [{
    The tensor's sharding says which box of the value each rank holds; without one, every rank holds all of it.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$tensor), [{
    return $_get(tensor.getContext(), tensor);
  }]>];
  let genMnemonicAlias = 1;
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANTYPES_TD
