//===- ProductInterface.td - Sums of products -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what reductions state whose terms are products of elements of two operands.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_TD

include "mlir/IR/OpBase.td"

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::dovetail";
  let description = [{
    A reduction (`ReductionOpInterface`) of two operands, each term of which is a sum of products: of one element of
    each operand, in the accumulator's type, at every iteration of the *taps*, which are loops inside of a term.
    Accumulators start from zero, and add terms.
  }];
  let methods = [
    InterfaceMethod<"The extents of the taps; none if a term is one product.",
      "::llvm::SmallVector<int64_t>", "getTaps", (ins)>,
    InterfaceMethod<[{
        For how many neighbouring iterations of loop `loop` of the result, counted from its first one, the operand has
        the same factors: the extent of the loop if they do not depend on it.
      }], "int64_t", "countSharing", (ins "unsigned":$operand, "unsigned":$loop)>,
    InterfaceMethod<[{
        The operand's factor at the coordinates `index` of all loops: those of the relation, then the taps.
      }], "::dovetail::Factor", "getFactor",
      (ins "::dovetail::ElementBuilder &":$builder, "unsigned":$operand, "::llvm::ArrayRef<::mlir::Value>":$index)>
  ];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_TD
