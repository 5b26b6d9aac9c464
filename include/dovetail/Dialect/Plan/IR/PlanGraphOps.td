//===- PlanGraphOps.td - What has been decided of a graph that is lowered -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANGRAPHOPS_TD
#define DOVETAIL_DIALECT_PLAN_IR_PLANGRAPHOPS_TD

include "dovetail/Dialect/Plan/IR/PlanAttributes.td"
include "dovetail/Dialect/Plan/IR/PlanOpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_GroupOp : Plan_Op<"group", [IsolatedFromAbove, SingleBlock]> {
  let summary = "Operations of a graph that become one step: a kernel, or the call of a library";
  let description = [{
    The body holds operations of the dovetail dialect, with shardings and loop shardings as they had in the graph, and
    the uniform constants that become part of the code. The results of its last operation, the root, are the group's;
    values in between are nowhere in memory. A kernel reads the operands in their order.

    With `library` the first operation is the one that the library performs, and each other one is a step of its epilogue:
    it reads the result of the one before, of its own type. With `in_place` the root writes its result over the
    operand of that number, which nobody reads later.

    ```mlir
    %y = plan.group(%b = %bias, %a = %x, %c = %w) by "onednn"
        : (tensor<8x1x1xf32>, tensor<1x4x10x10xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x10x10xf32> {
      %0 = dovetail.conv %a, %c {...} : (tensor<1x4x10x10xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x10x10xf32>
      %1 = dovetail.add %0, %b : (tensor<1x8x10x10xf32>, tensor<8x1x1xf32>) -> tensor<1x8x10x10xf32>
      plan.yield %1 : tensor<1x8x10x10xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, OptionalAttr<StrAttr>:$library, OptionalAttr<I64Attr>:$in_place);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    /// The last operation.
    ::mlir::Operation *getRoot() { return getBlock()->getTerminator()->getPrevNode(); }
    /// The operation that the library performs: the first one that is no constant.
    ::mlir::Operation *getCall();
    /// The operands through which the operations of the epilogue read the result of the one before.
    ::llvm::SmallVector<::mlir::OpOperand *> getEpilogue();
  }];
}

def Plan_ConvertFormatOp : Plan_Op<"convert_format", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "A copy of a value of a graph, in the memory format that `plan.formats` says";
  let description = [{
    ```mlir
    %1 = plan.convert_format %0 {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : tensor<1x8x10x10xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Plan_StorageOp : Plan_Op<"storage", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Values of a graph that share memory";
  let description = [{
    Says of a buffer which values lie in it; the sharding of `tensor_type` is what each rank holds of it. A value lies in
    one buffer at most. A constant buffer has the elements of its first value, a `dovetail.constant`; where only reshards
    read that one, no rank need hold more than their results. A persistent buffer has results of the prologue alone, and
    an arena buffer none of them.

    ```mlir
    plan.storage arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {} ]>>
        <[0, 2, 3, 1]> of %0, %1 : tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {} ]>>,
        tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {} ]>>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, Plan_BufferKindAttr:$kind,
                       TypeAttrOf<AnyRankedTensor>:$tensor_type, Plan_FormatAttr:$format);
  let assemblyFormat = "$kind $tensor_type $format `of` $values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANGRAPHOPS_TD
