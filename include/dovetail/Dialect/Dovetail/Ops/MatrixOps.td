//===- MatrixOps.td - Operations on square matrices -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_MATRIXOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_MATRIXOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

def Dovetail_EliminateOp : Dovetail_InferredOp<"eliminate", [], ["emitLine"]> {
  let summary = "Square matrices in a triangular form that has the same determinant";
  let description = [{
    The last two dimensions are those of the matrices. Gaussian elimination with the largest pivot of each column; a row
    that changes places is negated, so that the product of the diagonal is the determinant. What is below the diagonal of
    the result is of no use. A row program: matrices stay whole.
  }];
  let arguments = (ins Dovetail_FloatTensor:$operand);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_MATRIXOPS_TD
