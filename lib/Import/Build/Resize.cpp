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

mlir::Value Resize::build(GraphBuilder &node, mlir::Value input) const {
  if (GraphBuilder::getShape(input) == llvm::ArrayRef<int64_t>(sizes) &&
      coordinates != CoordinateMode::TfCropAndResize && llvm::all_of(scales, [](double scale) { return scale == 1; }))
    return input;
  return node.create<ResizeOp>(input, sizes, scales, mode, coordinates, nearest, roi, llvm::APFloat(cubicCoeffA),
                               excludeOutside, llvm::APFloat(extrapolationValue));
}

int64_t Resize::scaleExtent(int64_t extent, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(extent) * static_cast<float>(scale)));
}

llvm::LogicalResult Resize::setScales(GraphBuilder &node, mlir::Value input, llvm::ArrayRef<double> values) {
  llvm::ArrayRef<int64_t> shape = GraphBuilder::getShape(input);
  if (values.size() != shape.size())
    return node.invalid("'scales' must have one entry for each resized dimension");
  scales.assign(values.begin(), values.end());
  sizes.clear();
  for (auto [extent, scale] : llvm::zip(shape, scales)) {
    // Also false for NaN.
    if (!(scale > 0 && static_cast<double>(extent) * scale <= std::numeric_limits<int32_t>::max()))
      return node.invalid("'scales' has an entry that is out of range");
    sizes.push_back(scaleExtent(extent, scale));
  }
  return llvm::success();
}

/// Dimension number `dim` of `value` resized with antialias; sets `isOutside`, which broadcasts to the result, to where
/// elements have another value.
static mlir::Value resample(GraphBuilder &node, const Resize &resize, mlir::Value value, unsigned dim,
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
    auto type = mlir::RankedTensorType::get(shape, node.getBuilder().getI1Type());
    mlir::Value own = node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(windows.isOutside)));
    isOutside = isOutside ? node.create<OrOp>(isOutside, own) : own;
  }
  auto type =
      mlir::RankedTensorType::get({resize.sizes[dim], windows.width}, GraphBuilder::getType(value).getElementType());
  return node.create<ResampleOp>(value, node.constantFloats(type, windows.weights), node.constantInts(windows.starts),
                                 dim);
}

/// All is computed in floats: only the end is rounded to the element type. Integers are rounded to
/// nearest, and saturate.
mlir::Value dovetail::importer::buildAntialiased(GraphBuilder &node, const Resize &resize, mlir::Value input) {
  llvm::ArrayRef<int64_t> shape = GraphBuilder::getShape(input);
  mlir::Type elementType = GraphBuilder::getType(input).getElementType();
  if (elementType.isInteger(1))
    return (void)node.invalid("booleans cannot be interpolated"), mlir::Value();
  constexpr int64_t maxExtent = int64_t(1) << 24;
  for (auto [extent, size] : llvm::zip_equal(shape, resize.sizes))
    if (extent != size && std::max(extent, size) > maxExtent)
      return (void)node.unsupported("antialias is supported up to " + llvm::Twine(maxExtent) +
                                    " elements of a dimension"),
             mlir::Value();
  bool isFloat = llvm::isa<mlir::FloatType>(elementType);
  mlir::Value value = isFloat ? node.widen(input) : node.cast(input, node.getBuilder().getF64Type()), isOutside;
  // Dimensions that shrink most come first, as the others then have less to do.
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, shape.size()));
  llvm::sort(dims,
             [&](unsigned a, unsigned b) { return std::pair(resize.scales[a], a) < std::pair(resize.scales[b], b); });
  for (unsigned dim : dims)
    if (value && shape[dim] > 0 && resize.sizes[dim] > 0 &&
        (resize.scales[dim] != 1 || resize.sizes[dim] != shape[dim]))
      value = resample(node, resize, value, dim, isOutside);
  if (value && !isFloat) {
    unsigned width = elementType.getIntOrFloatBitWidth();
    bool isUnsigned = elementType.isUnsignedInteger();
    auto bound = [&](llvm::APInt number) {
      llvm::APFloat real(llvm::APFloat::IEEEdouble());
      // Below what does not fit: the largest numbers of 64 bits are not doubles.
      real.convertFromAPInt(number, !isUnsigned, llvm::APFloat::rmTowardZero);
      return node.scalarLike(value, real.convertToDouble());
    };
    llvm::APInt least = isUnsigned ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width);
    llvm::APInt most = isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
    value = node.create<MinOp>(node.create<MaxOp>(node.create<RoundOp>(value), bound(least)), bound(most));
  }
  value = node.cast(value, elementType);
  // Empty results have no elements to replace.
  if (value && isOutside && GraphBuilder::getType(value).getNumElements() > 0)
    value = node.create<SelectOp>(isOutside, node.scalarLike(value, resize.extrapolationValue), value);
  return value;
}
