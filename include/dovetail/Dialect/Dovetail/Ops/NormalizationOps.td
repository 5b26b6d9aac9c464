//===- NormalizationOps.td - Softmax and normalisations -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

/// What `dovetail-expand-norms` replaces by simpler operations: it states its result's type only.
class Dovetail_NormOp<string mnemonic, list<Trait> traits = [AttrSizedOperandSegments]>
    : Dovetail_TensorOp<mnemonic, traits # [InferTypeOpAdaptorWithIsCompatible]> {
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = inferDefinition;
}

def Dovetail_SoftmaxOp : Dovetail_NormOp<"softmax", []> {
  let summary = "Softmax, or its logarithm, over one dimension";
  let description = [{
    exp(x - max(x)) / sum(exp(x - max(x))) along `axis`; with `log`, its logarithm without the detour.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, I64Attr:$axis, UnitAttr:$log);
}

def Dovetail_LayerNormOp : Dovetail_NormOp<"layer_norm"> {
  let summary = "Normalisation over the last dimensions, from `axis` on";
  let description = [{
    (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias broadcast to the operand.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Optional<Dovetail_NumberTensor>:$scale,
                       Optional<Dovetail_NumberTensor>:$bias, I64Attr:$axis, F32Attr:$epsilon);
}

def Dovetail_GroupNormOp : Dovetail_NormOp<"group_norm"> {
  let summary = "Normalisation over the spatial dimensions and the channels of a group";
  let description = [{
    Over [N, C, spatial...]; scale and bias have shape [C]. Instance normalisation has as many groups as channels.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, Optional<Dovetail_NumberTensor>:$scale,
                       Optional<Dovetail_NumberTensor>:$bias, I64Attr:$groups, F32Attr:$epsilon);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_NORMALIZATIONOPS_TD
