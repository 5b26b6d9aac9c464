//===- ElementwiseOps.td - Elementwise operations -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_ELEMENTWISEOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_ELEMENTWISEOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

class Dovetail_UnaryOp<string mnemonic, string onnx = "", list<string> methods = [],
                       Type type = Dovetail_NumberTensor, list<Trait> traits = []>
    : Dovetail_ElementwiseOp<mnemonic, traits # !if(!empty(onnx), []<Trait>, Dovetail_Onnx<onnx>.traits),
                             methods> {
  let arguments = (ins type:$operand);
  let summary = "Elementwise " # !if(!empty(onnx), mnemonic, "ONNX " # onnx);
}

class Dovetail_FloatUnaryOp<string mnemonic, string onnx = "", list<Trait> traits = []>
    : Dovetail_UnaryOp<mnemonic, onnx, [], Dovetail_FloatTensor, traits>;

class Dovetail_BinaryOp<string mnemonic, string onnx = "", list<string> methods = [],
                        Type type = Dovetail_NumberTensor, list<Trait> traits = []>
    : Dovetail_ElementwiseOp<mnemonic, [AllElementTypesMatch<["lhs", "rhs"]>] # traits #
        !if(!empty(onnx), []<Trait>, Dovetail_Onnx<onnx>.traits), methods> {
  let arguments = (ins type:$lhs, type:$rhs);
  let summary = "Elementwise " # !if(!empty(onnx), mnemonic, "ONNX " # onnx);
}

/// C++ defines `getPostOp`, in PostOps.cpp.
def Dovetail_PostOp : DeclareOpInterfaceMethods<PostOpInterface>;

/// A comparison or predicate: the result is i1.
class Dovetail_CompareOp<string mnemonic, string onnx> : Dovetail_BinaryOp<mnemonic, onnx> {
  let resultElementType = "::mlir::IntegerType::get(adaptor.getLhs().getContext(), 1)";
}
class Dovetail_PredicateOp<string mnemonic, string onnx> : Dovetail_FloatUnaryOp<mnemonic, onnx> {
  let resultElementType = "::mlir::IntegerType::get(adaptor.getOperand().getContext(), 1)";
}

class Dovetail_FloatAttr<string value> : DefaultValuedAttr<F32Attr, value>;

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

def Dovetail_AbsOp : Dovetail_UnaryOp<"abs", "Abs">;
def Dovetail_NegOp : Dovetail_UnaryOp<"neg", "Neg">;
def Dovetail_SignOp : Dovetail_UnaryOp<"sign", "Sign">;
def Dovetail_FloorOp : Dovetail_FloatUnaryOp<"floor", "Floor">;
def Dovetail_CeilOp : Dovetail_FloatUnaryOp<"ceil", "Ceil">;
def Dovetail_RoundOp : Dovetail_FloatUnaryOp<"round", "Round">;
def Dovetail_SqrtOp : Dovetail_FloatUnaryOp<"sqrt", "Sqrt">;
def Dovetail_RsqrtOp : Dovetail_FloatUnaryOp<"rsqrt">;
def Dovetail_ReciprocalOp : Dovetail_FloatUnaryOp<"reciprocal", "Reciprocal">;
def Dovetail_ExpOp : Dovetail_FloatUnaryOp<"exp", "Exp">;
def Dovetail_LogOp : Dovetail_FloatUnaryOp<"log", "Log">;
def Dovetail_ErfOp : Dovetail_FloatUnaryOp<"erf", "Erf">;
def Dovetail_SinOp : Dovetail_FloatUnaryOp<"sin", "Sin">;
def Dovetail_CosOp : Dovetail_FloatUnaryOp<"cos", "Cos">;
def Dovetail_TanOp : Dovetail_FloatUnaryOp<"tan", "Tan">;
def Dovetail_AsinOp : Dovetail_FloatUnaryOp<"asin", "Asin">;
def Dovetail_AcosOp : Dovetail_FloatUnaryOp<"acos", "Acos">;
def Dovetail_AtanOp : Dovetail_FloatUnaryOp<"atan", "Atan">;
def Dovetail_SinhOp : Dovetail_FloatUnaryOp<"sinh", "Sinh">;
def Dovetail_CoshOp : Dovetail_FloatUnaryOp<"cosh", "Cosh">;
def Dovetail_TanhOp : Dovetail_FloatUnaryOp<"tanh", "Tanh", [Dovetail_PostOp]>;
def Dovetail_AsinhOp : Dovetail_FloatUnaryOp<"asinh", "Asinh">;
def Dovetail_AcoshOp : Dovetail_FloatUnaryOp<"acosh", "Acosh">;
def Dovetail_AtanhOp : Dovetail_FloatUnaryOp<"atanh", "Atanh">;
def Dovetail_SigmoidOp : Dovetail_FloatUnaryOp<"sigmoid", "Sigmoid", [Dovetail_PostOp]>;
def Dovetail_ReluOp : Dovetail_UnaryOp<"relu", "Relu", [], Dovetail_NumberTensor, [Dovetail_PostOp]>;
def Dovetail_SoftplusOp : Dovetail_FloatUnaryOp<"softplus", "Softplus">;
def Dovetail_SoftsignOp : Dovetail_FloatUnaryOp<"softsign", "Softsign">;
def Dovetail_MishOp : Dovetail_FloatUnaryOp<"mish", "Mish">;
def Dovetail_HardSwishOp : Dovetail_FloatUnaryOp<"hard_swish", "HardSwish", [Dovetail_PostOp]>;
def Dovetail_NotOp : Dovetail_UnaryOp<"not", "Not", [], Dovetail_BoolTensor>;
def Dovetail_BitwiseNotOp : Dovetail_UnaryOp<"bitwise_not", "BitwiseNot", [], Dovetail_IntegerTensor>;
def Dovetail_IsNaNOp : Dovetail_PredicateOp<"is_nan", "IsNaN">;

