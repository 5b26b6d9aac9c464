//===- SinkPads.cpp - Compute nothing of zeros that come along ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves padding with zeros behind operations that make zeros of zeros.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "PlainLoops.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

namespace dovetail {
#define GEN_PASS_DEF_SINKPADS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// What pads `value` with zeros for `user` alone; null if nothing does.
static PadOp getZeroPad(Value value, Operation *user) {
  auto pad = getSoleProducer<PadOp>(value, user);
  if (!pad || pad.getMode() != PadMode::Constant)
    return {};
  std::optional<double> number = pad.getValue() ? getSplat(pad.getValue()) : 0.0;
  return number && *number == 0 && !std::signbit(*number) ? pad : PadOp();
}

/// The operand of `pad`, padded but in dimensions `dims`.
static Value padOthers(OpBuilder &builder, PadOp pad, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> low(pad.getLow()), high(pad.getHigh());
  for (int64_t dim : dims)
    low[dim] = high[dim] = 0;
  auto isZero = [](int64_t count) { return count == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return pad.getOperand();
  return PadOp::create(builder, withoutTensorName(pad.getLoc()), pad.getOperand(), pad.getValue(), low, high,
                       PadMode::Constant);
}

/// `value`, of the shape that is left, as long as the result of `op` by zeros in dimensions `dims`, as many as `pad`
/// has in `padDims`.
static void replacePadded(OpBuilder &builder, Operation *op, Value value, ArrayRef<int64_t> dims, PadOp pad,
                          ArrayRef<int64_t> padDims) {
  SmallVector<int64_t> low(typeOf(value).getRank(), 0), high(low);
  for (auto [dim, padDim] : llvm::zip_equal(dims, padDims)) {
    low[dim] = pad.getLow()[padDim];
    high[dim] = pad.getHigh()[padDim];
  }
  auto padded = PadOp::create(builder, op->getLoc(), value, Value(), low, high, PadMode::Constant);
  op->getResult(0).replaceAllUsesWith(padded);
  // Several operands may be the same.
  llvm::SmallSetVector<PadOp, 4> pads;
  for (Value operand : op->getOperands())
    if (auto own = operand.getDefiningOp<PadOp>())
      pads.insert(own);
  op->erase();
  for (PadOp unused : pads)
    if (unused->use_empty())
      unused->erase();
}

static bool isExtended(PadOp pad, int64_t dim) {
  return std::min(pad.getLow()[dim], pad.getHigh()[dim]) >= 0 && std::max(pad.getLow()[dim], pad.getHigh()[dim]) > 0;
}

static void sinkBelow(SplitOpInterface op) {
  if (op->getNumResults() != 1 || op.isCheapElement() || op.getLoopShardings())
    return;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    PadOp pad = getZeroPad(operand, op);
    // What a product with infinity would be is known where factors are constants.
    bool isAlone = llvm::all_of(llvm::enumerate(op->getOperands()), [&, number = number](auto other) {
      return other.index() == number || (other.value() != operand && isConstantOnly(other.value()));
    });
    if (!pad || !isAlone || !op.isLinearIn(static_cast<unsigned>(number)))
      continue;
    Definition definition = op.getDefinition();
    SmallVector<int64_t> loops, dims, shape(shapeOf(op->getResult(0)));
    for (unsigned loop = 0; loop < definition.resultRank; ++loop) {
      std::optional<SmallVector<int64_t>> found = findPlainDims(op, definition, loop);
      if (!found || (*found)[number] < 0 || !isExtended(pad, (*found)[number]) ||
          llvm::count_if(*found, [](int64_t dim) { return dim >= 0; }) != 1)
        continue;
      loops.push_back(loop);
      dims.push_back((*found)[number]);
      shape[loop] = shapeOf(pad.getOperand())[dims.back()];
    }
    if (loops.empty())
      continue;
    OpBuilder builder(op);
    SmallVector<Value> operands(op->getOperands());
    operands[number] = padOthers(builder, pad, dims);
    Operation *copy = cloneOn(builder, op, operands, shape);
    if (!copy) {
      if (operands[number] != pad.getOperand())
        operands[number].getDefiningOp()->erase();
      continue;
    }
    replacePadded(builder, op, copy->getResult(0), loops, pad, dims);
    return;
  }
}

static void sinkBelowConcat(ConcatOp op) {
  SmallVector<PadOp> pads;
  for (Value input : op.getInputs()) {
    pads.push_back(getZeroPad(input, op));
    if (!pads.back())
      return;
  }
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, rank = op.getType().getRank(); dim < rank; ++dim) {
    auto isAlike = [&](PadOp pad) {
      return pad.getLow()[dim] == pads.front().getLow()[dim] && pad.getHigh()[dim] == pads.front().getHigh()[dim];
    };
    if (dim != static_cast<int64_t>(op.getAxis()) && isExtended(pads.front(), dim) && llvm::all_of(pads, isAlike))
      dims.push_back(dim);
  }
  if (dims.empty())
    return;
  OpBuilder builder(op);
  SmallVector<Value> inputs = llvm::map_to_vector(pads, [&](PadOp pad) { return padOthers(builder, pad, dims); });
  auto concat = ConcatOp::create(builder, withoutTensorName(op.getLoc()), inputs, op.getAxis());
  replacePadded(builder, op, concat, dims, pads.front(), dims);
}

namespace {
struct SinkPads : dovetail::impl::SinkPadsBase<SinkPads> {
  void runOnOperation() override {
    if (failed(requireUnsharded(getOperation())))
      return signalPassFailure();
    // In order, so that pads go down as far as they may.
    SmallVector<SplitOpInterface> ops;
    getOperation()->walk([&](SplitOpInterface op) {
      if (!isa<PadOp>(op))
        ops.push_back(op);
    });
    for (SplitOpInterface op : ops) {
      if (auto concat = dyn_cast<ConcatOp>(op.getOperation()))
        sinkBelowConcat(concat);
      else
        sinkBelow(op);
    }
  }
};
} // namespace
