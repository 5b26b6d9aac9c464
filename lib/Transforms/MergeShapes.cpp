//===- MergeShapes.cpp - Merge operations that only move elements -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Drops movements that change nothing and merges consecutive ones of a kind. (Reshapes fold by themselves.)
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

static LogicalResult replaceBy(Operation *op, Value value, PatternRewriter &rewriter) {
  if (value.getType() != op->getResult(0).getType())
    return failure();
  rewriter.replaceOp(op, value);
  return success();
}

static bool isZeros(ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t value) { return value == 0; });
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

/// True if dimensions longer than 1 keep their order, so that elements stay where they are.
static bool keepsElements(TransposeOp op) {
  SmallVector<int64_t> longDims;
  for (int64_t dim : op.getPermutation())
    if (shapeOf(op.getOperand())[dim] != 1)
      longDims.push_back(dim);
  return llvm::is_sorted(longDims);
}

static LogicalResult simplifyTranspose(TransposeOp op, PatternRewriter &rewriter) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  if (llvm::is_sorted(permutation))
    return replaceBy(op, op.getOperand(), rewriter);
  if (auto inner = op.getOperand().getDefiningOp<TransposeOp>()) {
    ArrayRef<int64_t> first = inner.getPermutation();
    rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getOperand(),
                                             llvm::map_to_vector(permutation, [&](int64_t dim) { return first[dim]; }));
    return success();
  }
  if (!keepsElements(op))
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getOperand());
  return success();
}

//===----------------------------------------------------------------------===//
// Slice, Pad, Broadcast, Resize
//===----------------------------------------------------------------------===//

static LogicalResult simplifySlice(SliceOp op, PatternRewriter &rewriter) {
  auto isWhole = [&] {
    for (auto [extent, start, size, step] :
         llvm::zip_equal(shapeOf(op.getOperand()), op.getStarts(), op.getSizes(), op.getSteps()))
      if (size != extent || (size > 0 && start != 0) || (size > 1 && step != 1))
        return false;
    return true;
  };
  if (isWhole())
    return replaceBy(op, op.getOperand(), rewriter);
  auto inner = op.getOperand().getDefiningOp<SliceOp>();
  if (!inner || typeOf(op).getNumElements() == 0)
    return failure();
  SmallVector<int64_t> starts, steps;
  for (auto [dim, size] : llvm::enumerate(op.getSizes())) {
    // The step of a single element means nothing, and may be as large as integers go.
    int64_t innerStep = inner.getSizes()[dim] > 1 ? inner.getSteps()[dim] : 1;
    starts.push_back(inner.getStarts()[dim] + op.getStarts()[dim] * innerStep);
    steps.push_back(size > 1 ? op.getSteps()[dim] * innerStep : 1);
  }
  rewriter.replaceOpWithNewOp<SliceOp>(op, inner.getOperand(), starts, op.getSizes(), steps);
  return success();
}

/// True if two pads with constants, or in another mode, are one: each dimension is extended, or cropped, by one of
/// them, or extended by both.
static bool canMergePads(PadOp outer, PadOp inner) {
  bool isConstant = outer.getMode() == PadMode::Constant;
  auto merge = [&](int64_t a, int64_t b) {
    if (a == 0 || b == 0)
      return true;
    // Cropping twice is one crop; what was extended with a constant may be extended further.
    return (a < 0 && b < 0) || (isConstant && a > 0 && b > 0);
  };
  for (auto [dim, rank] = std::pair<int64_t, int64_t>(0, outer.getType().getRank()); dim < rank; ++dim) {
    int64_t outerLow = outer.getLow()[dim], outerHigh = outer.getHigh()[dim];
    int64_t innerLow = inner.getLow()[dim], innerHigh = inner.getHigh()[dim];
    if (!merge(outerLow, innerLow) || !merge(outerHigh, innerHigh))
      return false;
    // The other modes continue what the operand has in this dimension, which the inner pad must not change.
    if (!isConstant && (outerLow != 0 || outerHigh != 0) && (innerLow != 0 || innerHigh != 0))
      return false;
    // A crop beyond the operand's end eats the other end's padding.
    int64_t extent = shapeOf(inner.getOperand())[dim];
    if (std::min<int64_t>(0, outerLow + innerLow) + std::min<int64_t>(0, outerHigh + innerHigh) + extent < 0)
      return false;
  }
  return true;
}

