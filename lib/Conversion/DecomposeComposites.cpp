//===- DecomposeComposites.cpp - Replace composite operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces composite operations by the simpler ones that kernels are made of.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct DecomposeComposites : dovetail::impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front())) {
      auto composite = dyn_cast<PartitionableOpInterface>(op);
      if (!composite)
        continue;
      OpBuilder builder(&op);
      FailureOr<Value> replacement = composite.decompose(builder);
      if (failed(replacement))
        continue;
      op.getResult(0).replaceAllUsesWith(*replacement);
      op.erase();
    }
  }
};

} // namespace
