//===- Windows.cpp - Windows of convolutions and pooling -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Windows.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;

void Windows::setAutoPads(mlir::Value input) {
  for (unsigned dim = 0; dim < getRank(); ++dim) {
    int64_t extent = GraphBuilder::getShape(input)[dim + 2];
    int64_t results = llvm::divideCeil(extent, strides[dim]);
    int64_t total = std::max<int64_t>((results - 1) * strides[dim] + getReach(dim) - extent, 0);
    padsLow[dim] = autoPad == AutoPad::SameLower ? total - total / 2 : total / 2;
    padsHigh[dim] = total - padsLow[dim];
  }
}

//===----------------------------------------------------------------------===//
// Bounded dimensions
//===----------------------------------------------------------------------===//

/// The spatial dimensions of `input` that are bounded.
static llvm::SmallVector<int64_t> getBoundedDims(GraphBuilder &node, const Windows &window, mlir::Value input) {
  llvm::SmallVector<int64_t> dims;
  for (unsigned dim = 0; dim < window.getRank(); ++dim)
    if (node.getCount(input, dim + 2))
      dims.push_back(dim + 2);
  return dims;
}

bool Windows::varies(GraphBuilder &node, mlir::Value input, bool countsElements) const {
  for (unsigned dim = 0; dim < getRank(); ++dim)
    if (node.getCount(input, dim + 2) &&
        ((isSame() && strides[dim] != 1) || isCeil || (countsElements && (padsLow[dim] != 0 || padsHigh[dim] != 0))))
      return true;
  return false;
}

namespace {

/// One spatial dimension of windows, in scalars of i64.
class WindowDim {
public:
  WindowDim(GraphBuilder &node, const Windows &window, mlir::Value input, unsigned dim)
      : node(node), window(window), dim(dim), extent(node.getExtent(input, dim + 2)) {
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

  GraphBuilder &node;
  const Windows &window;
  unsigned dim;
  Extent extent, result;
  mlir::Value low, high;
  std::optional<int64_t> fixedLow;
};

} // namespace

void WindowDim::findResult() {
  int64_t stride = window.strides[dim], pads = window.padsLow[dim] + window.padsHigh[dim];
  if (window.isSame()) {
    result = divide(stride - 1);
    return;
  }
  result = divide(pads - window.getReach(dim) + stride + (window.isCeil ? stride - 1 : 0));
  if (!window.isCeil)
    return;
  // No window begins behind the input.
  Extent most = divide(window.padsLow[dim] + stride - 1);
  result.number = std::min(result.number, most.number);
  if (result.count && result.count != most.count)
    result.count = node.shareCount(result.count, {window.padsLow[dim], stride, -2},
                                   [&] { return node.create<MinOp>(result.count, most.count); });
}

void WindowDim::findPads() {
  if (!window.isSame() || !extent.count || window.strides[dim] == 1) {
    fixedLow = window.padsLow[dim];
    low = number(window.padsLow[dim]);
    high = number(window.padsHigh[dim]);
    return;
  }
  mlir::Value begins = node.create<MulOp>(node.create<SubOp>(result.count, number(1)), number(window.strides[dim]));
  mlir::Value total = node.create<AddOp>(begins, number(window.getReach(dim)));
  total = node.create<MaxOp>(node.create<SubOp>(total, getExtent()), number(0));
  bool isLower = window.autoPad == Windows::AutoPad::SameLower;
  mlir::Value half = node.create<DivOp>(total, number(2)), rest = node.create<SubOp>(total, half);
  low = isLower ? rest : half;
  high = isLower ? half : rest;
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

mlir::Value Windows::arrange(GraphBuilder &node, mlir::Value input, ReduceKind kind, Counts &counts,
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

mlir::Value Windows::fillTails(GraphBuilder &node, mlir::Value input, ReduceKind kind) const {
  if (failed(node.inferBounds(input)))
    return {};
  llvm::SmallVector<int64_t> dims = getBoundedDims(node, *this, input);
  return dims.empty() ? input : node.fillTails(input, dims, kind);
}

mlir::Value Windows::boundResult(GraphBuilder &node, mlir::Value input, mlir::Value result) const {
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
