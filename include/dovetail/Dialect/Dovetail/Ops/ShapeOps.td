//===- ShapeOps.td - Operations that move elements -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_SHAPEOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_SHAPEOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_ReshapeOp : Dovetail_ComputeOp<"reshape", [], ["getFormatPreference"]> {
  let summary = "The same elements in row-major order with other extents";
  let description = [{
    A split dimension stays split where it is the major one of the dimensions that merge or split with it.
  }];
  let arguments = (ins Dovetail_Tensor:$operand);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dovetail_TransposeOp : Dovetail_InferredOp<"transpose", [], []> {
  let summary = "Permutation of dimensions: result dimension i is operand dimension permutation[i]";
  let arguments = (ins Dovetail_Tensor:$operand, DenseI64ArrayAttr:$permutation);
}

def Dovetail_BroadcastOp : Dovetail_ComputeOp<"broadcast", [], []> {
  let summary = "Repeats dimensions of extent 1, aligned at the right as in NumPy";
  let arguments = (ins Dovetail_Tensor:$operand);
  let hasVerifier = 1;
}

def Dovetail_ConcatOp : Dovetail_InferredOp<"concat"> {
  let summary = "Concatenation along a dimension";
  let arguments = (ins Variadic<Dovetail_Tensor>:$inputs, I64Attr:$axis);
}

def Dovetail_SliceOp : Dovetail_InferredOp<"slice", [], []> {
  let summary = "Elements starts + i * steps for i in [0, sizes), in each dimension; steps may be negative";
  let arguments = (ins Dovetail_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$steps);
}

def Dovetail_PadOp : Dovetail_InferredOp<"pad"> {
  let summary = "Extends (or, with negative pads, crops) each dimension";
  let description = [{
    `value` has rank 0 and is zero when absent; only the constant mode reads it. Negative pads crop first: the other
    modes continue what is left, as often as it takes.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Optional<Dovetail_Tensor>:$value,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, Dovetail_PadModeAttr:$mode);
}

def Dovetail_GatherOp : Dovetail_InferredOp<"gather", [], []> {
  let summary = "Slices of `operand` along `axis` at `indices` (negative ones count from the end)";
  let description = [{
    An index beyond either end reads the element at that end, and is reported where the operation is to check its
    indices. Indices that are a constant vector give the axis an exact relation; otherwise it is looked up: ranks may
    each read what they have of it.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Dovetail_NumberTensor:$indices, I64Attr:$axis);
}

def Dovetail_GatherElementsOp : Dovetail_InferredOp<"gather_elements", Dovetail_Onnx<"GatherElements">.traits, []> {
  let summary = "Elements of `operand` at the result's place, on `axis` where `indices` says (ONNX GatherElements)";
  let description = [{
    As in `gather`, with indices of the result's shape.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Dovetail_NumberTensor:$indices,
                       DefaultValuedAttr<SI64Attr, "0">:$axis);
}

def Dovetail_ResizeOp : Dovetail_InferredOp<"resize", [], ["emitBody", "getFormatPreference", "isCheapElement"]> {
  let summary = "Interpolation to other extents (ONNX Resize)";
  let description = [{
    `sizes` are the result's extents and `scales` the factors that coordinates use. `roi` (starts, then ends, in units
    of the operand's extents) is used by tf_crop_and_resize only. As in ONNX Runtime, coordinates are computed in f32
    (the symmetric mode in f64), and a dimension of scale 1 is copied, as are all if the shape does not change, whatever
    the mode and the roi.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, DenseI64ArrayAttr:$sizes, DenseF64ArrayAttr:$scales,
                       Dovetail_ResizeModeAttr:$mode, Dovetail_CoordinateModeAttr:$coordinates,
                       Dovetail_NearestModeAttr:$nearest, DenseF64ArrayAttr:$roi,
                       F32Attr:$cubic_coeff_a, UnitAttr:$exclude_outside, F32Attr:$extrapolation_value);
}

def Dovetail_RangeOp : Dovetail_ComputeOp<"range"> {
  let summary = "start + i * step, a vector";
  let arguments = (ins TypedAttrInterface:$start, TypedAttrInterface:$step);
  let assemblyFormat = "$start `step` $step attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_SHAPEOPS_TD
