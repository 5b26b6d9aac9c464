//===- DovetailDialect.td - The dovetail dialect -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILDIALECT_TD
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILDIALECT_TD

include "mlir/IR/OpBase.td"

def Dovetail_Dialect : Dialect {
  let name = "dovetail";
  let cppNamespace = "::dovetail";
  let summary = "A small, normalised set of tensor operations with sharding in the types";
  let description = [{
    Values are ranked tensors with static *global* shapes. How a value is cut over a mesh is the encoding of its
    type, `#dovetail.sharding`; a type without encoding is not yet decided (before `propagate`) or held whole by
    every rank. An operation implements `DefinitionOpInterface`: it defines its loops, where it reads its operands, and
    what it computes. If it has several results, they have one shape.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAILDIALECT_TD
