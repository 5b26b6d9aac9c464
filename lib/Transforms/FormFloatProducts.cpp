//===- FormFloatProducts.cpp - Products of integers of 8 bits in f32 ------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes products in f32 of products of what was extended from integers of 8 bits, in parts whose sums f32 holds.
//
//===----------------------------------------------------------------------===//

#include "IntegerFactors.h"
#include "dovetail/Calls/ConvolutionAlgorithms.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMFLOATPRODUCTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// f32 has all integers up to this size, so that sums of no larger ones are exact in any order.
static constexpr int64_t mostExact = int64_t(1) << 24;
/// Each part writes a result that is read again.
static constexpr size_t mostParts = 16;

/// The largest size that elements of `factor` may have; none if they may be more than the difference of two integers of
/// 8 bits.
static std::optional<int64_t> getLargest(const Factor &factor) {
  int64_t least = factor.isUnsigned() ? 0 : -128, largest = least + 255;
  if (factor.zero) {
    if (!hasZeroElements(factor))
      return std::nullopt;
    if (!factor.number)
      return 255;
    least -= static_cast<int64_t>(*factor.number);
    largest -= static_cast<int64_t>(*factor.number);
  }
  return std::max(-least, largest);
}

/// How many products of elements of both factors are exact when they are summed up in f32; none if that is not known.
static std::optional<int64_t> getMostTerms(Operation *op) {
  std::optional<Factor> x = findFactor(op->getOperand(0)), w = findFactor(op->getOperand(1));
  std::optional<int64_t> first = x ? getLargest(*x) : std::nullopt, second = w ? getLargest(*w) : std::nullopt;
  if (!first || !second)
    return std::nullopt;
  return mostExact / std::max<int64_t>(*first * *second, 1);
}

/// Ranges of at most `most` coordinates that cover `extent`; where there are several, of whole vectors if these can be.
static SmallVector<std::pair<int64_t, int64_t>> cut(int64_t extent, int64_t most) {
  constexpr int64_t vector = 16;
  int64_t size = extent;
  if (extent > most) {
    int64_t step = most >= vector ? vector : 1;
    size = llvm::alignTo(llvm::divideCeil(extent, llvm::divideCeil(extent, most - most % step)), step);
  }
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t lo = 0; lo < extent; lo += size)
    ranges.push_back({lo, std::min(lo + size, extent)});
  return ranges;
}

namespace {
/// What a part of a product reads along one dimension.
struct Extent {
  int64_t dim, lo, hi;
};

/// Creates a product in parts.
class PartBuilder {
public:
  PartBuilder(Operation *op, PatternRewriter &rewriter) : op(op), rewriter(rewriter) {}

  /// Elements of operand `number` in f32.
  Value getPart(unsigned number, ArrayRef<Extent> ranges) {
    Value value = op->getOperand(number);
    SmallVector<int64_t> starts(typeOf(value).getRank(), 0), sizes(shapeOf(value)), steps(starts.size(), 1);
    for (Extent range : ranges) {
      starts[range.dim] = range.lo;
      sizes[range.dim] = range.hi - range.lo;
    }
    if (ArrayRef<int64_t>(sizes) != shapeOf(value))
      value = SliceOp::create(rewriter, op->getLoc(), value, starts, sizes, steps);
    return CastOp::create(rewriter, op->getLoc(), value, rewriter.getF32Type());
  }
  /// Adds `part`, a product in f32.
  void add(Operation *part) {
    part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    Value integers = CastOp::create(rewriter, op->getLoc(), part->getResult(0), rewriter.getI32Type());
    sum = sum ? AddOp::create(rewriter, op->getLoc(), sum, integers).getResult() : integers;
  }

  Operation *op;
  PatternRewriter &rewriter;
  Value sum;
};

/// What a part of a convolution multiplies: rows of its windows, and channels. Of what it reads it has rows [lo, hi),
/// and pads.
struct WindowPart {
  Extent rows, channels;
  int64_t lo, hi, padLow, padHigh;
};
} // namespace

