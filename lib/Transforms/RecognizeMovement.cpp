//===- RecognizeMovement.cpp - Movements that are spelt out -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises padding that is written as a concatenation or a gather. Slices and rolls may be written as gathers,
// concatenations as scatters.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// concat(end of x, x, beginning of x) continues x around; either end may be missing.
static LogicalResult recognizeCircularPad(ConcatOp op, PatternRewriter &rewriter) {
  std::optional<Wrap> wrap = findWrap(op);
  // Whole images stay as they are.
  if (!wrap || wrap->low + wrap->high == 0 || wrap->high >= shapeOf(wrap->source)[op.getAxis()])
    return failure();
  SmallVector<int64_t> lows(op.getType().getRank(), 0), highs(lows);
  lows[op.getAxis()] = wrap->low;
  highs[op.getAxis()] = wrap->high;
  rewriter.replaceOpWithNewOp<PadOp>(op, wrap->source, Value(), lows, highs, PadMode::Wrap);
  return success();
}

/// All elements are zeros of positive sign.
static bool isZeros(Value value) {
  std::optional<double> number = getSplat(value);
  return number && *number == 0 && !std::signbit(*number);
}

/// concat(zeros, x, zeros) is x with padding.
static LogicalResult recognizePad(ConcatOp op, PatternRewriter &rewriter) {
  auto axis = static_cast<int64_t>(op.getAxis());
  SmallVector<int64_t> low(op.getType().getRank(), 0), high(low);
  Value source;
  for (Value input : op.getInputs()) {
    if (!isZeros(input)) {
      if (source)
        return failure();
      source = input;
      continue;
    }
    (source ? high : low)[axis] += shapeOf(input)[axis];
  }
  if (!source || op.getInputs().size() == 1)
    return failure();
  rewriter.replaceOpWithNewOp<PadOp>(op, source, Value(), low, high, PadMode::Constant);
  return success();
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// The positions that a gather of constant indices reads, of which there are some; nothing if one is out of range:
/// others see to those.
static SmallVector<int64_t> getPositions(GatherOp op) {
  auto constant = op.getIndices().getDefiningOp<ConstantOp>();
  std::optional<ConstantReader> reader =
      constant ? ConstantReader::create(constant.getValue()) : std::optional<ConstantReader>();
  if (!reader)
    return {};
  bool isUnsigned = isUnsignedElement(typeOf(op.getIndices()).getElementType());
  SmallVector<int64_t> positions;
  for (int64_t i = 0, e = typeOf(op.getIndices()).getNumElements(); i < e; ++i) {
    std::optional<int64_t> position = lookUp(reader->readBits(i), isUnsigned, shapeOf(op.getOperand())[op.getAxis()]);
    if (!position)
      return {};
    positions.push_back(*position);
  }
  return positions;
}

/// A gather of constant, evenly spaced indices.
static LogicalResult gatherToSlice(GatherOp op, PatternRewriter &rewriter) {
  SmallVector<int64_t> positions = getPositions(op);
  if (positions.empty())
    return failure();
  auto count = static_cast<int64_t>(positions.size());
  int64_t start = positions[0], step = count > 1 ? positions[1] - start : 1;
  if (step == 0)
    return failure();
  for (auto [i, position] : llvm::enumerate(positions))
    if (position != start + static_cast<int64_t>(i) * step)
      return failure();
  Value slice = sliceAlong(rewriter, op.getLoc(), op.getOperand(), op.getAxis(), start, count, step);
  rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), slice, op.getType().getShape()));
  return success();
}

/// A gather of constant indices that continue all of the dimension around, mirrored, or with its ends.
static LogicalResult gatherToPad(GatherOp op, PatternRewriter &rewriter) {
  SmallVector<int64_t> positions = getPositions(op);
  auto count = static_cast<int64_t>(positions.size());
  int64_t extent = shapeOf(op.getOperand())[op.getAxis()];
  // Somewhere there is all of it; of images that are repeated the first one.
  for (int64_t low = 0; extent > 1 && low + extent < count; ++low) {
    auto whole = ArrayRef(positions).slice(low, extent);
    if (whole.front() != 0 || !llvm::equal(whole, llvm::seq<int64_t>(0, extent)))
      continue;
    for (auto [mode, border] :
         {std::pair(PadMode::Wrap, layout::Border::Wrap), std::pair(PadMode::Reflect, layout::Border::Reflect),
          std::pair(PadMode::Edge, layout::Border::Edge)}) {
      bool fits = llvm::all_of(llvm::enumerate(positions), [&, border = border](auto entry) {
        return entry.value() == layout::continueInside(static_cast<int64_t>(entry.index()) - low, {0, extent}, border);
      });
      if (!fits)
        continue;
      SmallVector<int64_t> lows(typeOf(op.getOperand()).getRank(), 0), highs(lows);
      lows[op.getAxis()] = low;
      highs[op.getAxis()] = count - low - extent;
      Value pad = PadOp::create(rewriter, op.getLoc(), op.getOperand(), Value(), lows, highs, mode);
      rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), pad, op.getType().getShape()));
      return success();
    }
    return failure();
  }
  return failure();
}

