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
static llvm::SmallVector<int64_t> getBoundedDims(GraphBuilder &builder, const Windows &window, mlir::Value input) {
  llvm::SmallVector<int64_t> dims;
  for (unsigned dim = 0; dim < window.getRank(); ++dim)
    if (builder.getCount(input, dim + 2))
      dims.push_back(dim + 2);
  return dims;
}

bool Windows::varies(GraphBuilder &builder, mlir::Value input, bool countsElements) const {
  for (unsigned dim = 0; dim < getRank(); ++dim)
    if (builder.getCount(input, dim + 2) &&
        ((isSame() && strides[dim] != 1) || isCeil || (countsElements && (padsLow[dim] != 0 || padsHigh[dim] != 0))))
      return true;
  return false;
}

namespace {

/// One spatial dimension of windows, in scalars of i64.
class WindowDim {
public:
  WindowDim(GraphBuilder &builder, const Windows &window, mlir::Value input, unsigned dim)
      : builder(builder), window(window), dim(dim), extent(builder.getExtent(input, dim + 2)) {
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

  mlir::Value number(int64_t value) { return builder.toScalar({value}); }
  mlir::Value getExtent() { return builder.toScalar(extent); }

private:
  void findResult();
  void findPads();
  Extent divide(int64_t added) {
    int64_t stride = window.strides[dim];
    return {std::max<int64_t>(extent.number + added, 0) / stride, builder.deriveCount(extent.count, added, stride)};
  }

  GraphBuilder &builder;
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
    result.count = builder.shareCount(result.count, {window.padsLow[dim], stride, -2},
                                      [&] { return builder.create<MinOp>(result.count, most.count); });
}

void WindowDim::findPads() {
  if (!window.isSame() || !extent.count || window.strides[dim] == 1) {
    fixedLow = window.padsLow[dim];
    low = number(window.padsLow[dim]);
    high = number(window.padsHigh[dim]);
    return;
  }
  mlir::Value begins =
      builder.create<MulOp>(builder.create<SubOp>(result.count, number(1)), number(window.strides[dim]));
  mlir::Value total = builder.create<AddOp>(begins, number(window.getReach(dim)));
  total = builder.create<MaxOp>(builder.create<SubOp>(total, getExtent()), number(0));
  bool isLower = window.autoPad == Windows::AutoPad::SameLower;
  mlir::Value half = builder.create<DivOp>(total, number(2)), rest = builder.create<SubOp>(total, half);
  low = isLower ? rest : half;
  high = isLower ? half : rest;
}

mlir::Value WindowDim::countElements(bool countsPads) {
  int64_t taps = window.kernel[dim];
  mlir::Value starts = builder.create<MulOp>(builder.count(0, result.number), number(window.strides[dim]));
  mlir::Value steps = builder.create<MulOp>(builder.count(0, taps), number(window.dilations[dim]));
  mlir::Value places =
      builder.create<AddOp>(builder.reshape(starts, {result.number, 1}), builder.reshape(steps, {1, taps}));
  mlir::Value first = countsPads ? number(0) : low, end = builder.create<AddOp>(low, getExtent());
  if (countsPads)
    end = builder.create<AddOp>(end, high);
  mlir::Value isCounted =
      builder.create<AndOp>(builder.create<LessOrEqualOp>(first, places), builder.create<LessOp>(places, end));
  mlir::Value counted = builder.reduce(builder.cast(isCounted, builder.getBuilder().getF32Type()), ReduceKind::Sum, 1);
  // Windows in tails have none.
  counted = builder.create<MaxOp>(builder.reshape(counted, result.number), builder.scalarLike(counted, 1));
  llvm::SmallVector<int64_t> shape(window.getRank() + 2, 1);
  shape[dim + 2] = result.number;
  return builder.stateUnbounded(builder.reshape(counted, shape));
}

mlir::Value Windows::arrange(GraphBuilder &builder, mlir::Value input, ReduceKind kind, Counts &counts,
                             llvm::SmallVectorImpl<mlir::Value> *numbers, bool countsPads) {
  if (failed(builder.inferBounds(input)))
    return {};
  counts.assign(builder.getCounts(input).begin(), builder.getCounts(input).end());
  counts.resize(builder.getRank(input));
  mlir::Value neutral = builder.neutralLike(input, kind), arranged = input;
  for (unsigned dim = 0; dim < getRank(); ++dim) {
    int64_t number = dim + 2, extent = builder.getShape(input)[number];
    WindowDim description(builder, *this, input, dim);
    counts[number] = description.getResult().count;
    if (numbers)
      numbers->push_back(description.countElements(countsPads));
    int64_t size = description.getArranged();
    Counts given(builder.getCounts(arranged));
    if (std::optional<int64_t> low = description.getFixedLow()) {
      arranged = builder.fillTails(arranged, {number}, kind);
      llvm::SmallVector<int64_t> lows(getRank() + 2, 0), highs(getRank() + 2, 0);
      lows[number] = *low;
      highs[number] = size - extent - *low;
      if (!given.empty())
        given[number] = {};
      arranged = builder.state(
          builder.create<PadOp>(arranged, OptionalOperand{neutral}, lows, highs, PadMode::Constant), given);
    } else {
      // Where the input begins is known when the program runs.
      given[number] = {};
      mlir::Value places = builder.create<SubOp>(builder.count(0, size), description.getLow());
      mlir::Value last = description.number(std::max<int64_t>(extent - 1, 0)), zero = description.number(0);
      mlir::Value inside = builder.create<MaxOp>(builder.create<MinOp>(places, last), zero);
      mlir::Value isThere = builder.create<AndOp>(builder.create<LessOrEqualOp>(zero, places),
                                                  builder.create<LessOp>(places, description.getExtent()));
      llvm::SmallVector<int64_t> shape(getRank() + 2, 1);
      shape[number] = size;
      arranged = builder.state(builder.create<GatherOp>(arranged, inside, number), given);
      arranged = builder.state(builder.create<SelectOp>(builder.reshape(isThere, shape), arranged, neutral), given);
    }
    if (!arranged)
      return {};
  }
  padsLow.assign(getRank(), 0);
  padsHigh.assign(getRank(), 0);
  return arranged;
}

mlir::Value Windows::fillTails(GraphBuilder &builder, mlir::Value input, ReduceKind kind) const {
  if (failed(builder.inferBounds(input)))
    return {};
  llvm::SmallVector<int64_t> dims = getBoundedDims(builder, *this, input);
  return dims.empty() ? input : builder.fillTails(input, dims, kind);
}

mlir::Value Windows::boundResult(GraphBuilder &builder, mlir::Value input, mlir::Value result) const {
  llvm::SmallVector<int64_t> dims = getBoundedDims(builder, *this, input);
  if (dims.empty() || failed(builder.inferBounds(result)))
    return result;
  Counts counts(builder.getCounts(result));
  counts.resize(builder.getRank(result));
  for (int64_t dim : dims) {
    int64_t stride = strides[dim - 2], pads = padsLow[dim - 2] + padsHigh[dim - 2];
    counts[dim] = builder.deriveCount(builder.getCount(input, dim), pads - getReach(dim - 2) + stride, stride);
  }
  return builder.bound(result, std::move(counts));
}
