//===- RecognizeNorms.cpp - Normalisations that are spelt out -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises layer, group and instance normalisation that exporters write as several operations, and the scale and bias
// that follow them.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_RECOGNIZENORMS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

static int64_t countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

//===----------------------------------------------------------------------===//
// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)
//===----------------------------------------------------------------------===//

namespace {
/// The mean of `operand` over `axes`, which are kept with extent 1.
struct Mean {
  Value operand;
  ArrayRef<int64_t> axes;

  bool operator==(const Mean &other) const { return operand == other.operand && axes == other.axes; }
};

/// What is normalised, by a deviation of `operand` from its mean over `axes`.
struct Normalisation {
  Value operand;
  SmallVector<int64_t> axes;
  double epsilon;
};
} // namespace

static std::optional<Mean> getMean(Value value) {
  Product product = getProduct(value);
  auto sum = product.factors.size() == 1 ? product.factors[0].getDefiningOp<ReduceOp>() : ReduceOp();
  if (!sum || sum.getKind() != ReduceKind::Sum || sum.getType() != value.getType())
    return std::nullopt;
  int64_t count = 1;
  for (int64_t axis : sum.getAxes())
    count *= shapeOf(sum.getOperand())[axis];
  if (count == 0 || !isClose(product.constant, 1.0 / static_cast<double>(count), sum.getType().getElementType()))
    return std::nullopt;
  return Mean{sum.getOperand(), sum.getAxes()};
}

/// The mean that is subtracted from its own operand.
static std::optional<Mean> getDeviation(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  std::optional<Mean> mean = sub ? getMean(sub.getRhs()) : std::nullopt;
  return mean && mean->operand == sub.getLhs() ? mean : std::nullopt;
}

/// The value of which `value` is the square.
static Value getSquared(Value value) {
  Product product = getProduct(value);
  return product.constant == 1 && product.factors.size() == 2 && product.factors[0] == product.factors[1]
             ? product.factors[0]
             : Value();
}

/// The x of which `value` is the reciprocal root: 1 / sqrt(x), rsqrt(x), x^-0.5.
static Value getReciprocalRootOperand(Value value) {
  if (auto rsqrt = value.getDefiningOp<RsqrtOp>())
    return rsqrt.getOperand();
  if (auto pow = value.getDefiningOp<PowOp>())
    return getSplat(pow.getRhs()) == -0.5 ? pow.getLhs() : Value();
  Value root;
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    root = reciprocal.getOperand();
  else if (auto div = value.getDefiningOp<DivOp>(); div && getSplat(div.getLhs()) == 1.0)
    root = div.getRhs();
  auto sqrt = root ? root.getDefiningOp<SqrtOp>() : SqrtOp();
  return sqrt ? sqrt.getOperand() : Value();
}

/// Reads `deviation / sqrt(shifted)`.
static std::optional<Normalisation> getNormalisation(Operation *op, Value deviation, Value shifted) {
  std::optional<Mean> mean = getDeviation(deviation);
  auto add = shifted ? shifted.getDefiningOp<AddOp>() : AddOp();
  if (!mean || !add)
    return std::nullopt;
  for (Value variance : {add.getLhs(), add.getRhs()}) {
    std::optional<double> epsilon = getSplat(getOther(add, variance));
    std::optional<Mean> square = getMean(variance);
    if (!epsilon || !square || variance.getType() != add.getType())
      continue;
    // The attribute is an f32.
    bool fits = !typeOf(deviation).getElementType().isF64() || static_cast<float>(*epsilon) == *epsilon;
    Value squared = getSquared(square->operand);
    if (!fits || !(*epsilon >= 0) || !squared || square->axes != mean->axes)
      continue;
    if (squared != deviation && getDeviation(squared) != mean)
      continue;
    // A deviation that something else reads would be computed twice.
    auto isExpected = [&](Operation *user) { return user == op || user == square->operand.getDefiningOp(); };
    if (!llvm::all_of(deviation.getUsers(), isExpected))
      return std::nullopt;
    return Normalisation{mean->operand, llvm::to_vector(mean->axes), *epsilon};
  }
  return std::nullopt;
}

/// The normalisation that `op` completes.
static std::optional<Normalisation> getNormalisation(Operation *op) {
  if (auto div = dyn_cast<DivOp>(op)) {
    auto sqrt = div.getRhs().getDefiningOp<SqrtOp>();
    return sqrt ? getNormalisation(op, div.getLhs(), sqrt.getOperand()) : std::nullopt;
  }
  auto mul = cast<MulOp>(op);
  for (Value deviation : {mul.getLhs(), mul.getRhs()})
    if (Value shifted = getReciprocalRootOperand(getOther(mul, deviation)))
      if (auto normalisation = getNormalisation(op, deviation, shifted))
        return normalisation;
  return std::nullopt;
}

