//===- Enums.h - Enumerations of the dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the enumerations generated from TableGen.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_H

#include "mlir/IR/BuiltinAttributes.h"

#include "dovetail/Dialect/Dovetail/Definition/Enums.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ENUMS_H
