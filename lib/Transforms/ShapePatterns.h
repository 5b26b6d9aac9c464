//===- ShapePatterns.h - Patterns on operations that move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the groups of patterns of `dovetail-simplify-shapes`, and what reshapes make of parts of tensors.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H
#define DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H

#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace dovetail {

/// Drops what changes nothing and merges what follows one another.
void populateMergeShapes(mlir::RewritePatternSet &patterns);
/// Turns concatenations of slices around their source, and gathers of evenly spaced elements, into what they mean.
void populateRecognizeMovement(mlir::RewritePatternSet &patterns);
/// Moves transposes behind operations that do not mind.
void populateSinkTransposes(mlir::RewritePatternSet &patterns);
/// Moves reshapes behind the elementwise operations that follow a product.
void populateSinkReshapes(mlir::RewritePatternSet &patterns);

/// The shape in which a part of a tensor is aligned to a tensor that was reshaped from `from` to `to`. The part has
/// extents of `to` or 1. None if it varies along some, but not all, of the dimensions that merge or split together.
std::optional<llvm::SmallVector<int64_t>> pullBack(llvm::ArrayRef<int64_t> part, llvm::ArrayRef<int64_t> from,
                                                   llvm::ArrayRef<int64_t> to);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_SHAPEPATTERNS_H
