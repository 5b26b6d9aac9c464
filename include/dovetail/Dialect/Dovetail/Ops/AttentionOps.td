//===- AttentionOps.td - Attention -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_ATTENTIONOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_ATTENTIONOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_AttentionOp : Dovetail_TensorOp<"attention", [InferTypeOpAdaptorWithIsCompatible,
    DeclareOpInterfaceMethods<CallFormOpInterface>, Dovetail_Defined<["emitLine", "getFormatPreference", "decompose",
                                                      "dividesTerms"]>]> {
  let summary = "Values weighed by the softmax of products of queries and keys, whose scores are never stored";
  let description = [{
    `query` [batch..., M, D], `key` [batch..., N, D], `value` [batch..., N, E]; the result is [batch..., M, E]. Batches
    of keys and values are those of queries, or 1. With s[m, n] = `scale` * sum over d of query[m, d] * key[n, d]:

      result[m, e] = sum over n of softmax over n of s'[m, n] * value[n, e]

    where s' is s without a `mask`; s + mask where its elements are floats; and where they are i1, s where the mask is
    true and `fill` elsewhere. The mask broadcasts to [batch..., M, N]. A row program: columns and depth stay whole. Where
    keys are split it is decomposed, into attention with `restarts` and what combines parts.

    With `restarts`, positions that divide the keys into parts, the result is what each part p gives, [parts, batch...,
    M, E + 2] in the type that sums have: behind the columns of sum over n in p of exp(s'[m, n] - most[p, m]) *
    value[n, e] come most[p, m], the largest s'[m, n] of the part, or the lowest number if that is less, and the sum of
    exp(s'[m, n] - most[p, m]).

    With `heads` [H, K, D, E] that is done for each of H heads, which follow each other in the columns of the result:
    [batch..., M, H * E]. Keys and values have K heads, a divisor of H, each for as many heads of queries as the next one.
    `offsets` says of queries, keys and values where the heads are: at -1 they are a dimension, as in [batch..., K, N, D];
    else they follow each other in the columns as those of the result do, from this one on: [batch..., N, ...], so that
    all three may be parts of one tensor. The mask broadcasts to [batch..., H, M, N]. Heads may be split.

    ```mlir
    dovetail.attention %q, %k, %v mask %m {scale = 0.125 : f32}
        : (tensor<8x512x64xf32>, tensor<8x512x64xf32>, tensor<8x512x64xf32>, tensor<512x512xf32>) -> tensor<8x512x64xf32>
    dovetail.attention %q, %kv, %kv {scale = 0.125 : f32, heads = array<i64: 8, 8, 64, 64>, offsets = array<i64: 0, 0, 512>}
        : (tensor<1x512x512xf32>, tensor<1x512x1024xf32>, tensor<1x512x1024xf32>) -> tensor<1x512x512xf32>
    ```
  }];
  let arguments = (ins Dovetail_FloatTensor:$query, Dovetail_FloatTensor:$key, Dovetail_FloatTensor:$value,
                       Optional<Dovetail_Tensor>:$mask, F32Attr:$scale,
                       DefaultValuedAttr<F32Attr, "-std::numeric_limits<float>::infinity()">:$fill,
                       OptionalAttr<DenseI64ArrayAttr>:$heads, OptionalAttr<DenseI64ArrayAttr>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$restarts);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = inferDeclaration;
  let extraClassDefinition = inferDefinition;
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_ATTENTIONOPS_TD
