//===- Accesses.cpp - Where library calls read ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what accesses of library calls may say.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/Window.h"

using namespace mlir;
using namespace dovetail;

LogicalResult plan::verifyAccess(function_ref<InFlightDiagnostic()> emitError, AccessAttr access) {
  for (const layout::AccessDim &dim : access.getDims().get()) {
    if (dim.border != layout::Border::None)
      return emitError() << "an access by a library call has a border, " << layout::str(dim);
    if (dim.index.hasUnknown())
      return emitError() << "an access by a library call depends on data, " << layout::str(dim);
  }
  return success();
}

bool plan::isCallAccess(AccessAttr access) {
  return llvm::all_of(access.getDims().get(), [](const layout::AccessDim &dim) {
    return dim.border == layout::Border::None && !dim.index.hasUnknown();
  });
}
