//===- Windows.cpp - Windows of convolutions and pooling -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements WindowAttributes.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The attribute `name`, of `size` entries of at least `least`; `defaultValue` in each if it is absent.
static llvm::FailureOr<llvm::SmallVector<int64_t>> readNumbers(OnnxNode &node, llvm::StringRef name, size_t size,
                                                               int64_t defaultValue, int64_t least) {
  if (!node.hasAttr(name))
    return llvm::SmallVector<int64_t>(size, defaultValue);
  llvm::SmallVector<int64_t> values = node.getInts(name);
  if (values.size() != size)
    return node.invalid("'" + name + "' has " + llvm::Twine(values.size()) + " entries, but " + llvm::Twine(size) +
                        " are needed");
  for (int64_t value : values)
    if (value < least || value > kMaxWindowNumber)
      return node.invalid("'" + name + "' has the entry " + llvm::Twine(value) + ", which is out of range");
  return values;
}

llvm::FailureOr<WindowAttributes> WindowAttributes::read(OnnxNode &node, mlir::Value input,
                                                         llvm::ArrayRef<int64_t> kernelShape) {
  size_t rank = node.getRank(input) - 2;
  auto kernel = readNumbers(node, "kernel_shape", rank, 1, 1);
  auto strides = readNumbers(node, "strides", rank, 1, 1);
  auto dilations = readNumbers(node, "dilations", rank, 1, 1);
  auto pads = readNumbers(node, "pads", 2 * rank, 0, -kMaxWindowNumber);
  if (failed(kernel) || failed(strides) || failed(dilations) || failed(pads))
    return llvm::failure();
  WindowAttributes window;
  window.kernel = *kernel;
  if (!kernelShape.empty()) {
    if (node.hasAttr("kernel_shape") && kernelShape != llvm::ArrayRef<int64_t>(*kernel))
      return node.invalid("'kernel_shape' is not the shape of the weights");
    window.kernel.assign(kernelShape.begin(), kernelShape.end());
  }
  for (int64_t extent : window.kernel)
    if (extent < 1 || extent > kMaxWindowNumber)
      return node.invalid("the window has the extent " + llvm::Twine(extent) + ", which is out of range");
  window.strides = *strides;
  window.dilations = *dilations;
  window.padsLow.assign(pads->begin(), pads->begin() + rank);
  window.padsHigh.assign(pads->begin() + rank, pads->end());
  return window;
}

llvm::LogicalResult WindowAttributes::applyAutoPad(OnnxNode &node, mlir::Value input) {
  llvm::StringRef mode = node.getString("auto_pad", "NOTSET");
  if (mode.empty() || mode == "NOTSET")
    return llvm::success();
  if (mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return node.invalid("'auto_pad' is '" + mode + "': expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  for (unsigned dim = 0; dim < getRank(); ++dim) {
    int64_t total = 0;
    if (mode != "VALID") {
      int64_t extent = node.getShape(input)[dim + 2];
      int64_t results = llvm::divideCeil(extent, strides[dim]);
      total = std::max<int64_t>((results - 1) * strides[dim] + getReach(dim) - extent, 0);
    }
    padsLow[dim] = mode == "SAME_LOWER" ? total - total / 2 : total / 2;
    padsHigh[dim] = total - padsLow[dim];
  }
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Bounded dimensions
//===----------------------------------------------------------------------===//

/// The spatial dimensions of `input` along which windows end where it does.
static llvm::SmallVector<int64_t> getBoundedDims(OnnxNode &node, const WindowAttributes &window, mlir::Value input) {
  llvm::SmallVector<int64_t> dims;
  bool isSame = node.getString("auto_pad", "NOTSET").starts_with("SAME");
  for (unsigned dim = 0; dim < window.getRank(); ++dim) {
    if (!node.getCount(input, dim + 2))
      continue;
    // Pads that give so many windows for each stride depend on the extent.
    if ((isSame && window.strides[dim] != 1) || node.getInt("ceil_mode", 0) != 0)
      return {};
    dims.push_back(dim + 2);
  }
  return dims;
}

mlir::Value WindowAttributes::fillTails(OnnxNode &node, mlir::Value input, ReduceKind kind) const {
  if (failed(node.inferBounds(input)))
    return {};
  llvm::SmallVector<int64_t> dims = getBoundedDims(node, *this, input);
  return dims.empty() ? input : node.fillTails(input, dims, kind);
}

mlir::Value WindowAttributes::boundResult(OnnxNode &node, mlir::Value input, mlir::Value result) const {
  llvm::SmallVector<int64_t> dims = getBoundedDims(node, *this, input);
  if (dims.empty() || failed(node.inferBounds(result)))
    return result;
  Counts counts(node.getCounts(result));
  counts.resize(node.getRank(result));
  for (int64_t dim : dims) {
    int64_t stride = strides[dim - 2], pads = padsLow[dim - 2] + padsHigh[dim - 2];
    counts[dim] = node.deriveCount(node.getCount(input, dim), pads - getReach(dim - 2) + stride, stride);
  }
  return node.bound(result, std::move(counts));
}
