//===- Requests.h - What users ask of a module -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares attachRequests, which writes the mesh and the shardings that a user asked for into a module.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_REQUESTS_H
#define DOVETAIL_DRIVER_REQUESTS_H

#include "dovetail/Driver/Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// The module's function `@main`.
mlir::func::FuncOp getMain(mlir::ModuleOp module);
/// Names of the inputs and outputs of `@main`.
std::vector<std::string> getInputNames(mlir::func::FuncOp main);
std::vector<std::string> getOutputNames(mlir::func::FuncOp main);
/// `'image', 'mask'`, as in messages; shortened if there are many.
std::string listNames(llvm::ArrayRef<std::string> names);

/// Adds the mesh to `module`, and the requested shardings to the inputs, outputs and other tensors that they name, as
/// `dovetail.shard`. Requests that do not fit are usage errors.
llvm::LogicalResult attachRequests(mlir::ModuleOp module, const CompileOptions &options, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_REQUESTS_H
