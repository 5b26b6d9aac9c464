//===- TensorName.h - Names of a model's tensors and nodes in the IR -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how locations carry the names of tensors. The operation that computes a tensor of the model is at
// `fused<"tensor">["node"("model.onnx":0:0)]`. The other operations of its node are at `"node"("model.onnx":0:0)`.
//
// If the model says where the user wrote the node, its location is `"node"("body.0.conv"("net.py":8:0))`. Without the
// place it is `"node"("body.0.conv"("model.onnx":0:0))`, without the name `"node"("net.py":8:0)`. Lines of places are
// not 0. The file is `-` if it is not known.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_TENSORNAME_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_TENSORNAME_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace dovetail {

/// The location of the operation that computes the tensor `name`.
inline mlir::Location withTensorName(mlir::Location loc, mlir::StringAttr name) {
  return mlir::FusedLoc::get({loc}, name, loc.getContext());
}

/// The name of the tensor that the operation at `loc` computes; empty if it has none.
inline llvm::StringRef getTensorName(mlir::Location loc) {
  if (auto fused = llvm::dyn_cast<mlir::FusedLocWith<mlir::StringAttr>>(loc))
    return fused.getMetadata().getValue();
  return {};
}

/// The name of the node of the model for which there is an operation at `loc`; empty if it has none. Users may call the
/// node otherwise: messages have its title, `getNodeTitle`.
inline llvm::StringRef getNodeName(mlir::Location loc) {
  auto named = loc->findInstanceOf<mlir::NameLoc>();
  return named ? named.getName().getValue() : llvm::StringRef();
}

/// The source name of the node, which the user gave it: `body.0.conv (net.py:8)`. Empty if the model does not say it.
/// At most `text::maxSourceName` bytes of clean text.
std::string getSourceName(mlir::Location loc);
/// The name of the node in messages: its source name, or else its name.
std::string getNodeTitle(mlir::Location loc);
/// The locations of the nodes that are at `loc`, which is one of several if steps were merged.
llvm::SmallVector<mlir::NameLoc> getNodes(mlir::Location loc);

/// `loc` without the name of a tensor, for another operation of the node.
inline mlir::Location withoutTensorName(mlir::Location loc) {
  if (auto fused = llvm::dyn_cast<mlir::FusedLocWith<mlir::StringAttr>>(loc))
    return fused.getLocations().front();
  return loc;
}

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_TENSORNAME_H