static LogicalResult form(MatMulOp op, PatternRewriter &rewriter) {
  std::optional<int64_t> most = op.getType().getElementType().isSignlessInteger(32) ? getMostTerms(op) : std::nullopt;
  int64_t terms = typeOf(op.getLhs()).getRank() - 1, rows = typeOf(op.getRhs()).getRank() - 2;
  if (!most || rows < 0 || shapeOf(op.getLhs())[terms] == 0)
    return failure();
  auto ranges = cut(shapeOf(op.getLhs())[terms], *most);
  if (ranges.size() > mostParts)
    return failure();
  PartBuilder parts(op, rewriter);
  for (auto [lo, hi] : ranges) {
    Value x = parts.getPart(0, Extent{terms, lo, hi}), w = parts.getPart(1, Extent{rows, lo, hi});
    parts.add(MatMulOp::create(rewriter, op.getLoc(), x, w));
  }
  rewriter.replaceOp(op, parts.sum);
  return success();
}

/// Whether an algorithm whose steps round may do a convolution with `rows` rows of the windows of `op`.
static bool mayRound(ConvOp op, int64_t rows) {
  std::optional<CallForm> form = classify(op);
  if (!form || rows == 0)
    return false;
  auto convolution = std::get<calls::ConvolutionForm>(*form);
  convolution.windows.front().kernel = rows;
  return calls::mayRound(convolution);
}

/// The parts of a convolution of at most `most` terms each; none if there are too many.
static SmallVector<WindowPart> cutWindows(ConvOp op, int64_t most) {
  ArrayRef<int64_t> weights = shapeOf(op.getWeights());
  int64_t channels = weights[1], window = weights[2], row = ShapedType::getNumElements(weights.drop_front(3));
  if (channels == 0 || window == 0 || row == 0 || op.getType().getNumElements() == 0)
    return {};
  int64_t rows = std::min(window, most / (row * channels));
  while (rows > 0 && (mayRound(op, rows) || mayRound(op, window % rows)))
    --rows;
  int64_t width = rows > 0 ? channels : most / row;
  if (width == 0 || (width < channels && op.getGroups() != 1))
    return {};
  int64_t extent = shapeOf(op.getInput())[2], last = op.getType().getDimSize(2) - 1;
  int64_t stride = op.getStrides()[0], dilation = op.getDilations()[0];
  SmallVector<WindowPart> parts;
  for (int64_t first = 0, step = std::max<int64_t>(rows, 1); first < window; first += step) {
    int64_t end = std::min(first + step, window);
    // What windows read of these rows, of which there is padding alone beyond the input.
    int64_t lo = first * dilation - op.getPadsLow()[0], hi = lo + last * stride + (end - 1 - first) * dilation + 1;
    if (hi <= 0 || lo >= extent)
      continue;
    for (auto [from, to] : cut(channels, width))
      parts.push_back({{2, first, end},
                       {1, from, to},
                       std::max<int64_t>(lo, 0),
                       std::min(hi, extent),
                       std::max<int64_t>(-lo, 0),
                       std::max<int64_t>(hi - extent, 0)});
  }
  if (parts.size() > mostParts)
    parts.clear();
  return parts;
}

static LogicalResult form(ConvOp op, PatternRewriter &rewriter) {
  std::optional<int64_t> most = op.getType().getElementType().isSignlessInteger(32) ? getMostTerms(op) : std::nullopt;
  SmallVector<WindowPart> windows =
      most && op.getType().getRank() > 2 ? cutWindows(op, *most) : SmallVector<WindowPart>();
  if (windows.empty())
    return failure();
  PartBuilder parts(op, rewriter);
  for (const WindowPart &part : windows) {
    SmallVector<Extent> read = {Extent{2, part.lo, part.hi}};
    if (op.getGroups() == 1)
      read.push_back(part.channels);
    Value x = parts.getPart(0, read), w = parts.getPart(1, {part.rows, part.channels});
    SmallVector<int64_t> low(op.getPadsLow()), high(op.getPadsHigh());
    low[0] = part.padLow;
    high[0] = part.padHigh;
    parts.add(
        ConvOp::create(rewriter, op.getLoc(), x, w, op.getStrides(), op.getDilations(), low, high, op.getGroups()));
  }
  rewriter.replaceOp(op, parts.sum);
  return success();
}

namespace {
struct FormFloatProducts : dovetail::impl::FormFloatProductsBase<FormFloatProducts> {
  void runOnOperation() override {
    extendConstants(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add(+[](MatMulOp op, PatternRewriter &rewriter) { return form(op, rewriter); });
    patterns.add(+[](ConvOp op, PatternRewriter &rewriter) { return form(op, rewriter); });
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
