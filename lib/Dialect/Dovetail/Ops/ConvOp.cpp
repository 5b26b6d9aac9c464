//===- ConvOp.cpp - Convolution -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.conv`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "WindowSupport.h"

#include "dovetail/Calls/CallForm.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

static Windows windowsOf(ConvOp op) {
  return getWindows(op.getWeights().getType().getShape().drop_front(2), op.getStrides(), op.getDilations(),
                    op.getPadsLow(), op.getPadsHigh());
}

FailureOr<RankedTensorType> ConvOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto weights = cast<RankedTensorType>(adaptor.getWeights().getType());
  if (failed(verifySpatial(location, name, "input", input)))
    return failure();
  Type elementType = getProductType(input.getElementType(), weights.getElementType());
  if (weights.getRank() != input.getRank() || !elementType)
    return emitOptionalError(location, "'", name, "' op has weights ", weights, " that do not fit its input ", input);
  int64_t groups = adaptor.getGroups();
  if (failed(verifyGroups(location, name, groups, input.getDimSize(1), "input channels")) ||
      failed(verifyGroups(location, name, groups, weights.getDimSize(0), "output channels")))
    return failure();
  if (weights.getDimSize(1) * groups != input.getDimSize(1))
    return emitOptionalError(location, "'", name, "' op has weights for ", groups, " groups of ", weights.getDimSize(1),
                             " input channels, but the input has ", input.getDimSize(1));
  auto windows =
      inferWindows(location, name, input.getRank() - 2, weights.getShape().drop_front(2), adaptor.getStrides(),
                   adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();

  SmallVector<int64_t> shape{input.getDimSize(0), weights.getDimSize(0)};
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    int64_t extent = input.getDimSize(dim + 2) + window.pad + window.padHigh;
    if (extent < window.reach())
      return emitOptionalError(location, "'", name, "' op has a window that spans ", window.reach(),
                               " positions of spatial dimension ", dim, ", which has ", extent, " with its pads");
    shape.push_back((extent - window.reach()) / window.stride + 1);
  }
  return RankedTensorType::get(shape, elementType);
}

Definition ConvOp::getDefinition() {
  RankedTensorType input = getInput().getType(), weights = getWeights().getType(), result = getType();
  int64_t groups = getGroups();
  Windows windows = windowsOf(*this);
  Definition definition = Definition::over(result);
  definition.isFold = definition.isProduct = true;
  IndexExpr channel = definition.addLoop(weights.getDimSize(1), groups == 1 ? LoopKind::Reduction : LoopKind::Whole);
  SmallVector<IndexExpr> taps = addTaps(definition, windows);

  SmallVector<AccessDim> &inputDims = definition.addRead(0);
  inputDims = {Definition::at(0), calls::channelOfGroup(groups, Definition::at(1), result.getDimSize(1) / groups,
                                                        channel, input.getDimSize(1) / groups)};
  for (auto [dim, window] : llvm::enumerate(windows))
    inputDims.push_back(window.at(Definition::at(dim + 2), taps[dim]));
  SmallVector<AccessDim> &weightDims = definition.addRead(1);
  weightDims = {Definition::at(1), channel};
  weightDims.append(taps.begin(), taps.end());
  return definition;
}

FormatPreference ConvOp::getFormatPreference() { return FormatPreference::ChannelsLast; }
