//===- GraphMatch.cpp - What patterns on the graph share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the helpers of the patterns of simplify.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::requireUnsharded(Operation *root) {
  WalkResult result = root->walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (getSharding(value))
        return WalkResult(op->emitError("carries a sharding; the graph is simplified before shardings are chosen"));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
/// Gives the name of a tensor to the operation that computes it after a pattern. Patterns create operations at the
/// location of the one that they replace, which has the name, whatever part of the tensor's computation they are.
class NameKeeper : public RewriterBase::Listener {
public:
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override {
    bool isNew = !previous.isSet();
    if (isNew)
      op->setLoc(withoutTensorName(op->getLoc()));
  }
  void notifyOperationReplaced(Operation *op, ValueRange replacement) override {
    StringRef name = getTensorName(op->getLoc());
    auto result = replacement.empty() ? OpResult() : dyn_cast_if_present<OpResult>(replacement.front());
    // Names are of first results. A tensor that is equal to another one, which the model names, has no operation.
    if (name.empty() || !result || result.getResultNumber() != 0 || result.getType() != op->getResult(0).getType() ||
        !getTensorName(result.getLoc()).empty())
      return;
    Operation *computing = result.getOwner();
    computing->setLoc(withTensorName(computing->getLoc(), StringAttr::get(op->getContext(), name)));
  }
};
} // namespace

LogicalResult dovetail::applyToGraph(Operation *root, RewritePatternSet patterns) {
  if (failed(requireUnsharded(root)))
    return failure();
  GreedyRewriteConfig config;
  // Sharing constants would drop their locations, which name the weights.
  config.enableConstantCSE(false);
  // A long chain takes an iteration for each of its operations.
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  NameKeeper names;
  config.setListener(&names);
  return applyPatternsGreedily(root, std::move(patterns), config);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static bool isConstantOnly(Value value, SmallPtrSetImpl<Operation *> &seen, int depth) {
  Operation *op = value.getDefiningOp();
  // What is computed of constants alone is short; other chains may be as long as the graph.
  constexpr int maxDepth = 64;
  if (!op || depth > maxDepth)
    return false;
  // What was seen before is constant, or the walk would have ended.
  if (isa<ConstantOp>(op) || !seen.insert(op).second)
    return true;
  return isa<DefinitionOpInterface>(op) && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isConstantOnly(operand, seen, depth + 1); });
}

bool dovetail::isConstantOnly(Value value) {
  SmallPtrSet<Operation *, 8> seen;
  return ::isConstantOnly(value, seen, 0);
}

static std::optional<ConstantReader> readConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? ConstantReader::create(constant.getValue()) : std::nullopt;
}

/// A number, as a double if that holds it exactly.
static std::optional<double> toDouble(TypedAttr attribute, bool isUnsigned) {
  if (auto real = dyn_cast<FloatAttr>(attribute)) {
    // NaN is equal to nothing, so that no pattern may take it for a number.
    double number = real.getValueAsDouble();
    return std::isnan(number) ? std::nullopt : std::optional(number);
  }
  APInt integer = cast<IntegerAttr>(attribute).getValue();
  if (isUnsigned ? !integer.isIntN(53) : !integer.isSignedIntN(53))
    return std::nullopt;
  return isUnsigned ? static_cast<double>(integer.getZExtValue()) : static_cast<double>(integer.getSExtValue());
}

std::optional<SmallVector<double>> dovetail::getFloats(Value value) {
  RankedTensorType type = typeOf(value);
  std::optional<ConstantReader> reader = readConstant(value);
  if (!reader || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  SmallVector<double> numbers;
  const llvm::fltSemantics &semantics = cast<FloatType>(type.getElementType()).getFloatSemantics();
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i)
    numbers.push_back(APFloat(semantics, reader->readBits(i)).convertToDouble());
  return numbers;
}

std::optional<double> dovetail::getSplat(Value value) {
  RankedTensorType type = typeOf(value);
  std::optional<ConstantReader> reader = readConstant(value);
  // A vector for each channel may be spelt out; a weight is not looked at.
  constexpr int64_t maxElements = 1 << 16;
  if (!reader || type.getNumElements() == 0)
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(value.getDefiningOp<ConstantOp>().getValue());
  if (!dense || !dense.isSplat()) {
    if (type.getNumElements() > maxElements)
      return std::nullopt;
    APInt first = reader->readBits(0);
    for (int64_t i = 1, count = type.getNumElements(); i < count; ++i)
      if (reader->readBits(i) != first)
        return std::nullopt;
  }
  return toDouble(reader->read(0), isUnsignedElement(type.getElementType()));
}

bool dovetail::isClose(double value, double expected, Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  if (!floatType)
    return value == expected;
  double ulp = std::ldexp(std::abs(expected), 1 - static_cast<int>(floatType.getFPMantissaWidth()));
  return std::abs(value - expected) <= ulp;
}

bool dovetail::isSplatOf(Value value, double expected) {
  std::optional<double> number = getSplat(value);
  return number && isClose(*number, expected, typeOf(value).getElementType());
}

