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

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
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

/// The spatial dimensions of `input` that are bounded.
static llvm::SmallVector<int64_t> getBoundedDims(OnnxNode &node, const WindowAttributes &window, mlir::Value input) {
  llvm::SmallVector<int64_t> dims;
  for (unsigned dim = 0; dim < window.getRank(); ++dim)
    if (node.getCount(input, dim + 2))
      dims.push_back(dim + 2);
  return dims;
}

bool WindowAttributes::varies(OnnxNode &node, mlir::Value input, bool countsElements) const {
  bool isSame = node.getString("auto_pad", "NOTSET").starts_with("SAME");
  for (unsigned dim = 0; dim < getRank(); ++dim)
    if (node.getCount(input, dim + 2) && ((isSame && strides[dim] != 1) || node.getInt("ceil_mode", 0) != 0 ||
                                          (countsElements && (padsLow[dim] != 0 || padsHigh[dim] != 0))))
      return true;
  return false;
}

namespace {

/// One spatial dimension of windows, in scalars of i64.
class WindowDim {
public:
  WindowDim(OnnxNode &node, const WindowAttributes &window, mlir::Value input, unsigned dim)
      : node(node), window(window), dim(dim), extent(node.getExtent(input, dim + 2)),
        mode(node.getString("auto_pad", "NOTSET")), isCeil(node.getInt("ceil_mode", 0) != 0) {
    findResult();
    findPads();
  }

  Extent getResult() const { return result; }
  /// The first element of the input, in what is arranged.
  mlir::Value getLow() const { return low; }
  /// The number of pads at the begin, where that is one in all runs.
  std::optional<int64_t> getFixedLow() const { return fixedLow; }
  /// The extent of what is arranged.
  int64_t getArranged() const {
    return result.number == 0 ? 0 : (result.number - 1) * window.strides[dim] + window.getReach(dim);
  }
  /// For each window the number of its elements that are of the input or, if `countsPads`, pads.
  mlir::Value countElements(bool countsPads);

  mlir::Value number(int64_t value) { return node.toScalar({value}); }
  mlir::Value getExtent() { return node.toScalar(extent); }

private:
  void findResult();
  void findPads();
  Extent divide(int64_t added) {
    int64_t stride = window.strides[dim];
    return {std::max<int64_t>(extent.number + added, 0) / stride, node.deriveCount(extent.count, added, stride)};
  }

  OnnxNode &node;
  const WindowAttributes &window;
  unsigned dim;
  Extent extent, result;
  llvm::StringRef mode;
  bool isCeil;
  mlir::Value low, high;
  std::optional<int64_t> fixedLow;
};

} // namespace

void WindowDim::findResult() {
  int64_t stride = window.strides[dim], pads = window.padsLow[dim] + window.padsHigh[dim];
  if (mode.starts_with("SAME")) {
    result = divide(stride - 1);
    return;
  }
  result = divide(pads - window.getReach(dim) + stride + (isCeil ? stride - 1 : 0));
  if (!isCeil)
    return;
  // No window begins behind the input.
  Extent most = divide(window.padsLow[dim] + stride - 1);
  result.number = std::min(result.number, most.number);
  if (result.count && result.count != most.count)
    result.count = node.shareCount(result.count, {window.padsLow[dim], stride, -2},
                                   [&] { return node.create<MinOp>(result.count, most.count); });
}

void WindowDim::findPads() {
  if (!mode.starts_with("SAME") || !extent.count || window.strides[dim] == 1) {
    fixedLow = window.padsLow[dim];
    low = number(window.padsLow[dim]);
    high = number(window.padsHigh[dim]);
    return;
  }
  mlir::Value begins = node.create<MulOp>(node.create<SubOp>(result.count, number(1)), number(window.strides[dim]));
  mlir::Value total = node.create<AddOp>(begins, number(window.getReach(dim)));
  total = node.create<MaxOp>(node.create<SubOp>(total, getExtent()), number(0));
  mlir::Value half = node.create<DivOp>(total, number(2)), rest = node.create<SubOp>(total, half);
  low = mode == "SAME_LOWER" ? rest : half;
  high = mode == "SAME_LOWER" ? half : rest;
}