def Dovetail_IsInfOp : Dovetail_PredicateOp<"is_inf", "IsInf"> {
  let arguments = (ins Dovetail_FloatTensor:$operand, DefaultValuedAttr<SI64Attr, "1">:$detect_negative,
                       DefaultValuedAttr<SI64Attr, "1">:$detect_positive);
}
def Dovetail_LeakyReluOp : Dovetail_FloatUnaryOp<"leaky_relu", "LeakyRelu", [Dovetail_PostOp]> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"0.01f">:$alpha);
}
def Dovetail_EluOp : Dovetail_FloatUnaryOp<"elu", "Elu", [Dovetail_PostOp]> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"1.0f">:$alpha);
}
def Dovetail_CeluOp : Dovetail_UnaryOp<"celu", "Celu"> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"1.0f">:$alpha);
}
def Dovetail_SeluOp : Dovetail_UnaryOp<"selu", "Selu"> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"1.67326319217681884765625f">:$alpha,
                       Dovetail_FloatAttr<"1.05070102214813232421875f">:$gamma);
}
def Dovetail_ThresholdedReluOp : Dovetail_UnaryOp<"thresholded_relu", "ThresholdedRelu"> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"1.0f">:$alpha);
}
def Dovetail_HardSigmoidOp : Dovetail_FloatUnaryOp<"hard_sigmoid", "HardSigmoid", [Dovetail_PostOp]> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"0.2f">:$alpha,
                       Dovetail_FloatAttr<"0.5f">:$beta);
}
def Dovetail_ShrinkOp : Dovetail_UnaryOp<"shrink", "Shrink"> {
  let arguments = (ins Dovetail_NumberTensor:$operand, Dovetail_FloatAttr<"0.5f">:$lambd,
                       Dovetail_FloatAttr<"0.0f">:$bias);
}
def Dovetail_SwishOp : Dovetail_FloatUnaryOp<"swish", "Swish", [Dovetail_PostOp]> {
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatAttr<"1.0f">:$alpha);
}
def Dovetail_GeluOp : Dovetail_FloatUnaryOp<"gelu", "Gelu", [Dovetail_PostOp]> {
  let arguments = (ins Dovetail_FloatTensor:$operand, DefaultValuedAttr<StrAttr, "\"none\"">:$approximate);
  let hasVerifier = 1;
}

def Dovetail_CastOp : Dovetail_UnaryOp<"cast"> {
  let summary = "Conversion of elements to another type";
  let description = [{
    As ONNX Cast: floats to integers truncate toward zero, integers to narrower ones keep the low bits, anything to i1
    is `!= 0`. What ONNX leaves open, a float beyond the integer's range or NaN, gives what x86 does: the least i32 (i64
    for wider types and ui32), of which narrower types keep the low bits.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Dovetail_NumberTypeAttr:$to);
  let resultElementType = "adaptor.getTo()";
}

