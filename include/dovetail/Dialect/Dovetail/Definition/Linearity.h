//===- Linearity.h - Operands that results are linear in --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares deriveLinearity, which finds in the code of an operation whether its results are linear in an operand.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEARITY_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEARITY_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"

namespace dovetail {

/// Whether the results of `op` are linear in `operands` together, with the others fixed, as emitted code shows. The
/// code of an element may add their elements, and multiply or divide them by values that do not depend on them.
/// Rounding does not count, unless it is to another type: parts of a sum would be rounded, or extended after they
/// wrapped around. Floats of 16 bits may be extended. False for operations that compute lines themselves, and wherever
/// the code does not show it.
bool deriveLinearity(DefinitionOpInterface op, const Definition &definition, llvm::ArrayRef<unsigned> operands);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_LINEARITY_H
