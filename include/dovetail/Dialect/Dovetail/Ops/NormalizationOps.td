//===- NormalizationOps.td - Composite operations that reduce and keep a dimension -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

class Dovetail_CompositeOp<string mnemonic, list<string> methods = []>
    : Dovetail_InferredOp<mnemonic, [AttrSizedOperandSegments], ["emitBody", "decompose", "isCheapElement"] # methods>;

def Dovetail_SoftmaxOp : Dovetail_InferredOp<"softmax", [], ["emitBody", "decompose", "isCheapElement"]> {
  let summary = "Softmax, or its logarithm, over one dimension";
  let description = [{
    exp(x - max(x)) / sum(exp(x - max(x))) along `axis`; with `log`, its logarithm without the detour. Decomposed where
    `axis` is split, and for kernels: the maximum is combined before any exponential is taken.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, I64Attr:$axis, UnitAttr:$log);
}

def Dovetail_LayerNormOp : Dovetail_CompositeOp<"layer_norm"> {
  let summary = "Normalisation over the last dimensions, from `axis` on";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias broadcast to the operand.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Optional<Dovetail_Tensor>:$scale, Optional<Dovetail_Tensor>:$bias,
                       I64Attr:$axis, F32Attr:$epsilon);
}

def Dovetail_GroupNormOp : Dovetail_CompositeOp<"group_norm", ["getFormatPreference"]> {
  let summary = "Normalisation over the spatial dimensions and the channels of a group";
  let description = [{
    Over [N, C, spatial...]; scale and bias have shape [C]. Instance normalisation has as many groups as channels.
  }];
  let arguments = (ins Dovetail_Tensor:$operand, Optional<Dovetail_Tensor>:$scale, Optional<Dovetail_Tensor>:$bias,
                       I64Attr:$groups, F32Attr:$epsilon);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD
