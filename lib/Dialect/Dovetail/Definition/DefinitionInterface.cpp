//===- DefinitionInterface.cpp - How operations are defined ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Holds the generated definitions of DefinitionOpInterface and of the enumerations.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.cpp.inc"
#include "dovetail/Dialect/Dovetail/Definition/Enums.cpp.inc"