static LogicalResult recognizeNormalisation(Operation *op, PatternRewriter &rewriter) {
  std::optional<Normalisation> norm = getNormalisation(op);
  if (!norm || norm->operand.getType() != op->getResult(0).getType())
    return failure();
  ArrayRef<int64_t> axes = norm->axes;
  int64_t rank = typeOf(norm->operand).getRank();
  // Trailing dimensions only.
  if (axes.empty() || !llvm::equal(axes, llvm::seq<int64_t>(axes.front(), rank)))
    return failure();
  APFloat epsilon(static_cast<float>(norm->epsilon));
  // Over all spatial dimensions of an image or a volume it is an instance normalisation.
  if (axes.front() == 2 && rank >= 4 && shapeOf(norm->operand)[1] > 0)
    rewriter.replaceOpWithNewOp<GroupNormOp>(op, norm->operand, Value(), Value(), shapeOf(norm->operand)[1], epsilon);
  else
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, norm->operand, Value(), Value(), axes.front(), epsilon);
  return success();
}

namespace {
/// A pattern on the last operation of a normalisation.
struct RecognizeNormalisation : RewritePattern {
  RecognizeNormalisation(MLIRContext *context, StringRef name) : RewritePattern(name, /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return recognizeNormalisation(op, rewriter);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Group normalisation between reshapes
//===----------------------------------------------------------------------===//

/// True if the parameter of a norm of `from`, one element for each of its second dimension, says what to do with each
/// channel of `to`: it is the same for all, or rows are the same and each of its elements stands for several channels.
static bool canSpread(Value parameter, RankedTensorType from, RankedTensorType to) {
  if (!parameter || getSplat(parameter))
    return true;
  int64_t count = from.getDimSize(1);
  return from.getDimSize(0) == to.getDimSize(0) && count != 0 && to.getDimSize(1) % count == 0;
}

/// One element for each channel of `to`, if `canSpread`.
static Value spread(OpBuilder &builder, Location loc, Value parameter, RankedTensorType to) {
  if (!parameter)
    return {};
  RankedTensorType type = typeOf(parameter);
  int64_t channels = to.getDimSize(1), count = type.getNumElements();
  if (std::optional<double> number = getSplat(parameter))
    return createSplat(builder, loc, type.clone({channels}), *number);
  if (count == channels)
    return parameter;
  Value column = reshapeTo(builder, loc, parameter, {count, 1});
  Value repeated = BroadcastOp::create(builder, loc, type.clone({count, channels / count}), column);
  return reshapeTo(builder, loc, repeated, {channels});
}

/// Replaces reshape(norm(reshape(x))) by a group normalisation of x: both normalise consecutive runs of elements.
/// `run` is the length of the norm's runs.
template <typename NormT>
static LogicalResult normaliseBeforeReshape(ReshapeOp outer, NormT norm, int64_t run, PatternRewriter &rewriter) {
  auto inner = norm.getOperand().template getDefiningOp<ReshapeOp>();
  if (!inner || run == 0)
    return failure();
  Value source = inner.getOperand();
  // What was reshaped, or else what it is reshaped to, has the channels.
  for (RankedTensorType type : {typeOf(source), outer.getType()}) {
    ArrayRef<int64_t> shape = type.getShape();
    if (type.getRank() < 3 || type == norm.getType())
      continue;
    int64_t image = countElements(shape.drop_front(1)), channels = shape[1];
    if (image == 0 || image % run != 0 || channels % (image / run) != 0)
      continue;
    if (!canSpread(norm.getScale(), norm.getType(), type) || !canSpread(norm.getBias(), norm.getType(), type))
      continue;
    Location loc = norm.getLoc();
    Value result = GroupNormOp::create(rewriter, loc, reshapeTo(rewriter, loc, source, shape),
                                       spread(rewriter, loc, norm.getScale(), type),
                                       spread(rewriter, loc, norm.getBias(), type), image / run, norm.getEpsilon());
    rewriter.replaceOp(outer, reshapeTo(rewriter, outer.getLoc(), result, outer.getType().getShape()));
    return success();
  }
  return failure();
}

static LogicalResult recognizeGroupNorm(ReshapeOp outer, PatternRewriter &rewriter) {
  if (auto norm = getSoleProducer<GroupNormOp>(outer.getOperand())) {
    ArrayRef<int64_t> shape = norm.getType().getShape();
    return normaliseBeforeReshape(outer, norm,
                                  countElements(shape.drop_front()) / static_cast<int64_t>(norm.getGroups()), rewriter);
  }
  auto norm = getSoleProducer<LayerNormOp>(outer.getOperand());
  // A layer norm of [N, groups, elements], not one of a sequence that was flattened.
  if (!norm || norm.getScale() || norm.getBias() || norm.getAxis() < 2)
    return failure();
  return normaliseBeforeReshape(outer, norm, countElements(norm.getType().getShape().drop_front(norm.getAxis())),
                                rewriter);
}

//===----------------------------------------------------------------------===//
// Scale and bias
//===----------------------------------------------------------------------===//

/// `constant` in the shape of the norm's parameters; null if it varies along other dimensions.
static Value alignParameter(OpBuilder &builder, GroupNormOp norm, Value constant) {
  ArrayRef<int64_t> shape = shapeOf(constant);
  int64_t offset = norm.getType().getRank() - static_cast<int64_t>(shape.size()),
          channels = norm.getType().getDimSize(1);
  if (std::optional<double> number = getSplat(constant))
    return createSplat(builder, constant.getLoc(), typeOf(constant).clone({channels}), *number);
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (extent != (static_cast<int64_t>(dim) + offset == 1 ? channels : 1))
      return {};
  return offset <= 1 ? reshapeTo(builder, norm.getLoc(), constant, {channels}) : Value();
}

static Value alignParameter(OpBuilder &builder, LayerNormOp norm, Value constant) {
  ArrayRef<int64_t> wanted = norm.getType().getShape().drop_front(norm.getAxis());
  ArrayRef<int64_t> shape = shapeOf(constant);
  if (std::optional<double> number = getSplat(constant))
    return createSplat(builder, constant.getLoc(), typeOf(constant).clone(wanted), *number);
  if (shape.size() < wanted.size() || shape.take_back(wanted.size()) != wanted ||
      llvm::any_of(shape.drop_back(wanted.size()), [](int64_t extent) { return extent != 1; }))
    return {};
  return reshapeTo(builder, norm.getLoc(), constant, wanted);
}

/// Takes the constant that `op` multiplies or adds to the result of a norm into the norm.
template <typename NormT, typename OpT> static LogicalResult absorb(OpT op, PatternRewriter &rewriter) {
  constexpr bool multiplies = std::is_same_v<OpT, MulOp>;
  for (Value value : {op.getLhs(), op.getRhs()}) {
    auto norm = getSoleProducer<NormT>(value);
    Value constant = getOther(op, value);
    if (!norm || norm.getType() != op.getType() || !isConstantOnly(constant))
      continue;
    Value scale = norm.getScale(), bias = norm.getBias();
    // What is combined with another constant should not overflow where the two would not have.
    bool combines = multiplies ? scale || bias : static_cast<bool>(bias);
    if (combines && !isModerateConstant(constant))
      continue;
    Value parameter = alignParameter(rewriter, norm, constant);
    if (!parameter)
      continue;
    Location loc = op.getLoc();
    if (multiplies) {
      if (bias)
        bias = MulOp::create(rewriter, loc, bias, parameter);
      scale = scale ? MulOp::create(rewriter, loc, scale, parameter).getResult() : parameter;
    } else {
      bias = bias ? AddOp::create(rewriter, loc, bias, parameter).getResult() : parameter;
    }
    auto range = [&] {
      if constexpr (std::is_same_v<NormT, GroupNormOp>)
        return norm.getGroups();
      else
        return norm.getAxis();
    };
    rewriter.replaceOpWithNewOp<NormT>(op, norm.getOperand(), scale, bias, range(), norm.getEpsilon());
    return success();
  }
  return failure();
}

/// Drops a scale of ones and a bias of zeros.
template <typename NormT> static LogicalResult dropParameters(NormT norm, PatternRewriter &rewriter) {
  bool dropsScale = norm.getScale() && getSplat(norm.getScale()) == 1.0;
  bool dropsBias = norm.getBias() && getSplat(norm.getBias()) == 0.0;
  if (!dropsScale && !dropsBias)
    return failure();
  rewriter.modifyOpInPlace(norm, [&] {
    if (dropsBias)
      norm.getBiasMutable().clear();
    if (dropsScale)
      norm.getScaleMutable().clear();
  });
  return success();
}

namespace {
struct RecognizeNorms : dovetail::impl::RecognizeNormsBase<RecognizeNorms> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    for (StringRef name : {MulOp::getOperationName(), DivOp::getOperationName()})
      patterns.add<RecognizeNormalisation>(context, name);
    patterns.add(recognizeGroupNorm);
    patterns.add(absorb<GroupNormOp, MulOp>);
    patterns.add(absorb<GroupNormOp, AddOp>);
    patterns.add(absorb<LayerNormOp, MulOp>);
    patterns.add(absorb<LayerNormOp, AddOp>);
    patterns.add(dropParameters<GroupNormOp>);
    patterns.add(dropParameters<LayerNormOp>);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