/// A gather of constant indices that are two ranges, as those of a roll.
static LogicalResult gatherToConcat(GatherOp op, PatternRewriter &rewriter) {
  SmallVector<int64_t> positions = getPositions(op);
  auto count = static_cast<int64_t>(positions.size());
  int64_t second = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (positions[i] == positions[i - 1] + 1)
      continue;
    if (second != 0)
      return failure();
    second = i;
  }
  // Of two elements anything is two ranges.
  if (second == 0 || count < 4)
    return failure();
  Value parts[] = {sliceAlong(rewriter, op.getLoc(), op.getOperand(), op.getAxis(), positions[0], second),
                   sliceAlong(rewriter, op.getLoc(), op.getOperand(), op.getAxis(), positions[second], count - second)};
  Value joined = ConcatOp::create(rewriter, op.getLoc(), ValueRange(parts), op.getAxis());
  rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), joined, op.getType().getShape()));
  return success();
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// Where the first of `count` neighbours is that constant `indices` name, one after the other, along dimension `axis`
/// of `extent` elements, the same along all other dimensions; none if they do not.
static std::optional<int64_t> getFirstOfRange(Value indices, int64_t axis, int64_t extent) {
  SmallVector<int64_t> shape(shapeOf(indices));
  // What is repeated has 1 in place of extents.
  if (auto broadcast = indices.getDefiningOp<BroadcastOp>()) {
    indices = broadcast.getOperand();
    size_t missing = shape.size() - shapeOf(indices).size();
    int64_t along = shape[axis];
    llvm::fill(shape, 1);
    llvm::copy(shapeOf(indices), shape.begin() + missing);
    // Along the axis one index in many places is no range.
    if (shape[axis] != along)
      return std::nullopt;
  }
  auto constant = indices.getDefiningOp<ConstantOp>();
  std::optional<ConstantReader> reader =
      constant ? ConstantReader::create(constant.getValue()) : std::optional<ConstantReader>();
  int64_t total = typeOf(indices).getNumElements();
  if (!reader || total == 0)
    return std::nullopt;
  bool isUnsigned = isUnsignedElement(typeOf(indices).getElementType());
  int64_t inner = ShapedType::getNumElements(ArrayRef(shape).drop_front(axis + 1)), first = 0;
  for (int64_t i = 0; i < total; ++i) {
    // Of indices that are out of range others see to.
    std::optional<int64_t> position = dovetail::lookUp(reader->readBits(i), isUnsigned, extent);
    if (i == 0)
      first = position.value_or(0);
    if (position != first + i / inner % shape[axis])
      return std::nullopt;
  }
  return first;
}

/// `data` with `updates` from `first` on along `axis`, in place of what is there.
static Value replacePart(OpBuilder &builder, Location loc, Value data, Value updates, int64_t axis, int64_t first) {
  int64_t rank = typeOf(data).getRank(), end = first + shapeOf(updates)[axis];
  Value source = data;
  while (auto slice = source.getDefiningOp<SliceOp>())
    source = slice.getOperand();
  if (isZeros(source)) {
    SmallVector<int64_t> low(rank, 0), high(rank, 0);
    low[axis] = first;
    high[axis] = shapeOf(data)[axis] - end;
    return PadOp::create(builder, loc, updates, Value(), low, high, PadMode::Constant);
  }
  Value before = sliceAlong(builder, loc, data, axis, 0, first);
  Value after = sliceAlong(builder, loc, data, axis, end, shapeOf(data)[axis] - end);
  return ConcatOp::create(builder, loc, ValueRange({before, updates, after}), axis);
}

/// A scatter to constant neighbours, whole slices of the data.
static LogicalResult scatterToConcat(ScatterElementsOp op, PatternRewriter &rewriter) {
  auto axis = static_cast<int64_t>(op.getAxis());
  ArrayRef<int64_t> data = shapeOf(op.getData()), updates = shapeOf(op.getUpdates());
  for (auto [dim, extent] : llvm::enumerate(updates))
    if (static_cast<int64_t>(dim) != axis && extent != data[dim])
      return failure();
  std::optional<int64_t> first = getFirstOfRange(op.getIndices(), axis, data[axis]);
  if (op.getReduction() || !first)
    return failure();
  rewriter.replaceOp(op, replacePart(rewriter, op.getLoc(), op.getData(), op.getUpdates(), axis, *first));
  return success();
}

/// The same of slices of the first dimension.
static LogicalResult scatterNDToConcat(ScatterNDOp op, PatternRewriter &rewriter) {
  ArrayRef<int64_t> indices = shapeOf(op.getIndices());
  if (op.getReduction() || indices.size() != 2 || indices.back() != 1)
    return failure();
  std::optional<int64_t> first = getFirstOfRange(op.getIndices(), 0, shapeOf(op.getData()).front());
  if (!first)
    return failure();
  rewriter.replaceOp(op, replacePart(rewriter, op.getLoc(), op.getData(), op.getUpdates(), 0, *first));
  return success();
}

void dovetail::populateRecognizeMovement(RewritePatternSet &patterns) {
  patterns.add(recognizeCircularPad);
  patterns.add(recognizePad);
  patterns.add(gatherToSlice);
  patterns.add(gatherToPad);
  patterns.add(gatherToConcat);
  patterns.add(scatterToConcat);
  patterns.add(scatterNDToConcat);
}
