//===- ResampleOp.cpp - Weighted sums of neighbours ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.resample`, and the windows that make it a resize with antialias.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/ResampleWindows.h"

#include "../Definition/ReductionSupport.h"
#include "IndexSupport.h"
#include "ResizeCoordinates.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Operation
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ResampleOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand()), weights = tensorType(adaptor.getWeights()),
                   starts = tensorType(adaptor.getStarts());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which ", type,
                             " does not have");
  if (weights.getRank() != 2 || starts.getRank() != 1 || weights.getDimSize(0) != starts.getDimSize(0) ||
      weights.getElementType() != type.getElementType() || starts.getElementType().isInteger(1))
    return emitOptionalError(location, "'", getOperationName(), "' op has weights ", weights, " and starts ", starts,
                             " that do not fit ", type);
  if (weights.getDimSize(1) < 1 || weights.getDimSize(1) > type.getDimSize(axis))
    return emitOptionalError(location, "'", getOperationName(), "' op has windows of ", weights.getDimSize(1),
                             " elements in dimension ", axis, " of ", type);
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = starts.getDimSize(0);
  return RankedTensorType::get(shape, type.getElementType());
}

Definition ResampleOp::getDefinition() {
  RankedTensorType type = tensorType(getOperand());
  unsigned axis = getAxis();
  int64_t width = tensorType(getWeights()).getDimSize(1), lastStart = type.getDimSize(axis) - width;
  Definition definition = Definition::over(getType());
  definition.isFold = true;
  IndexExpr tap = definition.addLoop(width, LoopKind::Tap), position = IndexExpr::unknown(0);
  if (auto starts = getPositions(getStarts(), lastStart + 1); starts && !starts->empty()) {
    std::vector<int64_t> last(*starts);
    for (int64_t &position : last)
      position += width - 1;
    position = IndexExpr::unknown(0, Definition::at(axis), *starts, last);
  }
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(dim == axis ? position : Definition::at(dim));
  definition.addRead(1) = {Definition::at(axis), tap};
  definition.addRead(2) = {Definition::at(axis)};
  return definition;
}

SmallVector<Value> ResampleOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  int64_t width = tensorType(getWeights()).getDimSize(1);
  Value start = builder.create<arith::IndexCastOp>(builder.getBuilder().getIndexType(), body.read(2));
  start = builder.clampI(start, 0, tensorType(getOperand()).getDimSize(getAxis()) - width);
  Value position = builder.addI(start, body.getLoop(getType().getRank()));
  Type type = getAccumulatorType(getType().getElementType());
  return {builder.mul(widen(builder, body.read(0, position), type), widen(builder, body.read(1), type))};
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// The kernel of interpolation at distance `x`: a tent, or Keys' cubic one.
static double getKernel(const ResampledDim &dim, double x) {
  x = std::abs(x);
  if (dim.mode == ResizeMode::Linear)
    return std::max(0.0, 1 - x);
  double a = dim.cubicCoeffA;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

ResampleWindows dovetail::computeResampleWindows(const ResampledDim &dim) {
  resize::HostArithmetic host;
  resize::Dim coordinates{dim.operandExtent, dim.resultExtent, dim.scale, dim.coordinates, dim.roiStart, dim.roiEnd};
  double stretch = std::max(1.0 / dim.scale, 1.0), support = (dim.mode == ResizeMode::Cubic ? 2 : 1) * stretch;
  bool extrapolates = dim.coordinates == CoordinateMode::TfCropAndResize;
  int64_t end = dim.operandExtent;
  ResampleWindows windows;
  SmallVector<SmallVector<double>> weights(dim.resultExtent);
  for (int64_t i = 0; i < dim.resultExtent; ++i) {
    float x = resize::getSource(host, coordinates, i);
    if (extrapolates)
      windows.isOutside.push_back(resize::isOutside(host, coordinates, x));
    int64_t start = 0;
    if (!extrapolates || !windows.isOutside.back()) {
      auto first = static_cast<int64_t>(std::ceil(x - support)), last = static_cast<int64_t>(std::floor(x + support));
      start = std::clamp<int64_t>(first, 0, end - 1);
      weights[i].resize(std::clamp<int64_t>(last, 0, end - 1) + 1 - start);
      double total = 0;
      for (int64_t position = first; position <= last; ++position) {
        if (dim.excludeOutside && (position < 0 || position >= end))
          continue;
        double weight = getKernel(dim, (position - x) / stretch);
        weights[i][std::clamp<int64_t>(position, 0, end - 1) - start] += weight;
        total += weight;
      }
      for (double &weight : weights[i])
        weight /= total == 0 ? 1 : total;
    }
    windows.starts.push_back(start);
    windows.width = std::max<int64_t>(windows.width, weights[i].size());
  }
  // All windows are of one width, and inside of the operand.
  for (auto [start, own] : llvm::zip_equal(windows.starts, weights)) {
    int64_t moved = std::min(start, end - windows.width);
    size_t before = windows.weights.size();
    windows.weights.resize(before + windows.width, 0);
    llvm::copy(own, windows.weights.begin() + before + (start - moved));
    start = moved;
  }
  return windows;
}
