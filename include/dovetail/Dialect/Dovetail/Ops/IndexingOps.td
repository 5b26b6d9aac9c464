//===- IndexingOps.td - Operations that move elements by position -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_GatherNDOp : Dovetail_InferredOp<"gather_nd", [], []> {
  let summary = "Slices of `operand` at the tuples of `indices` (ONNX GatherND)";
  let description = [{
    The first `batch_dims` dimensions of both operands are the same. The last dimension of `indices`, of extent q, holds an
    index of the q dimensions of `operand` behind those; the result has the other dimensions of `indices`, then those of
    `operand` that are left. Negative indices count from the end.

    An index beyond either end reads the element at that end, and is reported where the operation is to check its
    indices. Indices that are a constant list of tuples give their dimensions exact relations; otherwise each dimension is
    looked up: ranks may each read what they have of it.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Dovetail_Tensor:$indices, I64Attr:$batch_dims);
}

def Dovetail_TensorScatterOp : Dovetail_InferredOp<"tensor_scatter", [], ["emitCombine"]> {
  let summary = "`data` with slices of `updates` where `indices` say (ONNX TensorScatter)";
  let description = [{
    Slice s along `axis`, not 0, of `updates` goes, in batch b, the first dimension, to position `indices[b, s]` of the
    axis; otherwise `updates` has the shape of `data`. Slices of one place are written in order. Indices are treated as
    those of `scatter_elements`.
  }];
  let arguments = (ins Dovetail_Tensor:$data, Dovetail_Tensor:$indices, Dovetail_Tensor:$updates, I64Attr:$axis);
}

def Dovetail_Col2ImOp : Dovetail_InferredOp<"col2im", [], ["emitBody"]> {
  let summary = "Sums of blocks where they overlap (ONNX Col2Im)";
  let description = [{
    The operand is [N, C, block..., grid...]: blocks, and where they lie. Element t of the block at place i of the grid is
    added to element i * stride - pad + t * dilation of an image of extents `sizes`, in each of its dimensions, if there
    is one. The grid has as many places as windows fit into the padded image.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high);
}

def Dovetail_ResampleOp : Dovetail_InferredOp<"resample", [], ["emitBody"]> {
  let summary = "Weighted sums of neighbours along a dimension";
  let description = [{
    Element i along `axis` is the sum of `weights[i, t]` times element `starts[i] + t` of the operand, over all t. Starts
    that are constant give the axis an exact relation. Windows that would begin outside of the operand, or leave it, are
    moved inside.
  }];
  let arguments = (ins Dovetail_FloatTensor:$operand, Dovetail_FloatTensor:$weights, Dovetail_IntegerTensor:$starts,
                       I64Attr:$axis);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_TD
