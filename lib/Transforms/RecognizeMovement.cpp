//===- RecognizeMovement.cpp - Movements that are spelt out -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises circular padding that is written as a concatenation of slices, and slices that are written as gathers.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Circular padding
//===----------------------------------------------------------------------===//

/// How many elements of `source` along `axis` the slice `value` takes, at its end or at its beginning; 0 if it is
/// something else.
static int64_t getEndSlice(Value value, Value source, int64_t axis, bool fromEnd) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || slice.getOperand() != source)
    return 0;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(source))) {
    int64_t size = slice.getSizes()[dim];
    bool isAxis = static_cast<int64_t>(dim) == axis;
    int64_t start = isAxis && fromEnd ? extent - size : 0;
    if (slice.getStarts()[dim] != start || (size > 1 && slice.getSteps()[dim] != 1) || (!isAxis && size != extent))
      return 0;
  }
  return slice.getSizes()[axis];
}

/// concat(end of x, x, beginning of x) continues x around; either end may be missing.
static LogicalResult recognizeCircularPad(ConcatOp op, PatternRewriter &rewriter) {
  auto axis = static_cast<int64_t>(op.getAxis());
  auto inputs = op.getInputs();
  for (size_t middle : {0, 1}) {
    if (inputs.size() < 2 || inputs.size() > middle + 2)
      continue;
    Value source = inputs[middle];
    bool hasHigh = inputs.size() == middle + 2;
    int64_t low = middle == 1 ? getEndSlice(inputs[0], source, axis, /*fromEnd=*/true) : 0;
    int64_t high = hasHigh ? getEndSlice(inputs.back(), source, axis, /*fromEnd=*/false) : 0;
    if ((middle == 1 && low == 0) || (hasHigh && high == 0))
      continue;
    SmallVector<int64_t> lows(op.getType().getRank(), 0), highs(lows);
    lows[axis] = low;
    highs[axis] = high;
    rewriter.replaceOpWithNewOp<PadOp>(op, source, Value(), lows, highs, PadMode::Wrap);
    return success();
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// A gather of constant, evenly spaced indices.
static LogicalResult gatherToSlice(GatherOp op, PatternRewriter &rewriter) {
  auto constant = op.getIndices().getDefiningOp<ConstantOp>();
  std::optional<ConstantReader> reader =
      constant ? ConstantReader::create(constant.getValue()) : std::optional<ConstantReader>();
  int64_t count = typeOf(op.getIndices()).getNumElements();
  auto axis = static_cast<int64_t>(op.getAxis());
  int64_t extent = shapeOf(op.getOperand())[axis];
  if (!reader || count == 0)
    return failure();
  bool isUnsigned = isUnsignedElement(typeOf(op.getIndices()).getElementType());
  // Of indices that are out of range others see to.
  auto read = [&](int64_t i) { return lookUp(reader->readBits(i), isUnsigned, extent).value_or(-1); };
  int64_t start = read(0), step = count > 1 ? read(1) - start : 1;
  for (int64_t i = 0; i < count; ++i)
    if (int64_t position = read(i); position < 0 || position != start + i * step)
      return failure();
  if (step == 0)
    return failure();
  int64_t rank = typeOf(op.getOperand()).getRank();
  SmallVector<int64_t> starts(rank, 0), sizes(shapeOf(op.getOperand())), steps(rank, 1);
  starts[axis] = start;
  sizes[axis] = count;
  steps[axis] = step;
  Value slice = SliceOp::create(rewriter, op.getLoc(), op.getOperand(), starts, sizes, steps);
  rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), slice, op.getType().getShape()));
  return success();
}

void dovetail::populateRecognizeMovement(RewritePatternSet &patterns) {
  patterns.add(recognizeCircularPad);
  patterns.add(gatherToSlice);
}
