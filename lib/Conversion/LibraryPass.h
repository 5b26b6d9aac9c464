//===- LibraryPass.h - Passes that know libraries ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what passes over functions that may call libraries share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CONVERSION_LIBRARYPASS_H
#define DOVETAIL_LIB_CONVERSION_LIBRARYPASS_H

#include "dovetail/Library/Library.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {

/// A pass over functions, where they have a body. `Base` is what TableGen makes of a pass with the options `libraries`
/// and `features`.
template <typename Base> struct LibraryPass : Base {
  using Base::Base;

  void runOnOperation() final {
    mlir::func::FuncOp function = this->getOperation();
    if (function.isDeclaration())
      return;
    mlir::FailureOr<Libraries> callable = Libraries::create(function.getLoc(), this->libraries, this->features);
    if (failed(callable) || failed(run(function, *callable)))
      this->signalPassFailure();
  }

  /// Fails after an error.
  virtual llvm::LogicalResult run(mlir::func::FuncOp function, const Libraries &callable) = 0;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CONVERSION_LIBRARYPASS_H
