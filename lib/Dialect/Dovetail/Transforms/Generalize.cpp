//===- Generalize.cpp - Operations that carry their definitions -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a dovetail.generic of each operation that is defined by loops, reads and a body.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_GENERALIZE
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct Generalize : dovetail::impl::GeneralizeBase<Generalize> {
  using GeneralizeBase::GeneralizeBase;

  void runOnOperation() override {
    SmallVector<DefinitionOpInterface> ops;
    getOperation()->walk([&](DefinitionOpInterface op) { ops.push_back(op); });
    for (DefinitionOpInterface op : ops) {
      if (!only.empty() && !llvm::is_contained(only, op->getName().stripDialect()))
        continue;
      OpBuilder builder(op);
      if (GenericOp generic = generalize(builder, op)) {
        op->replaceAllUsesWith(generic);
        op->erase();
      }
    }
  }
};
} // namespace
