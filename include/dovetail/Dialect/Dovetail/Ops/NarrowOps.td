//===- NarrowOps.td - Conversions of elements that are only stored -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_WidenOp : Dovetail_ElementwiseOp<"widen"> {
  let summary = "Elements that are only stored as numbers to compute with: floats as f32, integers as i8 or ui8";
  let description = [{
    Floats of at most 8 bits, and integers of 2 and 4 bits, are numbers of these types exactly.
  }];
  let arguments = (ins Dovetail_NarrowTensor:$operand);
  let resultElementType = "::dovetail::getWideType(::mlir::getElementTypeOrSelf(adaptor.getOperand().getType()))";
}

def Dovetail_NarrowOp : Dovetail_ElementwiseOp<"narrow"> {
  let summary = "Numbers as elements that are only stored (ONNX Cast to them)";
  let description = [{
    f32 or f64 as floats of at most 8 bits, rounded once, to nearest even. Where that exceeds the largest number, the
    result is this number or, without `saturate`, infinity or else NaN. `f4E2M1FN` always saturates and has no NaN: it
    becomes zero, with the other sign. `f8E8M0FNU` has powers of 2 and NaN: signs are dropped, `round_mode` rounds
    "up", "down", or to "nearest", ties up, and what is below the smallest number, zero included, is this number or,
    without `saturate`, NaN.

    i8 or ui8 as integers of 2 or 4 bits: the low bits.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Dovetail_ElementTypeAttr:$to,
                       DefaultValuedAttr<BoolAttr, "true">:$saturate,
                       DefaultValuedAttr<StrAttr, "\"up\"">:$round_mode);
  let resultElementType = "adaptor.getTo()";
  let hasVerifier = 1;
}

def Dovetail_UnpackOp : Dovetail_ComputeOp<"unpack"> {
  let summary = "Elements of 4 or 2 bits of which bytes hold several that follow each other along a dimension";
  let description = [{
    The first one has the low bits. Where an extent is no multiple of how many a byte has, some bits of the last bytes
    are not used. Constants are stored so: `dovetail-pack-constants`.
  }];
  let arguments = (ins StaticShapeTensorOf<[UI8]>:$operand, I64Attr:$dim);
  let hasVerifier = 1;
  let extraClassDeclaration = typeDeclaration # [{
    static int64_t getElementsPerByte(::mlir::Type narrow);
  }];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_TD
