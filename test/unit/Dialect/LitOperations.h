//===- LitOperations.h - The operations of the lit tests --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares forEachOperation, which goes through all operations of the lit tests that are defined.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H
#define DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"

namespace dovetail {

/// Calls `look` with each operation of files below test/ that parse. They are gone behind it.
void forEachOperation(llvm::function_ref<void(DefinitionOpInterface)> look);

} // namespace dovetail

#endif // DOVETAIL_TEST_UNIT_DIALECT_LITOPERATIONS_H
