//===- FormIntegerProducts.cpp - Products of integers of 8 bits -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information. SPDX-License-Identifier:
// Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes products of integers of 8 bits of products of what was extended from
// these, less zero points.
//
//===----------------------------------------------------------------------===//

#include "IntegerFactors.h"
#include "dovetail/Calls/CallForm.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMINTEGERPRODUCTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
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
  FactorValues withSign(FactorValues factor);
  /// The same with integers that have none.
  FactorValues withoutSign(FactorValues factor);
  /// The sums of `integers` over `dims`, which are kept with extent 1.
  Value sum(Value integers, ArrayRef<int64_t> dims) {
    Value wide = CastOp::create(builder, loc, integers, builder.getI32Type());
    return ReduceOp::create(builder, loc, wide, ReduceKind::Sum, dims);
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

FactorValues IntegerBuilder::withSign(FactorValues factor) {
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

/// Of two factors with signs, oneDNN 2.6 corrects sums by way of f32, which rounds them, or not at all in some
/// implementations; with AMX alone it has nothing to correct.
FactorValues IntegerBuilder::withoutSign(FactorValues factor) {
  if (typeOf(factor.integers).getElementType().isUnsignedInteger())
    return factor;
  // 128 more, which is all that the first bit says.
  Type u8 = builder.getIntegerType(8, /*isSigned=*/false), i32 = builder.getI32Type();
  Value bits = BitCastOp::create(builder, loc, factor.integers, u8);
  factor.integers = AddOp::create(builder, loc, bits, constant(u8, 128));
  std::optional<double> number = factor.zero ? getSplat(factor.zero) : 0.0;
  if (number == -128.0)
    factor.zero = {};
  else
    factor.zero = number ? constant(i32, static_cast<int64_t>(*number) + 128)
                         : AddOp::create(builder, loc, factor.zero, constant(i32, 128)).getResult();
  return factor;
}

/// Whether a zero point, if there is one, is the same all along dimension `dim`
/// of `of`.
static bool isAlike(const Factor &factor, int64_t dim) {
  if (!factor.zero || factor.number)
    return true;
  int64_t own = dim - factor.integers.getRank() + factor.zero->getRank();
  return own < 0 || factor.zero->getShape()[own] == 1;
}

/// The integers of `factor` have a sign already or, once they have one, no zero
/// point.
static bool hasNoZeroWithSign(const Factor &factor) {
  return factor.isUnsigned() ? factor.number == 128.0 : !factor.zero;
}

/// What `product` is of these factors, in i32; null if it stays as it is.
///
/// The sum of (x - zx) * (w - zw) is that of x * w, less zx times the sum of w
/// - zw, less zw times the sum of x.
static Value formProduct(MatMulOp product, const Factor &first, const Factor &second, OpBuilder &builder) {
  int64_t terms = first.integers.getRank() - 1, rows = second.integers.getRank() - 2;
  if (!isAlike(first, terms) || !isAlike(second, rows))
    return {};
  IntegerBuilder build(builder, product.getLoc());
  FactorValues x = build.withoutSign(first.materialize(builder, product.getLoc()));
  FactorValues w = build.withSign(second.materialize(builder, product.getLoc()));
  auto formed = MatMulOp::create(builder, product.getLoc(), x.integers, w.integers);
  formed->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  Value result = formed;
  if (x.zero) {
    Value sums = build.sum(w.integers, rows);
    if (w.zero)
      sums = build.sub(sums, build.mul(w.zero, build.constant(builder.getI32Type(), shapeOf(x.integers).back())));
    result = build.sub(result, build.mul(x.zero, sums));
  }
  if (w.zero)
    result = build.sub(result, build.mul(build.sum(x.integers, terms), w.zero));
  return result;
}

/// Whether there is one zero point for all of `factor`, which is known to be an element of the type of its integers.
static bool hasZeroElement(const Factor &factor) {
  return hasZeroElements(factor) && (factor.number || getNarrowZero(factor));
}

/// As `formProduct`. Pads are 0 after the zero point has been subtracted:
/// before, they are the zero point.
static Value formProduct(ConvOp conv, const Factor &first, const Factor &second, OpBuilder &builder) {
  int64_t rank = conv.getType().getRank();
  for (int64_t dim = 1; dim < rank; ++dim)
    if (!isAlike(second, dim))
      return {};
  // What a group reads is added up once, for all of its results.
  if ((first.zero && !hasZeroElement(first)) || (conv.getGroups() != 1 && !hasNoZeroWithSign(second)))
    return {};
  IntegerBuilder build(builder, conv.getLoc());
  FactorValues x = first.materialize(builder, conv.getLoc());
  FactorValues w = build.withSign(second.materialize(builder, conv.getLoc()));

  SmallVector<int64_t> low(conv.getPadsLow()), high(conv.getPadsHigh());
  auto isPad = [](int64_t pad) { return pad != 0; };
  bool hasZero = x.zero || !first.isUnsigned();
  // Libraries may take long sums through f32 where windows reach beyond the border.
  bool isLong = ShapedType::getNumElements(shapeOf(w.integers).drop_front()) > calls::mostExactTerms;
  if ((hasZero || isLong) && (llvm::any_of(low, isPad) || llvm::any_of(high, isPad))) {
    SmallVector<int64_t> before(2, 0), after(2, 0);
    llvm::append_range(before, low);
    llvm::append_range(after, high);
    Type type = typeOf(x.integers).getElementType();
    Value padding;
    if (std::optional<double> number = first.zero ? first.number : 0.0)
      padding = build.constant(type, static_cast<int64_t>(*number));
    else
      padding = reshapeTo(builder, conv.getLoc(), getNarrowZero(first), {});
    x.integers = PadOp::create(builder, conv.getLoc(), x.integers, padding, before, after, PadMode::Constant);
    low.assign(low.size(), 0);
    high.assign(high.size(), 0);
  }
  x = build.withoutSign(x);
  auto convolve = [&](Value weights) {
    return ConvOp::create(builder, conv.getLoc(), x.integers, weights, conv.getStrides(), conv.getDilations(), low,
                          high, conv.getGroups());
  };
  ConvOp formed = convolve(w.integers);
  formed->setDiscardableAttrs(conv->getDiscardableAttrDictionary());
  Value result = formed;
  // A number for each output channel, or one for all of them.
  auto perChannel = [&](Value value) {
    SmallVector<int64_t> shape(rank, 1);
    shape[1] = typeOf(value).getNumElements();
    return reshapeTo(builder, conv.getLoc(), value, shape);
  };
  ArrayRef<int64_t> weights = shapeOf(w.integers);
  if (x.zero) {
    Value sums = perChannel(build.sum(w.integers, llvm::to_vector(llvm::seq<int64_t>(1, rank))));
    if (w.zero) {
      int64_t terms = ShapedType::getNumElements(weights.drop_front());
      sums = build.sub(sums, build.mul(perChannel(w.zero), build.constant(builder.getI32Type(), terms)));
    }
    result = build.sub(result, build.mul(perChannel(x.zero), sums));
  }
  if (w.zero) {
    SmallVector<int64_t> shape(weights);
    shape[0] = 1;
    auto type = RankedTensorType::get(shape, builder.getI8Type());
    Value ones = ConstantOp::create(builder, conv.getLoc(), DenseElementsAttr::get(type, APInt(8, 1)));
    result = build.sub(result, build.mul(convolve(ones), perChannel(w.zero)));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Dequantised factors
//===----------------------------------------------------------------------===//

namespace {
/// `scale * (integers - zero)`, in f32, of a constant scale.
struct ScaledFactor {
  Factor factor;
  std::optional<MovedValue> scale; ///< None if it is 1.
};
} // namespace

/// `value` as a scaled factor whose scale is one number or, unless `channel` is
/// -1, one for each index of that dimension, and whose zero point is constant;
/// none if it is no such. Each step that dequantises may be moved.
static std::optional<ScaledFactor> findScaledFactor(Value value, int64_t channel) {
  Moves moves;
  std::optional<MovedValue> scale;
  value = skipMoves(value, moves);
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (mul.getLhs().getType() != mul.getType() || !isConstantOnly(mul.getRhs()))
      return std::nullopt;
    scale = MovedValue::create(mul.getRhs(), moves);
    if (!scale)
      return std::nullopt;
    value = skipMoves(mul.getLhs(), moves);
  }
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast)
    return std::nullopt;
  // Without a zero point, one cast extends them.
  std::optional<Factor> factor;
  if (!isNarrowInteger(cast.getOperand().getType().getElementType()))
    factor = findFactor(cast.getOperand(), moves);
  else if (std::optional<MovedValue> integers = MovedValue::create(cast.getOperand(), moves))
    factor = Factor{std::move(*integers), /*zero=*/std::nullopt, /*number=*/std::nullopt};
  if (!factor)
    return std::nullopt;
  // Further away, differences are no numbers of 9 bits, and f32 does not have all sums of them.
  if (factor->zero && (!isConstantOnly(factor->zero->getSource()) || !hasZeroElements(*factor)))
    return std::nullopt;
  if (scale && scale->getNumElements() != 1) {
    int64_t dim = factor->integers.getRank() - scale->getRank();
    for (int64_t extent : scale->getShape())
      if (dim++ != channel && extent != 1)
        return std::nullopt;
  }
  return ScaledFactor{std::move(*factor), std::move(scale)};
}

/// The dimension of the second operand that is one of the result, and the
/// latter.
static std::pair<int64_t, int64_t> getChannelDims(MatMulOp op) {
  return {typeOf(op.getRhs()).getRank() - 1, op.getType().getRank() - 1};
}
static std::pair<int64_t, int64_t> getChannelDims(ConvOp) { return {0, 1}; }

/// How many terms each sum has.
static int64_t countTerms(MatMulOp op) { return shapeOf(op.getLhs()).back(); }
static int64_t countTerms(ConvOp op) { return ShapedType::getNumElements(shapeOf(op.getWeights()).drop_front()); }

/// Whether products of constant scales, one of which is one number, are as precise as what they scale one by one: all
/// are numbers, of a size that neither they nor dequantised integers leave the range of normal ones.
static bool areMultiplied(const std::optional<MovedValue> &x, const std::optional<MovedValue> &w) {
  auto getNumbers = [](const std::optional<MovedValue> &scale) -> std::optional<SmallVector<double>> {
    if (!scale)
      return SmallVector<double>{1};
    return getFloats(skipMoves(scale->getSource()));
  };
  std::optional<SmallVector<double>> first = getNumbers(x), second = getNumbers(w);
  if (!first || !second)
    return false;
  constexpr double least = 0x1p-100, most = 0x1p100;
  auto isModerate = [&](double number) { return std::abs(number) >= least && std::abs(number) <= most; };
  if (!llvm::all_of(*first, isModerate) || !llvm::all_of(*second, isModerate))
    return false;
  return llvm::all_of(*first,
                      [&](double a) { return llvm::all_of(*second, [&](double b) { return isModerate(a * b); }); });
}

/// Of dequantised factors: the product of integers, times both scales.
template <typename OpT> static LogicalResult formScaledProduct(OpT op, PatternRewriter &rewriter) {
  // Less zero points, factors are below 256: sums of no more terms do not wrap
  // around.
  constexpr int64_t mostTerms = int64_t(1) << 15;
  Location loc = op.getLoc();
  auto [channel, resultChannel] = getChannelDims(op);
  std::optional<ScaledFactor> x = findScaledFactor(op->getOperand(0),
                                                   /*channel=*/-1),
                              w = findScaledFactor(op->getOperand(1), channel);
  if (!x || !w || countTerms(op) > mostTerms || !areMultiplied(x->scale, w->scale))
    return failure();
  Value sums = formProduct(op, x->factor, w->factor, rewriter);
  if (!sums)
    return failure();
  auto reshape = [&](Value scale) {
    SmallVector<int64_t> shape;
    if (typeOf(scale).getNumElements() != 1) {
      shape.assign(op.getType().getRank(), 1);
      shape[resultChannel] = typeOf(scale).getNumElements();
    }
    return reshapeTo(rewriter, loc, scale, shape);
  };
  Value scale;
  for (const std::optional<MovedValue> &each : {x->scale, w->scale})
    if (each) {
      Value moved = reshape(each->materialize(rewriter, loc));
      scale = scale ? MulOp::create(rewriter, loc, scale, moved).getResult() : moved;
    }
  Value result = CastOp::create(rewriter, loc, sums, rewriter.getF32Type());
  if (scale)
    result = MulOp::create(rewriter, loc, result, scale);
  rewriter.replaceOp(op, result);
  return success();
}

template <typename OpT> static LogicalResult form(OpT op, PatternRewriter &rewriter) {
  Type type = op.getType().getElementType();
  if (type.isF32())
    return formScaledProduct(op, rewriter);
  std::optional<Factor> x = findFactor(op->getOperand(0)), w = findFactor(op->getOperand(1));
  Value result = type.isSignlessInteger(32) && x && w ? formProduct(op, *x, *w, rewriter) : Value();
  if (!result)
    return failure();
  rewriter.replaceOp(op, result);
  return success();
}

namespace {
struct FormIntegerProducts : dovetail::impl::FormIntegerProductsBase<FormIntegerProducts> {
  void runOnOperation() override {
    extendConstants(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add(form<MatMulOp>);
    patterns.add(form<ConvOp>);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