mlir::Value WindowDim::countElements(bool countsPads) {
  int64_t taps = window.kernel[dim];
  mlir::Value starts = node.create<MulOp>(node.count(0, result.number), number(window.strides[dim]));
  mlir::Value steps = node.create<MulOp>(node.count(0, taps), number(window.dilations[dim]));
  mlir::Value places = node.create<AddOp>(node.reshape(starts, {result.number, 1}), node.reshape(steps, {1, taps}));
  mlir::Value first = countsPads ? number(0) : low, end = node.create<AddOp>(low, getExtent());
  if (countsPads)
    end = node.create<AddOp>(end, high);
  mlir::Value isCounted =
      node.create<AndOp>(node.create<LessOrEqualOp>(first, places), node.create<LessOp>(places, end));
  mlir::Value counted = node.reduce(node.cast(isCounted, node.getBuilder().getF32Type()), ReduceKind::Sum, 1);
  // Windows in tails have none.
  counted = node.create<MaxOp>(node.reshape(counted, result.number), node.scalarLike(counted, 1));
  llvm::SmallVector<int64_t> shape(window.getRank() + 2, 1);
  shape[dim + 2] = result.number;
  return node.stateUnbounded(node.reshape(counted, shape));
}

mlir::Value WindowAttributes::arrange(OnnxNode &node, mlir::Value input, ReduceKind kind, Counts &counts,
                                      llvm::SmallVectorImpl<mlir::Value> *numbers, bool countsPads) {
  if (failed(node.inferBounds(input)))
    return {};
  counts.assign(node.getCounts(input).begin(), node.getCounts(input).end());
  counts.resize(node.getRank(input));
  mlir::Value neutral = node.neutralLike(input, kind), arranged = input;
  for (unsigned dim = 0; dim < getRank(); ++dim) {
    int64_t number = dim + 2, extent = node.getShape(input)[number];
    WindowDim description(node, *this, input, dim);
    counts[number] = description.getResult().count;
    if (numbers)
      numbers->push_back(description.countElements(countsPads));
    int64_t size = description.getArranged();
    Counts given(node.getCounts(arranged));
    if (std::optional<int64_t> low = description.getFixedLow()) {
      arranged = node.fillTails(arranged, {number}, kind);
      llvm::SmallVector<int64_t> lows(getRank() + 2, 0), highs(getRank() + 2, 0);
      lows[number] = *low;
      highs[number] = size - extent - *low;
      if (!given.empty())
        given[number] = {};
      arranged =
          node.state(node.create<PadOp>(arranged, OptionalOperand{neutral}, lows, highs, PadMode::Constant), given);
    } else {
      // Where the input begins is known when the program runs.
      given[number] = {};
      mlir::Value places = node.create<SubOp>(node.count(0, size), description.getLow());
      mlir::Value last = description.number(std::max<int64_t>(extent - 1, 0)), zero = description.number(0);
      mlir::Value inside = node.create<MaxOp>(node.create<MinOp>(places, last), zero);
      mlir::Value isThere = node.create<AndOp>(node.create<LessOrEqualOp>(zero, places),
                                               node.create<LessOp>(places, description.getExtent()));
      llvm::SmallVector<int64_t> shape(getRank() + 2, 1);
      shape[number] = size;
      arranged = node.state(node.create<GatherOp>(arranged, inside, number), given);
      arranged = node.state(node.create<SelectOp>(node.reshape(isThere, shape), arranged, neutral), given);
    }
    if (!arranged)
      return {};
  }
  padsLow.assign(getRank(), 0);
  padsHigh.assign(getRank(), 0);
  return arranged;
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
