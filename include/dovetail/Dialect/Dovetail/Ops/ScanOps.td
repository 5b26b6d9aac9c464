//===- ScanOps.td - Running sums -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_SCANOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_SCANOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_ScanOp : Dovetail_InferredOp<"scan", [],
    ["emitBody", "emitInit", "emitCombine", "decompose"]> {
  let summary = "Running sum, product, maximum or minimum along a dimension (ONNX CumSum, CumProd)";
  let description = [{
    Each element is what the elements of `operand` up to it come to, or with `exclusive` those before it; with
    `reverse` those from it on, or after it. At each of `restarts`, ascending positions inside of the dimension, the
    scan begins anew, from element `p` of `start` in part `p`, if there is one. Its elements are accumulators: f32 for
    narrower floats.

    A scan that is split gives way to one that begins anew at the cuts: each rank reduces its parts
    (`dovetail.reduce_parts`), all know the results, a value for each part, and scan these for where theirs start.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Optional<Dovetail_NumberTensor>:$start,
                       Dovetail_ReduceKindAttr:$kind, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$restarts);
}

def Dovetail_ReducePartsOp : Dovetail_InferredOp<"reduce_parts", [],
    ["emitBody", "emitInit", "emitCombine"]> {
  let summary = "Sum, product, maximum or minimum of each part of a dimension";
  let description = [{
    `restarts`, ascending positions inside of dimension `axis`, are where one part ends and the next begins. The result has
    an element for each part; floats narrower than f32 give f32.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Dovetail_ReduceKindAttr:$kind, I64Attr:$axis,
                       DenseI64ArrayAttr:$restarts);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_SCANOPS_TD
