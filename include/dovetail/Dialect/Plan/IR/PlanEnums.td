//===- PlanEnums.td - Enumerations of the plan dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANENUMS_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANENUMS_TD

include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dovetail::plan";
  let genSpecializedAttr = 0;
}

def Plan_BufferKind : Plan_Enum<"BufferKind", "How long a buffer lives and who fills it", [
  I32EnumAttrCase<"Arena", 0, "arena">, I32EnumAttrCase<"Persistent", 1, "persistent">,
  I32EnumAttrCase<"Constant", 2, "constant">
]>;

def Plan_ExchangeKind : Plan_Enum<"ExchangeKind", "How ranks carry out an exchange", [
  I32EnumAttrCase<"Messages", 0, "messages">, I32EnumAttrCase<"AllReduce", 1, "all_reduce">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"AllGather", 3, "all_gather">,
  I32EnumAttrCase<"PackedGather", 4, "packed_gather">
]>;

/// In the order of the schema's MathMode.
def Plan_MathMode : Plan_Enum<"MathMode", "What library calls may do with the factors of products of f32", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"TF32", 1, "tf32">, I32EnumAttrCase<"BF16", 2, "bf16">,
  I32EnumAttrCase<"F32Strict", 3, "f32-strict">
]>;

def Plan_ProgramMemory : Plan_Enum<"ProgramMemory", "Where a program has its memory", [
  I32EnumAttrCase<"Host", 0, "host">, I32EnumAttrCase<"Device", 1, "device">
]>;

def Plan_ConvolutionAlgorithm : Plan_Enum<"ConvolutionAlgorithm", "How a convolution is computed", [
  I32EnumAttrCase<"Library", 0, "library">, I32EnumAttrCase<"Winograd", 1, "winograd">,
  I32EnumAttrCase<"Gathered", 2, "gathered">
]>;

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANENUMS_TD
