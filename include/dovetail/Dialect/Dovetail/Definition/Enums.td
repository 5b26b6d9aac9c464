//===- Enums.td - Enumerations of the dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_TD
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Dovetail_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dovetail";
  let genSpecializedAttr = 0;
}

def Dovetail_ReduceKind : Dovetail_Enum<"ReduceKind", "How elements are combined", [
  I32EnumAttrCase<"Sum", 1, "sum">, I32EnumAttrCase<"Prod", 2, "prod">,
  I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">,
  I32EnumAttrCase<"Owner", 5, "owner">
]>;

/// For the attributes of the plan dialect. In the order of the schema's PostOpKind.
def Dovetail_PostOpKind : Dovetail_Enum<"PostOpKind", "What a library applies to the result of a call", [
  I32EnumAttrCase<"AddTensor", 0, "add_tensor">, I32EnumAttrCase<"MulTensor", 1, "mul_tensor">,
  I32EnumAttrCase<"Relu", 2, "relu">, I32EnumAttrCase<"LeakyRelu", 3, "leaky_relu">,
  I32EnumAttrCase<"Clip", 4, "clip">, I32EnumAttrCase<"Sigmoid", 5, "sigmoid">,
  I32EnumAttrCase<"Tanh", 6, "tanh">, I32EnumAttrCase<"Gelu", 7, "gelu">,
  I32EnumAttrCase<"GeluTanh", 8, "gelu_tanh">, I32EnumAttrCase<"HardSwish", 9, "hard_swish">,
  I32EnumAttrCase<"Swish", 10, "swish">, I32EnumAttrCase<"Elu", 11, "elu">,
  I32EnumAttrCase<"HardSigmoid", 12, "hard_sigmoid">
]>;

def Dovetail_PoolKind : Dovetail_Enum<"PoolKind", "What a pooling window computes", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"AverageIncludePad", 1, "average_include_pad">,
  I32EnumAttrCase<"AverageExcludePad", 2, "average_exclude_pad">,
  I32EnumAttrCase<"Lp", 3, "lp">
]>;

def Dovetail_PadMode : Dovetail_Enum<"PadMode", "What lies outside of a padded tensor", [
  I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Reflect", 1, "reflect">,
  I32EnumAttrCase<"Edge", 2, "edge">, I32EnumAttrCase<"Wrap", 3, "wrap">
]>;

def Dovetail_ResizeMode : Dovetail_Enum<"ResizeMode", "Interpolation of a resize", [
  I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Linear", 1, "linear">,
  I32EnumAttrCase<"Cubic", 2, "cubic">
]>;

def Dovetail_CoordinateMode : Dovetail_Enum<"CoordinateMode",
    "How a resize maps a coordinate of the result to one of the operand (ONNX Resize)", [
  I32EnumAttrCase<"HalfPixel", 0, "half_pixel">,
  I32EnumAttrCase<"HalfPixelSymmetric", 1, "half_pixel_symmetric">,
  I32EnumAttrCase<"PytorchHalfPixel", 2, "pytorch_half_pixel">,
  I32EnumAttrCase<"AlignCorners", 3, "align_corners">,
  I32EnumAttrCase<"Asymmetric", 4, "asymmetric">,
  I32EnumAttrCase<"TfCropAndResize", 5, "tf_crop_and_resize">,
  I32EnumAttrCase<"TfHalfPixelForNN", 6, "tf_half_pixel_for_nn">
]>;

def Dovetail_NearestMode : Dovetail_Enum<"NearestMode", "Rounding of a nearest resize (ONNX Resize)", [
  I32EnumAttrCase<"RoundPreferFloor", 0, "round_prefer_floor">,
  I32EnumAttrCase<"RoundPreferCeil", 1, "round_prefer_ceil">,
  I32EnumAttrCase<"Floor", 2, "floor">, I32EnumAttrCase<"Ceil", 3, "ceil">
]>;

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_TD
