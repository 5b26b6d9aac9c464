//===- Resize.cpp - Resized tensors ---------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements resizes of constant extents, with antialias and without.
//
//===----------------------------------------------------------------------===//

#include "Resize.h"

#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/ResampleWindows.h"

#include <cmath>
#include <limits>

using namespace dovetail;
using namespace dovetail::importer;

mlir::Value Resize::build(GraphBuilder &builder, mlir::Value input) const {
  if (GraphBuilder::getShape(input) == llvm::ArrayRef<int64_t>(sizes) &&
      coordinates != CoordinateMode::TfCropAndResize && llvm::all_of(scales, [](double scale) { return scale == 1; }))
    return input;
  return builder.create<ResizeOp>(input, sizes, scales, mode, coordinates, nearest, roi, llvm::APFloat(cubicCoeffA),
                                  excludeOutside, llvm::APFloat(extrapolationValue));
}

int64_t Resize::scaleExtent(int64_t extent, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(extent) * static_cast<float>(scale)));
}

llvm::LogicalResult Resize::setScales(GraphBuilder &builder, mlir::Value input, llvm::ArrayRef<double> values) {
  llvm::ArrayRef<int64_t> shape = GraphBuilder::getShape(input);
  if (values.size() != shape.size())
    return builder.invalid("'scales' must have one entry for each resized dimension");
  scales.assign(values.begin(), values.end());
  sizes.clear();
  for (auto [extent, scale] : llvm::zip(shape, scales)) {
    // Also false for NaN.
    if (!(scale > 0 && static_cast<double>(extent) * scale <= std::numeric_limits<int32_t>::max()))
      return builder.invalid("'scales' has an entry that is out of range");
    sizes.push_back(scaleExtent(extent, scale));
  }
  return llvm::success();
}

/// Dimension number `dim` of `value` resized with antialias; sets `isOutside`, which broadcasts to the result, to where
/// elements have another value.
static mlir::Value resample(GraphBuilder &builder, const Resize &resize, mlir::Value value, unsigned dim,
                            mlir::Value &isOutside) {
  int64_t rank = GraphBuilder::getRank(value);
  ResampledDim description{GraphBuilder::getShape(value)[dim],
                           resize.sizes[dim],
                           static_cast<float>(resize.scales[dim]),
                           resize.mode,
                           resize.coordinates,
                           resize.cubicCoeffA,
                           resize.excludeOutside};
  if (!resize.roi.empty()) {
    description.roiStart = static_cast<float>(resize.roi[dim]);
    description.roiEnd = static_cast<float>(resize.roi[rank + dim]);
  }
  ResampleWindows windows = computeResampleWindows(description);
  if (llvm::is_contained(windows.isOutside, true)) {
    llvm::SmallVector<int64_t> shape(rank, 1);
    shape[dim] = resize.sizes[dim];
    auto type = mlir::RankedTensorType::get(shape, builder.getBuilder().getI1Type());
    mlir::Value own = builder.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(windows.isOutside)));
    isOutside = isOutside ? builder.create<OrOp>(isOutside, own) : own;
  }
  auto type =
      mlir::RankedTensorType::get({resize.sizes[dim], windows.width}, GraphBuilder::getType(value).getElementType());
  return builder.create<ResampleOp>(value, builder.constantFloats(type, windows.weights),
                                    builder.constantInts(windows.starts), dim);
}

/// All is computed in floats: only the end is rounded to the element type. Integers are rounded to
/// nearest, and saturate.
mlir::Value dovetail::importer::buildAntialiased(GraphBuilder &builder, const Resize &resize, mlir::Value input) {
  llvm::ArrayRef<int64_t> shape = GraphBuilder::getShape(input);
  mlir::Type elementType = GraphBuilder::getType(input).getElementType();
  if (elementType.isInteger(1))
    return (void)builder.invalid("booleans cannot be interpolated"), mlir::Value();
  constexpr int64_t maxExtent = int64_t(1) << 24;
  for (auto [extent, size] : llvm::zip_equal(shape, resize.sizes))
    if (extent != size && std::max(extent, size) > maxExtent)
      return (void)builder.unsupported("antialias is supported up to " + llvm::Twine(maxExtent) +
                                       " elements of a dimension"),
             mlir::Value();
  bool isFloat = llvm::isa<mlir::FloatType>(elementType);
  mlir::Value value = isFloat ? builder.widen(input) : builder.cast(input, builder.getBuilder().getF64Type()),
              isOutside;
  // Dimensions that shrink most come first, as the others then have less to do.
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, shape.size()));
  llvm::sort(dims,
             [&](unsigned a, unsigned b) { return std::pair(resize.scales[a], a) < std::pair(resize.scales[b], b); });
  for (unsigned dim : dims)
    if (value && shape[dim] > 0 && resize.sizes[dim] > 0 &&
        (resize.scales[dim] != 1 || resize.sizes[dim] != shape[dim]))
      value = resample(builder, resize, value, dim, isOutside);
  if (value && !isFloat) {
    unsigned width = elementType.getIntOrFloatBitWidth();
    bool isUnsigned = elementType.isUnsignedInteger();
    auto bound = [&](llvm::APInt number) {
      llvm::APFloat real(llvm::APFloat::IEEEdouble());
      // Below what does not fit: the largest numbers of 64 bits are not doubles.
      real.convertFromAPInt(number, !isUnsigned, llvm::APFloat::rmTowardZero);
      return builder.scalarLike(value, real.convertToDouble());
    };
    llvm::APInt least = isUnsigned ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width);
    llvm::APInt most = isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
    value = builder.create<MinOp>(builder.create<MaxOp>(builder.create<RoundOp>(value), bound(least)), bound(most));
  }
  value = builder.cast(value, elementType);
  // Empty results have no elements to replace.
  if (value && isOutside && GraphBuilder::getType(value).getNumElements() > 0)
    value = builder.create<SelectOp>(isOutside, builder.scalarLike(value, resize.extrapolationValue), value);
  return value;
}
