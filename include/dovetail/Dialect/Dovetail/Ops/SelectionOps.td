//===- SelectionOps.td - Choosing and placing elements by data -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_SELECTIONOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_SELECTIONOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

class Dovetail_ScatterOp<string mnemonic> : Dovetail_InferredOp<mnemonic, [],
    ["emitCombine"]>;

def Dovetail_ScatterNDOp : Dovetail_ScatterOp<"scatter_nd"> {
  let summary = "`data` with `updates` where `indices` say (ONNX ScatterND)";
  let description = [{
    The last dimension of `indices`, of extent q, holds an index of the first q dimensions of `data`; the others
    number slices of `updates`, whose last dimensions are those of `data` from q on. Negative indices count from the
    end. `reduction` combines what is there with an update; without it the update replaces it. Updates of one place
    are applied in their row-major order. Each rank writes what it owns of the result. An index beyond either end is
    reported when the program runs, unless its checks are left out; then such an update is not written.
  }];
  let arguments = (ins Dovetail_Tensor:$data, Dovetail_NumberTensor:$indices, Dovetail_Tensor:$updates,
                       OptionalAttr<Dovetail_ReduceKindAttr>:$reduction);
}

def Dovetail_ScatterElementsOp : Dovetail_ScatterOp<"scatter_elements"> {
  let summary = "`data` with `updates` at their place, on `axis` where `indices` says (ONNX ScatterElements)";
  let description = [{
    As `scatter_nd`; `indices` and `updates` have one shape, of the rank of `data` and nowhere but on `axis` larger.
  }];
  let arguments = (ins Dovetail_Tensor:$data, Dovetail_NumberTensor:$indices, Dovetail_Tensor:$updates, I64Attr:$axis,
                       OptionalAttr<Dovetail_ReduceKindAttr>:$reduction);
}

def Dovetail_TopKOp : Op<Dovetail_Dialect, "top_k", [Pure, InferTypeOpAdaptorWithIsCompatible,
    Dovetail_Defined<["emitLine"]>]> {
  let summary = "The `k` largest or smallest elements along a dimension, in order, and their indices (ONNX TopK)";
  let description = [{
    Of equal elements the first comes first. NaN is larger than all numbers. A row program: `axis` stays whole.
  }];
  let arguments = (ins Dovetail_NumberTensor:$operand, I64Attr:$k, I64Attr:$axis, BoolAttr:$largest);
  let results = (outs Dovetail_Tensor:$values, Dovetail_Tensor:$indices);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange l, ::mlir::TypeRange r) {
      return ::dovetail::equalUpToSharding(l, r);
    }
  }];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_SELECTIONOPS_TD
