//===- ShapePatterns.h - Patterns on operations that move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the groups of patterns of `dovetail-simplify-shapes`.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H
#define DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace dovetail {

/// Drops what changes nothing and merges what follows one another.
void populateMergeShapes(mlir::RewritePatternSet &patterns);
/// Turns concatenations of slices around their source, and gathers of evenly spaced elements, into what they mean.
void populateRecognizeMovement(mlir::RewritePatternSet &patterns);
/// Moves transposes behind operations that do not mind.
void populateSinkTransposes(mlir::RewritePatternSet &patterns);
/// Moves reshapes behind the elementwise operations that follow a product.
void populateSinkReshapes(mlir::RewritePatternSet &patterns);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H
