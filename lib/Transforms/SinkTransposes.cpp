//===- SinkTransposes.cpp - Move transposes towards each other -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves transposes behind operations that can as well be done in another order of dimensions. Graphs converted from
// channels-last models are full of pairs that cancel in this way.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

static SmallVector<int64_t> invert(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = static_cast<int64_t>(i);
  return inverse;
}

/// `values`, one for each dimension of a transposed tensor, in the order of the tensor before.
template <typename ArrayT> static auto undo(const ArrayT &values, ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(invert(permutation), [&](int64_t dim) { return values[dim]; });
}

/// A copy of `op` that reads `operands`, in front of it; its result has the dimensions from before `permutation`.
static Operation *cloneBefore(Operation *op, ValueRange operands, ArrayRef<int64_t> permutation,
                              PatternRewriter &rewriter) {
  Operation *copy = rewriter.clone(*op);
  copy->setOperands(operands);
  RankedTensorType type = typeOf(op->getResult(0));
  copy->getResult(0).setType(type.clone(undo(type.getShape(), permutation)));
  return copy;
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

/// True if an operand of an elementwise operation can be brought into another order of dimensions for free: it is
/// constant, or the same for all.
static bool isFreeToPermute(Value operand) { return isConstantOnly(operand) || typeOf(operand).getNumElements() == 1; }

/// `operand`, which is free to permute, in the order of dimensions that `permutation` gives what it is broadcast to.
static Value permuteBy(PatternRewriter &rewriter, Value operand, ArrayRef<int64_t> permutation) {
  if (typeOf(operand).getNumElements() == 1)
    return operand;
  Value aligned = reshapeTo(rewriter, operand.getLoc(), operand, alignedShape(operand, permutation.size()));
  return TransposeOp::create(rewriter, operand.getLoc(), aligned, permutation);
}

static Value permuteOperand(PatternRewriter &rewriter, Value operand, ArrayRef<int64_t> permutation) {
  return permuteBy(rewriter, operand, invert(permutation));
}

namespace {
struct SinkBelowElementwise : RewritePattern {
  explicit SinkBelowElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<dovetail::Elementwise>())
      return failure();
    int64_t rank = typeOf(op->getResult(0)).getRank();
    TransposeOp first;
    for (Value operand : op->getOperands()) {
      auto transpose = getSoleProducer<TransposeOp>(operand, op);
      if (!transpose && isFreeToPermute(operand))
        continue;
      if (!transpose || typeOf(operand).getRank() != rank ||
          (first && transpose.getPermutation() != first.getPermutation()))
        return failure();
      first = transpose;
    }
    // What is constant alone is computed once anyway.
    if (!first || isConstantOnly(first))
      return failure();
    SmallVector<int64_t> permutation(first.getPermutation());
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto transpose = operand.getDefiningOp<TransposeOp>();
      operands.push_back(transpose && typeOf(operand).getRank() == rank &&
                                 transpose.getPermutation() == ArrayRef(permutation)
                             ? transpose.getOperand()
                             : permuteOperand(rewriter, operand, permutation));
    }
    Operation *copy = cloneBefore(op, operands, permutation, rewriter);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, copy->getResult(0), permutation);
    return success();
  }
};
} // namespace

/// The transpose by `permutation` of an operand of `op`, of which there is no other reader. Null if there is none.
static TransposeOp findTransposed(Operation *op, Value operand, ArrayRef<int64_t> permutation) {
  TransposeOp found;
  for (Operation *user : operand.getUsers()) {
    if (user == op)
      continue;
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || transpose->getBlock() != op->getBlock() || transpose.getPermutation() != permutation)
      return {};
    if (!found || transpose->isBeforeInBlock(found))
      found = transpose;
  }
  return found;
}

/// transpose(x + y), where x is transposed for all other readers, is transpose(x) + transpose(y): x itself is needed no
/// more. `SinkBelowElementwise` leaves it so, as transpose(x) has those readers.
static LogicalResult hoistAboveElementwise(TransposeOp op, PatternRewriter &rewriter) {
  Operation *source = op.getOperand().getDefiningOp();
  auto readsAnyOrder = [&](Operation *user) { return user == op || user->hasTrait<dovetail::Elementwise>(); };
  if (!source || !source->hasTrait<dovetail::Elementwise>() || source->getBlock() != op->getBlock() ||
      !llvm::all_of(source->getUsers(), readsAnyOrder))
    return failure();
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<TransposeOp> transposes;
  Value other;
  for (Value operand : source->getOperands()) {
    bool isFree = isFreeToPermute(operand);
    bool isWhole = !isFree && shapeOf(operand) == shapeOf(op.getOperand());
    transposes.push_back(isWhole ? findTransposed(source, operand, permutation) : TransposeOp());
    if (isFree || transposes.back())
      continue;
    // One transpose goes, and one may come.
    if (!isWhole || (other && other != operand))
      return failure();
    other = operand;
  }
  auto isKept = [&](TransposeOp transpose) { return transpose && !transpose->use_empty(); };
  if (llvm::none_of(transposes, isKept))
    return failure();
  // Readers of the sum may be in front of the transpose.
  rewriter.setInsertionPoint(source);
  SmallVector<Value> operands;
  for (auto [operand, transpose] : llvm::zip_equal(source->getOperands(), transposes)) {
    if (transpose && source->isBeforeInBlock(transpose))
      rewriter.moveOpBefore(transpose, source);
    operands.push_back(transpose                  ? transpose.getResult()
                       : isFreeToPermute(operand) ? permuteBy(rewriter, operand, permutation)
                                                  : TransposeOp::create(rewriter, op.getLoc(), operand, permutation));
  }
  Operation *copy = cloneBefore(source, operands, invert(permutation), rewriter);
  rewriter.replaceOp(op, copy);
  if (!source->use_empty())
    rewriter.replaceOpWithNewOp<TransposeOp>(source, copy->getResult(0), invert(permutation));
  return success();
}

