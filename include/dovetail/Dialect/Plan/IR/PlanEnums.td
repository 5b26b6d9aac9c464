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

/// In the order of the schema's MathMode.
def Plan_MathMode : Plan_Enum<"MathMode", "What library calls may do with the factors of products of f32", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"TF32", 1, "tf32">, I32EnumAttrCase<"BF16", 2, "bf16">
]>;

/// In the order of the schema's PostOpKind.
def Plan_PostOpKind : Plan_Enum<"PostOpKind", "What a library call applies to its result", [
  I32EnumAttrCase<"AddTensor", 0, "add_tensor">, I32EnumAttrCase<"MulTensor", 1, "mul_tensor">,
  I32EnumAttrCase<"Relu", 2, "relu">, I32EnumAttrCase<"LeakyRelu", 3, "leaky_relu">,
  I32EnumAttrCase<"Clip", 4, "clip">, I32EnumAttrCase<"Sigmoid", 5, "sigmoid">,
  I32EnumAttrCase<"Tanh", 6, "tanh">, I32EnumAttrCase<"Gelu", 7, "gelu">,
  I32EnumAttrCase<"GeluTanh", 8, "gelu_tanh">, I32EnumAttrCase<"HardSwish", 9, "hard_swish">,
  I32EnumAttrCase<"Swish", 10, "swish">, I32EnumAttrCase<"Elu", 11, "elu">,
  I32EnumAttrCase<"HardSigmoid", 12, "hard_sigmoid">
]>;

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANENUMS_TD