/// True if both continue with the same number.
static bool padsAlike(PadOp a, PadOp b) {
  if (a.getMode() != b.getMode())
    return false;
  if (a.getMode() != PadMode::Constant || a.getValue() == b.getValue())
    return true;
  std::optional<double> first = a.getValue() ? getSplat(a.getValue()) : 0.0;
  std::optional<double> second = b.getValue() ? getSplat(b.getValue()) : 0.0;
  return first && second && *first == *second && std::signbit(*first) == std::signbit(*second);
}

static LogicalResult simplifyPad(PadOp op, PatternRewriter &rewriter) {
  if (isZeros(op.getLow()) && isZeros(op.getHigh()))
    return replaceBy(op, op.getOperand(), rewriter);
  auto inner = getSoleProducer<PadOp>(op.getOperand());
  if (!inner || !padsAlike(op, inner) || !canMergePads(op, inner))
    return failure();
  auto sum = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    return llvm::map_to_vector(llvm::zip_equal(a, b), [](auto pair) { return std::get<0>(pair) + std::get<1>(pair); });
  };
  rewriter.replaceOpWithNewOp<PadOp>(op, inner.getOperand(), op.getValue(), sum(op.getLow(), inner.getLow()),
                                     sum(op.getHigh(), inner.getHigh()), op.getMode());
  return success();
}

/// A slice of neighbours in what a constant extends is the operand extended by less, or cropped, or nothing but zeros.
static LogicalResult sliceOfPad(SliceOp op, PatternRewriter &rewriter) {
  auto pad = op.getOperand().getDefiningOp<PadOp>();
  if (!pad || pad.getMode() != PadMode::Constant || typeOf(op).getNumElements() == 0)
    return failure();
  SmallVector<int64_t> low, high;
  bool isOutside = false;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(pad.getOperand()))) {
    int64_t size = op.getSizes()[dim], before = pad.getLow()[dim] - op.getStarts()[dim];
    // Where the pad crops, others are in front.
    if ((size > 1 && op.getSteps()[dim] != 1) || pad.getLow()[dim] < 0 || pad.getHigh()[dim] < 0)
      return failure();
    isOutside |= before >= size || before + extent <= 0;
    low.push_back(before);
    high.push_back(size - before - extent);
  }
  if (!isOutside) {
    rewriter.replaceOpWithNewOp<PadOp>(op, pad.getOperand(), pad.getValue(), low, high, PadMode::Constant);
    return success();
  }
  if (pad.getValue())
    return failure();
  RankedTensorType type = typeOf(op);
  rewriter.replaceOpWithNewOp<ConstantOp>(op,
                                          DenseElementsAttr::get(type, rewriter.getZeroAttr(type.getElementType())));
  return success();
}

static LogicalResult simplifyBroadcast(BroadcastOp op, PatternRewriter &rewriter) {
  if (op.getOperand().getType() == op.getType())
    return replaceBy(op, op.getOperand(), rewriter);
  auto inner = op.getOperand().getDefiningOp<BroadcastOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getOperand());
  return success();
}

/// A dimension of scale 1 is copied, whatever the mode.
static LogicalResult simplifyResize(ResizeOp op, PatternRewriter &rewriter) {
  if (!llvm::all_of(op.getScales(), [](double scale) { return scale == 1; }))
    return failure();
  return replaceBy(op, op.getOperand(), rewriter);
}

//===----------------------------------------------------------------------===//
// Concat, Reduce
//===----------------------------------------------------------------------===//

/// Concatenations have no more inputs than this. A kernel has an argument for each: devices take 32 KiB of them, at 8
/// bytes for a tensor and for each of its dimensions. This is as many as fit with 32 dimensions and what is fused. And
/// each element of the result is looked for in one input after another.
static constexpr size_t kMaxConcatInputs = 96;

