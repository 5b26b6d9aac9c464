//===- Convolution.cpp - Import of convolutions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions. A bias becomes an addition.
//
//===----------------------------------------------------------------------===//

#include "Convolution.h"

#include "../../Build/Contractions.h"
#include "WindowAttributes.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The windows of a convolution of `input`, which has the shape of operand 0, with `weights`.
static llvm::FailureOr<Windows> readWindow(OnnxNode &node, mlir::Value input, mlir::Value weights) {
  if (failed(node.requireRank(0, 3)))
    return llvm::failure();
  if (node.getRank(input) != node.getRank(weights))
    return node.invalid("operand and weights differ in rank");
  return readWindows(node, input, node.getShape(weights).drop_front(2));
}

static llvm::FailureOr<int64_t> readGroups(OnnxNode &node) {
  int64_t groups = node.getInt("group", 1), channels = node.getShape(node.getInput(0))[1];
  if (channels == 0)
    return node.invalid("the operand has no channels");
  if (groups < 1 || groups > channels)
    return node.invalid("'group' is " + llvm::Twine(groups) + ", which does not divide the channels");
  return groups;
}

static llvm::LogicalResult setResultWithBias(OnnxNode &node, mlir::Value result) {
  mlir::Value bias = node.getInput(2);
  if (!bias || !result)
    return node.setResult(result);
  if (node.getShape(bias) != node.getShape(result).slice(1, 1))
    return node.invalid("the bias does not have one element for each channel of the result");
  return node.setResult(node.create<AddOp>(result, node.perChannel(bias, node.getRank(result))));
}

mlir::Value dovetail::importer::convolve(OnnxNode &node, mlir::Value input, mlir::Value weights) {
  if (!input || !weights)
    return {};
  auto window = readWindow(node, input, weights);
  if (failed(window) || failed(applyAutoPad(node, *window, input)))
    return {};
  auto groups = readGroups(node);
  if (failed(groups))
    return {};
  return convolve(node, input, weights, *window, *groups);
}

static OperatorImport conv("Conv", [](OnnxNode &node) {
  return setResultWithBias(node, convolve(node, node.getInput(0), node.getInput(1)));
});

/// Sets the pads of a transposed convolution whose result has extent `result` along a dimension that would have
/// `unpadded` without pads.
static void padTo(Windows &window, unsigned dim, int64_t unpadded, int64_t result, bool isUpper) {
  int64_t total = unpadded - result;
  // What is missing is added at the end.
  window.padsLow[dim] = total < 0 ? 0 : isUpper ? total / 2 : total - total / 2;
  window.padsHigh[dim] = total - window.padsLow[dim];
}

static OperatorImport convTranspose("ConvTranspose", [](OnnxNode &node) -> llvm::LogicalResult {
  auto window = readWindow(node, node.getInput(0), node.getInput(1));
  if (failed(window))
    return llvm::failure();
  auto groups = readGroups(node);
  if (failed(groups))
    return llvm::failure();
  unsigned rank = window->getRank();
  llvm::SmallVector<int64_t> outputPadding = node.getInts("output_padding");
  if (outputPadding.empty())
    outputPadding.assign(rank, 0);
  llvm::SmallVector<int64_t> outputShape = node.getInts("output_shape");
  if (outputPadding.size() != rank || (!outputShape.empty() && outputShape.size() != rank))
    return node.invalid("'output_padding' and 'output_shape' must have one entry for each spatial dimension");
  for (unsigned dim = 0; dim < rank; ++dim)
    if (outputPadding[dim] < 0 || outputPadding[dim] >= std::max(window->strides[dim], window->dilations[dim]))
      return node.invalid("'output_padding' must be less than the stride or the dilation");
  if (!window->isSame() && failed(applyAutoPad(node, *window, node.getInput(0))))
    return llvm::failure();
  mlir::Value input = node.getInput(0);
  if (failed(node.inferBounds(input)))
    return llvm::failure();
  llvm::SmallVector<int64_t> boundedDims;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (node.getCount(input, dim + 2))
      boundedDims.push_back(dim + 2);
  if (!boundedDims.empty() && !outputShape.empty())
    return node.unsupported(node.describeBounded("operand 0", input, "'output_shape' is the same in all runs").reason,
                            "export the model with 'pads' and 'output_padding'");
  if (window->isSame() || !outputShape.empty()) {
    for (unsigned dim = 0; dim < rank; ++dim) {
      int64_t extent = node.getShape(node.getInput(0))[dim + 2];
      if (extent > kMaxWindowNumber)
        return node.invalid("the operand's extent " + llvm::Twine(extent) + " is out of range");
      int64_t unpadded = window->strides[dim] * (extent - 1) + outputPadding[dim] + window->getReach(dim);
      int64_t result = outputShape.empty() ? extent * window->strides[dim] : outputShape[dim];
      if (result < 0 || result > std::numeric_limits<int32_t>::max())
        return node.invalid("'output_shape' is out of range");
      padTo(*window, dim, unpadded, result, window->autoPad == Windows::AutoPad::SameUpper);
    }
  }
  mlir::Value result = node.create<ConvTransposeOp>(
      boundedDims.empty() ? input : node.fillTails(input, boundedDims, ReduceKind::Sum), node.getInput(1),
      window->strides, window->dilations, window->padsLow, window->padsHigh, outputPadding, *groups);
  if (!boundedDims.empty()) {
    if (failed(node.inferBounds(result)))
      return llvm::failure();
    Counts counts(node.getCounts(result));
    counts.resize(node.getRank(result));
    for (int64_t dim : boundedDims) {
      unsigned number = dim - 2;
      counts[dim] = node.multiplyCount(node.getCount(input, dim), window->strides[number],
                                       outputPadding[number] + window->getReach(number) - window->strides[number] -
                                           window->padsLow[number] - window->padsHigh[number]);
    }
    result = node.bound(result, std::move(counts));
  }
  return setResultWithBias(node, result);
});
