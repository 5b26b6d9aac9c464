//===- SimplifyShapes.cpp - Cancel operations that only move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cancels, merges and moves operations that only move elements.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_SIMPLIFYSHAPES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct SimplifyShapes : dovetail::impl::SimplifyShapesBase<SimplifyShapes> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMergeShapes(patterns);
    populateRecognizeMovement(patterns);
    populateSinkTransposes(patterns);
    populateSinkReshapes(patterns);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
