//===- MeshPass.h - Passes over a module with a mesh ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines MeshPass, the base of passes that need the mesh of a module.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_MESHPASS_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_MESHPASS_H

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

namespace dovetail {

/// A pass over modules, which does nothing where there is no mesh, and fails where there are several. `Base` is what
/// TableGen makes of a pass.
template <typename Base> struct MeshPass : Base {
  using Base::Base;

  void runOnOperation() final {
    mlir::FailureOr<MeshOp> found = getModuleMesh(this->getOperation());
    if (succeeded(found) && *found) {
      mesh = found->getMesh();
      meshName = mlir::FlatSymbolRefAttr::get(*found);
    }
    if (failed(found) || (*found && failed(run(*found))))
      this->signalPassFailure();
  }

  /// Fails after an error.
  virtual llvm::LogicalResult run(MeshOp op) = 0;

  layout::Mesh mesh;
  mlir::FlatSymbolRefAttr meshName;
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_MESHPASS_H
