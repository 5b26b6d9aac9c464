//===- WindowAttributes.cpp - Attributes of windows -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how the attributes of operators with windows are read.
//
//===----------------------------------------------------------------------===//

#include "WindowAttributes.h"

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

llvm::FailureOr<Windows> dovetail::importer::readWindows(OnnxNode &node, mlir::Value input,
                                                         llvm::ArrayRef<int64_t> kernelShape) {
  size_t rank = node.getRank(input) - 2;
  auto kernel = readNumbers(node, "kernel_shape", rank, 1, 1);
  auto strides = readNumbers(node, "strides", rank, 1, 1);
  auto dilations = readNumbers(node, "dilations", rank, 1, 1);
  auto pads = readNumbers(node, "pads", 2 * rank, 0, -kMaxWindowNumber);
  if (failed(kernel) || failed(strides) || failed(dilations) || failed(pads))
    return llvm::failure();
  Windows window;
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
  window.isCeil = node.getInt("ceil_mode", 0) != 0;
  llvm::StringRef mode = node.getString("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    window.autoPad = mode == "SAME_LOWER" ? Windows::AutoPad::SameLower : Windows::AutoPad::SameUpper;
  return window;
}

llvm::LogicalResult dovetail::importer::applyAutoPad(OnnxNode &node, Windows &windows, mlir::Value input) {
  llvm::StringRef mode = node.getString("auto_pad", "NOTSET");
  if (mode.empty() || mode == "NOTSET")
    return llvm::success();
  if (windows.isSame()) {
    windows.setAutoPads(input);
    return llvm::success();
  }
  if (mode != "VALID")
    return node.invalid("'auto_pad' is '" + mode + "': expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  windows.padsLow.assign(windows.getRank(), 0);
  windows.padsHigh.assign(windows.getRank(), 0);
  return llvm::success();
}