//===----------------------------------------------------------------------===//
// Operations with one operand
//===----------------------------------------------------------------------===//

static LogicalResult sinkBelowPad(PadOp op, PatternRewriter &rewriter) {
  auto transpose = getSoleProducer<TransposeOp>(op.getOperand());
  if (!transpose)
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  Value pad = PadOp::create(rewriter, op.getLoc(), transpose.getOperand(), op.getValue(),
                            undo(op.getLow(), permutation), undo(op.getHigh(), permutation), op.getMode());
  rewriter.replaceOpWithNewOp<TransposeOp>(op, pad, permutation);
  return success();
}

static LogicalResult sinkBelowSlice(SliceOp op, PatternRewriter &rewriter) {
  auto transpose = getSoleProducer<TransposeOp>(op.getOperand());
  if (!transpose)
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  Value slice = SliceOp::create(rewriter, op.getLoc(), transpose.getOperand(), undo(op.getStarts(), permutation),
                                undo(op.getSizes(), permutation), undo(op.getSteps(), permutation));
  rewriter.replaceOpWithNewOp<TransposeOp>(op, slice, permutation);
  return success();
}

static LogicalResult sinkBelowReduce(ReduceOp op, PatternRewriter &rewriter) {
  auto transpose = getSoleProducer<TransposeOp>(op.getOperand());
  if (!transpose)
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  SmallVector<int64_t> axes = llvm::map_to_vector(op.getAxes(), [&](int64_t axis) { return permutation[axis]; });
  llvm::sort(axes);
  Value reduce = ReduceOp::create(rewriter, op.getLoc(), transpose.getOperand(), op.getKind(), axes);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, reduce, permutation);
  return success();
}

static LogicalResult sinkBelowSoftmax(SoftmaxOp op, PatternRewriter &rewriter) {
  auto transpose = getSoleProducer<TransposeOp>(op.getOperand());
  if (!transpose)
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  Value softmax =
      SoftmaxOp::create(rewriter, op.getLoc(), transpose.getOperand(), permutation[op.getAxis()], op.getLog());
  rewriter.replaceOpWithNewOp<TransposeOp>(op, softmax, permutation);
  return success();
}

static LogicalResult sinkBelowResize(ResizeOp op, PatternRewriter &rewriter) {
  auto transpose = getSoleProducer<TransposeOp>(op.getOperand());
  // Starts and ends of the region are looked at by one coordinate mode only.
  if (!transpose || !op.getRoi().empty())
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  auto resize = cast<ResizeOp>(cloneBefore(op, transpose.getOperand(), permutation, rewriter));
  resize.setSizes(undo(op.getSizes(), permutation));
  resize.setScales(undo(op.getScales(), permutation));
  rewriter.replaceOpWithNewOp<TransposeOp>(op, resize, permutation);
  return success();
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

static LogicalResult sinkBelowConcat(ConcatOp op, PatternRewriter &rewriter) {
  SmallVector<Value> inputs;
  SmallVector<int64_t> permutation;
  for (Value input : op.getInputs()) {
    auto transpose = getSoleProducer<TransposeOp>(input, op);
    if (!transpose || (!permutation.empty() && transpose.getPermutation() != ArrayRef(permutation)))
      return failure();
    permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
    inputs.push_back(transpose.getOperand());
  }
  Value concat = ConcatOp::create(rewriter, op.getLoc(), inputs, permutation[op.getAxis()]);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, concat, permutation);
  return success();
}

void dovetail::populateSinkTransposes(RewritePatternSet &patterns) {
  patterns.add<SinkBelowElementwise>(patterns.getContext());
  patterns.add(hoistAboveElementwise);
  patterns.add(sinkBelowPad);
  patterns.add(sinkBelowSlice);
  patterns.add(sinkBelowReduce);
  patterns.add(sinkBelowSoftmax);
  patterns.add(sinkBelowResize);
  patterns.add(sinkBelowConcat);
}
