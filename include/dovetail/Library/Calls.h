//===- Calls.h - Library calls of the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which call of the plan an operation is, whichever library does it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIBRARY_CALLS_H
#define DOVETAIL_LIBRARY_CALLS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail {

/// What a call of the plan consists of, whatever it computes.
struct CallParts {
  /// Those of the operation that the library reads, of type `!plan.ref` as all values here.
  llvm::SmallVector<mlir::Value> operands;
  mlir::Value result;
  llvm::SmallVector<mlir::Value> postTensors;
  mlir::ArrayAttr postOps;
  /// Of the operation's definition; where that reads all of a dimension, somehow, it is read at a loop of its own.
  mlir::ArrayAttr loops, reads;
  mlir::StringAttr name; ///< Of the step; may be null.
};

/// Creates the call for `op`. Fails with an error at `op` if there is no call that does what it does.
llvm::LogicalResult createCall(mlir::OpBuilder &builder, mlir::Operation *op, const CallParts &parts);

} // namespace dovetail

#endif // DOVETAIL_LIBRARY_CALLS_H
