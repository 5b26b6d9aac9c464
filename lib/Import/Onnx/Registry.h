//===- Registry.h - Which function imports which operator -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines OperatorImport. An operator of the default domain is imported by
//
//   1. the function registered here for its name, or else
//   2. one to one, by the operation of the dialect whose OnnxOpInterface states its name, or else
//   3. through the body that the ONNX schema gives for it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_REGISTRY_H
#define DOVETAIL_LIB_IMPORT_ONNX_REGISTRY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

namespace dovetail::importer {

class OnnxNode;

/// Builds operations for a node that its ONNX schema accepts, and sets its results. On failure, the node has reported
/// why.
using ImportFn = llvm::LogicalResult (*)(OnnxNode &node);

struct ImportEntry {
  ImportFn fn;
  /// Whether operands may be sequences or empty optional values.
  bool takesSequences;
};

/// Registers, as a static variable, a function for an operator of the default domain.
struct OperatorImport {
  OperatorImport(llvm::StringRef opType, ImportFn fn, bool takesSequences = false);
};

/// What is registered for an operator; null if there is nothing.
const ImportEntry *lookupImport(llvm::StringRef opType);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_REGISTRY_H
