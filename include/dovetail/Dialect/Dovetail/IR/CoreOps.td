//===- CoreOps.td - Meshes, constants and changes of sharding -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_COREOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_COREOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_MeshOp : Op<Dovetail_Dialect, "mesh", [Symbol]> {
  let summary = "A mesh of devices: named axes with sizes; rank = row-major index of the coordinates";
  let description = [{
    ```mlir
    dovetail.mesh @mesh = ["y" = 4, "x" = 2]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::dovetail::layout::Mesh getMesh();
  }];
}

def Dovetail_ConstantOp : Op<Dovetail_Dialect, "constant", [Pure, ConstantLike,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "A constant tensor; weights are resources that are mapped, not copied";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Dovetail_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Dovetail_ReshardOp : Op<Dovetail_Dialect, "reshard", [Pure]> {
  let summary = "The same value with another sharding: the only source of communication";
  let description = [{
    Partial axes of the operand that the result does not have are reduced.
  }];
  let arguments = (ins Dovetail_Tensor:$operand);
  let results = (outs Dovetail_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether it combines what ranks contribute.
    bool isReduction();
  }];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_COREOPS_TD