Value dovetail::createSplat(OpBuilder &builder, Location loc, RankedTensorType type, double number) {
  auto value = DenseElementsAttr::get(type, Attribute(FloatAttr::get(type.getElementType(), number)));
  return ConstantOp::create(builder, loc, value);
}

bool dovetail::isModerateConstant(Value value) {
  RankedTensorType type = typeOf(value);
  constexpr int64_t maxElements = 1 << 16;
  if (!(type.getElementType().isF32() || type.getElementType().isF64()) || type.getNumElements() > maxElements)
    return false;
  std::optional<SmallVector<double>> numbers = getFloats(value);
  constexpr double limit = 4294967296.0;
  return numbers && llvm::all_of(*numbers, [&](double number) {
           double size = std::abs(number);
           return size == 0 || (size <= limit && size >= 1 / limit);
         });
}

Value dovetail::reshapeTo(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, typeOf(value).clone(shape), value);
}

Value dovetail::sliceAlong(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t first, int64_t size,
                           int64_t step) {
  SmallVector<int64_t> starts(shapeOf(value).size(), 0), sizes(shapeOf(value)), steps(starts.size(), 1);
  if (first == 0 && size == sizes[dim] && step == 1)
    return value;
  starts[dim] = first;
  sizes[dim] = size;
  steps[dim] = step;
  return SliceOp::create(builder, loc, value, starts, sizes, steps);
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// How many of the last, or of the first, elements of `source` along `axis` `value` has; none if it is something else.
static std::optional<int64_t> getEnd(Value value, Value source, int64_t axis, bool isLast) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || slice.getOperand() != source)
    return std::nullopt;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(source))) {
    int64_t size = slice.getSizes()[dim];
    bool isAxis = static_cast<int64_t>(dim) == axis;
    if (slice.getStarts()[dim] != (isAxis && isLast ? extent - size : 0) || (size > 1 && slice.getSteps()[dim] != 1) ||
        (!isAxis && size != extent))
      return std::nullopt;
  }
  return slice.getSizes()[axis];
}

std::optional<Wrap> dovetail::findWrap(ConcatOp op) {
  auto axis = static_cast<int64_t>(op.getAxis());
  ValueRange inputs = op.getInputs();
  size_t first = inputs.size() > 1 && shapeOf(inputs[0])[axis] < shapeOf(inputs[1])[axis] ? 1 : 0;
  Wrap wrap = {inputs[first]};
  if (first == 1) {
    std::optional<int64_t> low = getEnd(inputs.front(), wrap.source, axis, /*isLast=*/true);
    if (!low)
      return std::nullopt;
    wrap.low = *low;
  }
  for (Value input : inputs.drop_front(first + 1)) {
    std::optional<int64_t> high = input == wrap.source     ? shapeOf(input)[axis]
                                  : input == inputs.back() ? getEnd(input, wrap.source, axis, /*isLast=*/false)
                                                           : std::nullopt;
    if (!high)
      return std::nullopt;
    wrap.high += *high;
  }
  return wrap;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static void collectFactors(Value value, bool isRoot, Product &product) {
  if (std::optional<double> number = getSplat(value)) {
    product.constant *= *number;
    return;
  }
  Operation *op = isRoot || value.hasOneUse() ? value.getDefiningOp() : nullptr;
  if (auto mul = dyn_cast_if_present<MulOp>(op)) {
    // Both operands may be the same value.
    bool isSquare = mul.getLhs() == mul.getRhs();
    if (isSquare) {
      product.factors.append(2, mul.getLhs());
      return;
    }
    collectFactors(mul.getLhs(), /*isRoot=*/false, product);
    collectFactors(mul.getRhs(), /*isRoot=*/false, product);
    return;
  }
  if (auto div = dyn_cast_if_present<DivOp>(op)) {
    std::optional<double> divisor = getSplat(div.getRhs());
    if (divisor && *divisor != 0) {
      collectFactors(div.getLhs(), /*isRoot=*/false, product);
      product.constant /= *divisor;
      return;
    }
  }
  if (auto pow = dyn_cast_if_present<PowOp>(op)) {
    std::optional<double> exponent = getSplat(pow.getRhs());
    if (exponent && (*exponent == 2 || *exponent == 3)) {
      product.factors.append(static_cast<size_t>(*exponent), pow.getLhs());
      return;
    }
  }
  product.factors.push_back(value);
}

Product dovetail::getProduct(Value value) {
  Product product;
  if (isa<FloatType>(typeOf(value).getElementType()))
    collectFactors(value, /*isRoot=*/true, product);
  else
    product.factors.push_back(value);
  return product;
}

bool dovetail::isProductOf(const Product &product, double expected, Value value, size_t count) {
  return product.factors.size() == count && llvm::all_equal(product.factors) && product.factors.front() == value &&
         isClose(product.constant, expected, typeOf(value).getElementType());
}

std::optional<ShiftedValue> dovetail::getShifted(Value value) {
  auto add = getSoleProducer<AddOp>(value);
  if (!add)
    return std::nullopt;
  if (std::optional<double> number = getSplat(add.getRhs()))
    return ShiftedValue{add.getLhs(), *number};
  if (std::optional<double> number = getSplat(add.getLhs()))
    return ShiftedValue{add.getRhs(), *number};
  return std::nullopt;
}
