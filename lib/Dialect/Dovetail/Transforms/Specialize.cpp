//===- Specialize.cpp - Generics that have a name -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a named operation of each dovetail.generic that defines the same.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_SPECIALIZE
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct Specialize : dovetail::impl::SpecializeBase<Specialize> {
  void runOnOperation() override {
    SmallVector<GenericOp> generics;
    getOperation()->walk([&](GenericOp generic) { generics.push_back(generic); });
    for (GenericOp generic : generics) {
      OpBuilder builder(generic);
      if (Operation *op = specialize(builder, generic)) {
        generic->replaceAllUsesWith(op);
        generic.erase();
      }
    }
  }
};
} // namespace
