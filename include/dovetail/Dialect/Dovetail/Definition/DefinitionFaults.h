//===- DefinitionFaults.h - Definitions that make no sense ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the check of definitions: which fields go together, and whether they fit operands and results.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONFAULTS_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONFAULTS_H

#include "dovetail/Dialect/Dovetail/Definition/Definition.h"

#include <string>

namespace dovetail {

/// Why `definition`, of `op`, makes no sense: `has a tap, loop 3, in front of a reduction`. Empty if it does. Builds
/// with assertions check all operations.
std::string findFault(mlir::Operation *op, const Definition &definition);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONFAULTS_H
