//===- Dialect.cpp - The plan dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

#include "dovetail/Dialect/Plan/IR/PlanDialect.cpp.inc"
#include "dovetail/Dialect/Plan/IR/PlanEnums.cpp.inc"
#include "dovetail/Dialect/Plan/IR/PlanInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dovetail/Dialect/Plan/IR/PlanAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dovetail/Dialect/Plan/IR/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dovetail/Dialect/Plan/IR/PlanOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dovetail/Dialect/Plan/IR/PlanControlOps.cpp.inc"
      >();
}
