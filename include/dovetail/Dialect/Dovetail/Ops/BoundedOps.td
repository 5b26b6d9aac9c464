//===- BoundedOps.td - What makes dimensions whose extents depend on data -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_CompactOp : Dovetail_InferredOp<"compact", [], ["emitLine"]> {
  let summary = "The positions along the last dimension where `mask` holds, ascending, and then zeros";
  let description = [{
    How many of them there are is the sum of the mask. A row program: the last dimension stays whole.
  }];
  let arguments = (ins Dovetail_BoolTensor:$mask);
}

def Dovetail_ClearTailOp : Dovetail_InferredOp<"clear_tail"> {
  let summary = "`operand`, with zeros at the coordinates of dimension `axis` from `count` on";
  let description = [{
    What lies beyond the count of a bounded dimension is anything: so it is nothing that is looked up or combined.
    `count` is a scalar of i64.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Dovetail_IntegerTensor:$count, I64Attr:$axis);
}

def Dovetail_SortRowsOp : Dovetail_InferredOp<"sort_rows", [], ["emitLine"]> {
  let summary = "The numbers of the rows of a matrix in ascending order";
  let description = [{
    Rows are compared element by element, of which the first that differs decides; of equal rows the first comes first.
    NaN is larger than all numbers, and equal to itself. A row program.
  }];
  let arguments = (ins Dovetail_Tensor:$operand);
}

def Dovetail_SelectBoxesOp : Dovetail_InferredOp<"select_boxes", [], ["emitLine"]> {
  let summary = "For each batch and class the boxes that no better one overlaps too much (ONNX NonMaxSuppression)";
  let description = [{
    `scores` [batches, classes, boxes] have up to 32 bits; `boxes` [batches, boxes, 4] are two opposite corners
    (y, x, y, x) or, with `center`, (x, y, width, height). Boxes are taken from the best score on, of equal ones the
    first first, and what is no number before all others: those with a score above `threshold`, where it is given, that
    overlap none taken before by more than `overlap` (intersection over union), until there are `limit`. The result
    [batches, classes, boxes] has their numbers, and then -1. A row program. `limit`, of i64, `overlap` and `threshold`
    are scalars.
  }];
  let arguments = (ins Dovetail_FloatTensor:$boxes, Dovetail_FloatTensor:$scores, Dovetail_IntegerTensor:$limit,
                       Dovetail_FloatTensor:$overlap, Optional<Dovetail_FloatTensor>:$threshold, UnitAttr:$center);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_TD
