//===- SampleSupport.h - What operations that sample images share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how samples of images are taken at positions that are known at run time only.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_SAMPLESUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_SAMPLESUPPORT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail::sample {

/// A neighbour of a position along one dimension, which there is in the image, and its weight (null: 1). Where
/// `isInside` does not hold (null: it does) its element is not read, and counts as zero.
struct Tap {
  mlir::Value coordinate, isInside, weight;
};

/// The neighbours along the dimension of which this is the sampled loop.
struct Taps {
  unsigned loop;
  llvm::SmallVector<Tap, 4> taps;
};

/// The type in which positions in `image` are computed that tensors of `given` elements say: f64 if either type is, or
/// where f32 cannot tell neighbours apart.
mlir::FloatType getPositionType(mlir::RankedTensorType image, mlir::Type given);

/// Adds a lookup of which the body computes the iterations, of which there may be several, from the position at read
/// number `index`; what ranks make of those that they have combines by `kind`.
layout::IndexExpr addSampled(Definition &definition, int64_t extent, unsigned index, ReduceKind kind);
/// This rank has all iterations of loop `loop`, and that is known now.
bool hasAll(BodyBuilder &body, unsigned loop);
/// i1: this rank has the iteration at which the lookup `loop` is now.
mlir::Value hasCurrent(BodyBuilder &body, unsigned loop);

/// `x` in [lo, hi]; what is not a number is `lo`.
mlir::Value limit(ElementBuilder &builder, mlir::Value x, double lo, double hi);
/// A float that is a whole number of an extent of at most `extent` as an index.
mlir::Value toIndex(ElementBuilder &builder, mlir::Value x, int64_t extent);
/// An index as a float of `type`.
mlir::Value toFloat(ElementBuilder &builder, mlir::Value index, mlir::Type type);

/// The neighbours of the position `x` along the dimension of `loop`, which is sampled: the nearest one, two with linear
/// weights, or four with cubic ones; `padding` says what stands for those outside. `x` itself may be anywhere.
/// `isMirroredAtCentres`: mirrors are at the first and last elements' centres, not at their outer edges.
Taps getTaps(BodyBuilder &body, unsigned loop, mlir::Value x, ResizeMode mode, PadMode padding,
             bool isMirroredAtCentres = false);

/// The sum of the elements at read number `read` at all combinations of neighbours, times their weights, of `type`: of
/// those that this rank has.
mlir::Value emitSum(BodyBuilder &body, unsigned read, llvm::ArrayRef<Taps> dims, mlir::Type type);

/// The element at read number `read`, extended to `type`, where `condition` holds and this rank has the coordinates
/// that its sampled loops now have; else `otherwise`.
mlir::Value readOwn(BodyBuilder &body, unsigned read, llvm::ArrayRef<unsigned> loops, mlir::Value condition,
                    mlir::Type type, mlir::Value otherwise);

/// Fails, after an error, if `image` is not [N, C, spatial...], or has a dimension without elements that `result`,
/// which is not empty, would sample.
llvm::LogicalResult verifyImage(std::optional<mlir::Location> location, llvm::StringRef opName,
                                mlir::RankedTensorType image, llvm::ArrayRef<int64_t> result);

} // namespace dovetail::sample

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_SAMPLESUPPORT_H