def Dovetail_BitCastOp : Dovetail_UnaryOp<"bit_cast"> {
  let summary = "The bits of elements as those of another type of the same width";
  let description = [{
    An i1 counts as the byte that it is in memory: other bytes than 0 are true.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Dovetail_ElementTypeAttr:$to);
  let resultElementType = "adaptor.getTo()";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

def Dovetail_AddOp : Dovetail_BinaryOp<"add", "Add", [], Dovetail_NumberTensor, [Dovetail_PostOp]>;
def Dovetail_SubOp : Dovetail_BinaryOp<"sub", "Sub">;
def Dovetail_MulOp : Dovetail_BinaryOp<"mul", "Mul", [], Dovetail_NumberTensor, [Dovetail_PostOp]>;
def Dovetail_DivOp : Dovetail_BinaryOp<"div", "Div"> {
  let description = [{
    Integers truncate toward zero; an integer divided by zero gives zero.
  }];
}
def Dovetail_MaxOp : Dovetail_BinaryOp<"max", "", [], Dovetail_NumberTensor, [Dovetail_PostOp]>;
def Dovetail_MinOp : Dovetail_BinaryOp<"min", "", [], Dovetail_NumberTensor, [Dovetail_PostOp]>;
def Dovetail_PReluOp : Dovetail_BinaryOp<"prelu">;
def Dovetail_AndOp : Dovetail_BinaryOp<"and", "And", [], Dovetail_BoolTensor>;
def Dovetail_OrOp : Dovetail_BinaryOp<"or", "Or", [], Dovetail_BoolTensor>;
def Dovetail_XorOp : Dovetail_BinaryOp<"xor", "Xor", [], Dovetail_BoolTensor>;
def Dovetail_BitwiseAndOp : Dovetail_BinaryOp<"bitwise_and", "BitwiseAnd", [],
                                              Dovetail_IntegerTensor>;
def Dovetail_BitwiseOrOp : Dovetail_BinaryOp<"bitwise_or", "BitwiseOr", [],
                                              Dovetail_IntegerTensor>;
def Dovetail_BitwiseXorOp : Dovetail_BinaryOp<"bitwise_xor", "BitwiseXor", [],
                                              Dovetail_IntegerTensor>;
def Dovetail_EqualOp : Dovetail_CompareOp<"equal", "Equal">;
def Dovetail_LessOp : Dovetail_CompareOp<"less", "Less">;
def Dovetail_LessOrEqualOp : Dovetail_CompareOp<"less_or_equal", "LessOrEqual">;
def Dovetail_GreaterOp : Dovetail_CompareOp<"greater", "Greater">;
def Dovetail_GreaterOrEqualOp : Dovetail_CompareOp<"greater_or_equal", "GreaterOrEqual">;

def Dovetail_PowOp : Dovetail_ElementwiseOp<"pow", Dovetail_Onnx<"Pow">.traits> {
  let summary = "Elementwise ONNX Pow; the exponent may have another element type";
  let description = [{
    Integers are raised in f64 and converted as by `cast`.
  }];
  let arguments = (ins Dovetail_NumberTensor:$lhs, Dovetail_NumberTensor:$rhs);
}
def Dovetail_ModOp : Dovetail_BinaryOp<"mod", "Mod"> {
  let description = [{
    The remainder has the sign of the divisor, or with `fmod` that of the dividend. An integer modulo zero gives zero.
  }];
  let arguments = (ins Dovetail_NumberTensor:$lhs, Dovetail_NumberTensor:$rhs, DefaultValuedAttr<SI64Attr, "0">:$fmod);
}
def Dovetail_BitShiftOp : Dovetail_BinaryOp<"bit_shift", "BitShift"> {
  let description = [{
    A logical shift, `direction` LEFT or RIGHT; a shift by the element's width or more gives zero.
  }];
  let arguments = (ins Dovetail_IntegerTensor:$lhs, Dovetail_IntegerTensor:$rhs, StrAttr:$direction);
  let hasVerifier = 1;
}

def Dovetail_SelectOp : Dovetail_ElementwiseOp<"select", Dovetail_Onnx<"Where">.traits> {
  let summary = "Elementwise ONNX Where";
  let arguments = (ins Dovetail_NumberTensor:$condition, Dovetail_Tensor:$on_true, Dovetail_Tensor:$on_false);
  let resultElementType = "::mlir::getElementTypeOrSelf(adaptor.getOnTrue().getType())";
  let hasVerifier = 1;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_ELEMENTWISEOPS_TD
