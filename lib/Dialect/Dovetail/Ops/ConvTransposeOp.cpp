//===- ConvTransposeOp.cpp - Transposed convolution -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.conv_transpose`.
//
//===----------------------------------------------------------------------===//

#include "WindowSupport.h"

#include "dovetail/Calls/CallForm.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

/// The windows of the convolution whose gradient this is.
static Windows windowsOf(ConvTransposeOp op) {
  Windows windows = getWindows(op.getWeights().getType().getShape().drop_front(2), op.getStrides(), op.getDilations(),
                               op.getPadsLow(), op.getPadsHigh());
  for (WindowDim &window : windows)
    window.isTransposed = true;
  return windows;
}

FailureOr<RankedTensorType> ConvTransposeOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  auto weights = cast<RankedTensorType>(adaptor.getWeights().getType());
  if (failed(verifySpatial(location, name, "input", input)))
    return failure();
  if (weights.getRank() != input.getRank() || weights.getElementType() != input.getElementType() ||
      weights.getDimSize(0) != input.getDimSize(1))
    return emitOptionalError(location, "'", name, "' op has weights ", weights, " that do not fit its input ", input);
  int64_t groups = adaptor.getGroups();
  if (failed(verifyGroups(location, name, groups, input.getDimSize(1), "input channels")) ||
      failed(verifyGroups(location, name, groups, weights.getDimSize(1) * groups, "output channels")))
    return failure();
  auto windows =
      inferWindows(location, name, input.getRank() - 2, weights.getShape().drop_front(2), adaptor.getStrides(),
                   adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();
  ArrayRef<int64_t> outputPadding = adaptor.getOutputPadding();
  if (outputPadding.size() != windows->size())
    return emitOptionalError(location, "'", name, "' op has ", outputPadding.size(), " output paddings for ",
                             windows->size(), " spatial dimensions");

  SmallVector<int64_t> shape{input.getDimSize(0), weights.getDimSize(1) * groups};
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    if (outputPadding[dim] < 0)
      return emitOptionalError(location, "'", name, "' op has a negative output padding, ", outputPadding[dim],
                               ", in spatial dimension ", dim);
    // Its product with a stride, which is limited too, must be a number.
    if (input.getDimSize(dim + 2) > (int64_t(1) << 30))
      return emitOptionalError(location, "'", name, "' op has an input ", input, " whose spatial dimension ", dim,
                               " is longer than 2^30");
    int64_t extent = window.stride * (input.getDimSize(dim + 2) - 1) + outputPadding[dim] + window.reach() -
                     window.pad - window.padHigh;
    if (extent < 0)
      return emitOptionalError(location, "'", name, "' op crops spatial dimension ", dim, " to a negative extent, ",
                               extent);
    shape.push_back(extent);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

Definition ConvTransposeOp::getDefinition() {
  RankedTensorType input = getInput().getType(), weights = getWeights().getType(), result = getType();
  int64_t groups = getGroups();
  Windows windows = windowsOf(*this);
  Definition definition = Definition::over(result);
  definition.isFold = definition.isProduct = true;
  IndexExpr channel =
      definition.addLoop(input.getDimSize(1) / groups, groups == 1 ? LoopKind::Reduction : LoopKind::Whole);
  SmallVector<IndexExpr> taps = addTaps(definition, windows);

  int64_t outerPerGroup = weights.getDimSize(1);
  IndexExpr inputChannel =
      calls::channelOfGroup(groups, Definition::at(1), outerPerGroup, channel, input.getDimSize(1) / groups);
  SmallVector<AccessDim> &inputDims = definition.addRead(0);
  inputDims = {Definition::at(0), inputChannel};
  for (auto [dim, window] : llvm::enumerate(windows))
    inputDims.push_back(window.at(Definition::at(dim + 2), taps[dim]));
  SmallVector<AccessDim> &weightDims = definition.addRead(1);
  weightDims = {inputChannel, calls::channelInGroup(groups, Definition::at(1), outerPerGroup)};
  weightDims.append(taps.begin(), taps.end());
  return definition;
}

FormatPreference ConvTransposeOp::getFormatPreference() { return FormatPreference::ChannelsLast; }