/// Many inputs are joined in parts of about equal size, and these with one another.
static LogicalResult splitConcat(ConcatOp op, PatternRewriter &rewriter) {
  size_t count = op.getInputs().size();
  if (count <= kMaxConcatInputs)
    return failure();
  // The whole alone is the tensor that the model names.
  Location loc = op.getLoc();
  if (auto named = dyn_cast<FusedLocWith<StringAttr>>(loc))
    loc = named.getLocations().front();
  size_t size = llvm::divideCeil(count, llvm::divideCeil(count, kMaxConcatInputs));
  SmallVector<Value> parts;
  for (ValueRange rest = op.getInputs(); !rest.empty(); rest = rest.drop_front(std::min(size, rest.size())))
    parts.push_back(ConcatOp::create(rewriter, loc, rest.take_front(std::min(size, rest.size())), op.getAxis()));
  rewriter.replaceOpWithNewOp<ConcatOp>(op, parts, op.getAxis());
  return success();
}

static LogicalResult simplifyConcat(ConcatOp op, PatternRewriter &rewriter) {
  auto axis = static_cast<int64_t>(op.getAxis());
  SmallVector<Value> inputs;
  for (Value input : op.getInputs()) {
    auto inner = getSoleProducer<ConcatOp>(input);
    if (inner && inner.getAxis() == op.getAxis())
      llvm::append_range(inputs, inner.getInputs());
    else if (shapeOf(input)[axis] != 0)
      inputs.push_back(input);
  }
  if (inputs.size() == 1)
    return replaceBy(op, inputs.front(), rewriter);
  if (inputs.empty() || inputs.size() > kMaxConcatInputs || ValueRange(inputs) == op.getInputs())
    return failure();
  rewriter.replaceOpWithNewOp<ConcatOp>(op, inputs, axis);
  return success();
}

/// The slice of one of the inputs of a concatenation needs no other.
static LogicalResult sliceOfConcat(SliceOp op, PatternRewriter &rewriter) {
  auto concat = op.getOperand().getDefiningOp<ConcatOp>();
  if (!concat || typeOf(op).getNumElements() == 0)
    return failure();
  auto axis = static_cast<int64_t>(concat.getAxis());
  int64_t first = op.getStarts()[axis], size = op.getSizes()[axis];
  int64_t last = size > 1 ? first + (size - 1) * op.getSteps()[axis] : first;
  if (last < first)
    std::swap(first, last);
  int64_t begin = 0;
  for (Value input : concat.getInputs()) {
    int64_t end = begin + shapeOf(input)[axis];
    if (begin <= first && last < end) {
      SmallVector<int64_t> starts(op.getStarts());
      starts[axis] -= begin;
      rewriter.replaceOpWithNewOp<SliceOp>(op, input, starts, op.getSizes(), op.getSteps());
      return success();
    }
    begin = end;
  }
  return failure();
}

/// Reducing a dimension of extent 1 changes nothing.
static LogicalResult simplifyReduce(ReduceOp op, PatternRewriter &rewriter) {
  SmallVector<int64_t> axes =
      llvm::filter_to_vector(op.getAxes(), [&](int64_t axis) { return shapeOf(op.getOperand())[axis] != 1; });
  if (axes.size() == op.getAxes().size())
    return failure();
  if (axes.empty())
    return replaceBy(op, op.getOperand(), rewriter);
  rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getOperand(), op.getKind(), axes);
  return success();
}

void dovetail::populateMergeShapes(RewritePatternSet &patterns) {
  patterns.add(simplifyTranspose);
  patterns.add(simplifySlice);
  patterns.add(simplifyPad);
  patterns.add(simplifyBroadcast);
  patterns.add(simplifyResize);
  patterns.add(simplifyConcat);
  patterns.add(splitConcat);
  patterns.add(sliceOfConcat);
  patterns.add(sliceOfPad);
  patterns.add(simplifyReduce);
}
