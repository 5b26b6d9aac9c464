//===- DefinitionInterface.h - How operations are defined -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares DefinitionOpInterface.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_H

#include "dovetail/Dialect/Dovetail/Definition/CallForms.h"
#include "dovetail/Dialect/Dovetail/Definition/LineBuilder.h"
#include "dovetail/Dialect/Dovetail/Definition/OpRelation.h"
#include "mlir/IR/OpDefinition.h"

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITIONINTERFACE_H
