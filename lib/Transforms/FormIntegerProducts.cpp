//===- FormIntegerProducts.cpp - Products of integers of 8 bits -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes products of integers of 8 bits of products of what was extended from these, less zero points.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMINTEGERPRODUCTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// `integers - zero`, in i32.
struct Factor {
  Value integers; ///< Of 8 bits.
  Value zero;     ///< Of i32, and broadcasts to `integers`; null if it is 0.
};

/// Creates what i32 arithmetic at one place needs.
class IntegerBuilder {
public:
  IntegerBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  /// A number of `elementType`, of rank 0.
  Value constant(Type elementType, int64_t number) {
    APInt bits = APInt(64, number, /*isSigned=*/true).trunc(elementType.getIntOrFloatBitWidth());
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, elementType), bits));
  }
  Value sub(Value a, Value b) { return SubOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return MulOp::create(builder, loc, a, b); }
  /// `factor` with integers that have a sign.
  Factor withSign(Factor factor);
  /// The sums of `integers` over `dims`, which are kept with extent 1.
  Value sum(Value integers, ArrayRef<int64_t> dims) {
    Value wide = CastOp::create(builder, loc, integers, builder.getI32Type());
    return ReduceOp::create(builder, loc, wide, ReduceKind::Sum, dims);
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

/// Whether all elements of `value`, of integers, are known to be 0.
static bool isZero(Value value) {
  while (isa_and_present<CastOp, ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return getSplat(value) == 0.0;
}

/// `value`, of i32, as a factor; none if it is no such.
static std::optional<Factor> findFactor(Value value) {
  Factor factor;
  if (auto sub = value.getDefiningOp<SubOp>(); sub && sub.getLhs().getType() == value.getType()) {
    value = sub.getLhs();
    if (!isZero(sub.getRhs()))
      factor.zero = sub.getRhs();
  }
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !cast.getOperand().getType().getElementType().isInteger(8))
    return std::nullopt;
  factor.integers = cast.getOperand();
  return factor;
}

Factor IntegerBuilder::withSign(Factor factor) {
  Type type = typeOf(factor.integers).getElementType();
  if (!type.isUnsignedInteger())
    return factor;
  // 128 less, which is all that the first bit says.
  Type i8 = builder.getI8Type(), i32 = builder.getI32Type();
  factor.integers = BitCastOp::create(builder, loc, sub(factor.integers, constant(type, 128)), i8);
  if (!factor.zero)
    factor.zero = constant(i32, -128);
  else if (std::optional<double> number = getSplat(factor.zero); number == 128.0)
    factor.zero = {};
  else
    factor.zero = sub(factor.zero, constant(i32, 128));
  return factor;
}

/// Whether a zero point, if there is one, is the same all along dimension `dim` of `of`.
static bool isAlike(const Factor &factor, int64_t dim) {
  if (!factor.zero)
    return true;
  int64_t own = dim - typeOf(factor.integers).getRank() + typeOf(factor.zero).getRank();
  return own < 0 || shapeOf(factor.zero)[own] == 1;
}

/// The sum of (x - zx) * (w - zw) is that of x * w, less zx times the sum of w - zw, less zw times the sum of x.
static LogicalResult formProduct(MatMulOp product, PatternRewriter &rewriter) {
  if (!product.getType().getElementType().isSignlessInteger(32))
    return failure();
  std::optional<Factor> x = findFactor(product.getLhs()), w = findFactor(product.getRhs());
  if (!x || !w)
    return failure();
  int64_t terms = typeOf(x->integers).getRank() - 1, rows = typeOf(w->integers).getRank() - 2;
  if (!isAlike(*x, terms) || !isAlike(*w, rows))
    return failure();
  IntegerBuilder build(rewriter, product.getLoc());
  w = build.withSign(*w);
  auto formed = MatMulOp::create(rewriter, product.getLoc(), x->integers, w->integers);
  formed->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  Value result = formed;
  if (x->zero) {
    Value sums = build.sum(w->integers, rows);
    if (w->zero)
      sums = build.sub(sums, build.mul(w->zero, build.constant(rewriter.getI32Type(), shapeOf(x->integers).back())));
    result = build.sub(result, build.mul(x->zero, sums));
  }
  if (w->zero)
    result = build.sub(result, build.mul(build.sum(x->integers, terms), w->zero));
  rewriter.replaceOp(product, result);
  return success();
}

/// A zero point of `factor` that is one number, as an element of its integers; null if it is no such.
static Value getZeroElement(IntegerBuilder &build, const Factor &factor) {
  Type type = typeOf(factor.integers).getElementType();
  if (std::optional<double> number = getSplat(factor.zero)) {
    double least = type.isUnsignedInteger() ? 0 : -128;
    return *number >= least && *number <= least + 255 ? build.constant(type, static_cast<int64_t>(*number)) : Value();
  }
  auto cast = factor.zero.getDefiningOp<CastOp>();
  if (!cast || typeOf(cast).getNumElements() != 1 || cast.getOperand().getType().getElementType() != type)
    return {};
  return reshapeTo(build.builder, build.loc, cast.getOperand(), {});
}

/// As `formProduct`. Pads are 0 after the zero point has been subtracted: before, they are the zero point.
static LogicalResult formConvolution(ConvOp conv, PatternRewriter &rewriter) {
  if (!conv.getType().getElementType().isSignlessInteger(32))
    return failure();
  std::optional<Factor> x = findFactor(conv.getInput()), w = findFactor(conv.getWeights());
  if (!x || !w)
    return failure();
  int64_t rank = conv.getType().getRank();
  for (int64_t dim = 1; dim < rank; ++dim)
    if (!isAlike(*w, dim))
      return failure();
  IntegerBuilder build(rewriter, conv.getLoc());
  Value padding = x->zero ? getZeroElement(build, *x) : Value();
  if (x->zero && !padding)
    return failure();
  w = build.withSign(*w);
  // What a group reads is added up once, for all of its results.
  if (w->zero && conv.getGroups() != 1)
    return failure();

  SmallVector<int64_t> low(conv.getPadsLow()), high(conv.getPadsHigh());
  auto isPad = [](int64_t pad) { return pad != 0; };
  Value input = x->integers;
  if (x->zero && (llvm::any_of(low, isPad) || llvm::any_of(high, isPad))) {
    SmallVector<int64_t> before(2, 0), after(2, 0);
    llvm::append_range(before, low);
    llvm::append_range(after, high);
    input = PadOp::create(rewriter, conv.getLoc(), input, padding, before, after, PadMode::Constant);
    low.assign(low.size(), 0);
    high.assign(high.size(), 0);
  }
  auto convolve = [&](Value weights) {
    return ConvOp::create(rewriter, conv.getLoc(), input, weights, conv.getStrides(), conv.getDilations(), low, high,
                          conv.getGroups());
  };
  ConvOp formed = convolve(w->integers);
  formed->setDiscardableAttrs(conv->getDiscardableAttrDictionary());
  Value result = formed;
  // A number for each output channel, or one for all of them.
  auto perChannel = [&](Value value) {
    SmallVector<int64_t> shape(rank, 1);
    shape[1] = typeOf(value).getNumElements();
    return reshapeTo(rewriter, conv.getLoc(), value, shape);
  };
  ArrayRef<int64_t> weights = shapeOf(w->integers);
  if (x->zero) {
    Value sums = perChannel(build.sum(w->integers, llvm::to_vector(llvm::seq<int64_t>(1, rank))));
    if (w->zero) {
      int64_t terms = ShapedType::getNumElements(weights.drop_front());
      sums = build.sub(sums, build.mul(perChannel(w->zero), build.constant(rewriter.getI32Type(), terms)));
    }
    result = build.sub(result, build.mul(perChannel(x->zero), sums));
  }
  if (w->zero) {
    SmallVector<int64_t> shape(weights);
    shape[0] = 1;
    auto type = RankedTensorType::get(shape, rewriter.getI8Type());
    Value ones = ConstantOp::create(rewriter, conv.getLoc(), DenseElementsAttr::get(type, APInt(8, 1)));
    result = build.sub(result, build.mul(convolve(ones), perChannel(w->zero)));
  }
  rewriter.replaceOp(conv, result);
  return success();
}

namespace {
struct FormIntegerProducts : dovetail::impl::FormIntegerProductsBase<FormIntegerProducts> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(formProduct);
    patterns.add(formConvolution);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
