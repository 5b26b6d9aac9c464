//===- EndBounds.cpp - Bounds of numbers that a run computes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what EndAnalysis knows of counts, positions and indices: bounds of all elements of small tensors of
// integers, or of floats that are integers.
//
//===----------------------------------------------------------------------===//

#include "EndAnalysis.h"
#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

/// The elements of a constant of integers, or of floats that are integers; nothing of others.
static std::optional<SmallVector<int64_t>> readIntegers(Attribute attribute) {
  SmallVector<int64_t> values;
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute)) {
    Type type = dense.getElementType();
    if (type.isInteger()) {
      bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
      for (const APInt &value : dense.getValues<APInt>())
        values.push_back(isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
      return values;
    }
    if (!isa<FloatType>(type))
      return std::nullopt;
    for (const APFloat &value : dense.getValues<APFloat>()) {
      double number = value.convertToDouble();
      // Larger ones may have been rounded.
      if (number != std::floor(number) || std::abs(number) > double(1 << 24))
        return std::nullopt;
      values.push_back(static_cast<int64_t>(number));
    }
    return values;
  }
  auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(attribute);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob || !resource.getType().getElementType().isSignlessInteger(64))
    return std::nullopt;
  ArrayRef<int64_t> data = blob->getDataAs<int64_t>();
  values.assign(data.begin(), data.end());
  return values;
}

std::pair<plan::LaunchOp, Value> EndAnalysis::findMaker(Value ref) {
  auto launch = dyn_cast_or_null<plan::LaunchOp>(makers.lookup(ref));
  if (!launch)
    return {};
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  auto number = llvm::find(launch.getWrites(), ref) - launch.getWrites().begin();
  return {launch, kernel.getYield().getValues()[number]};
}

std::pair<plan::LaunchOp, Value> EndAnalysis::resolve(Value value, plan::LaunchOp launch) {
  for (int depth = 0; launch && depth < 16; ++depth) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return {launch, value};
    std::tie(launch, value) = findMaker(launch.getReads()[argument.getArgNumber()]);
  }
  return {};
}

std::optional<EndForm> EndAnalysis::getMost(Value ref) {
  if (auto length = lengths.find(ref); length != lengths.end())
    return EndForm::length(length->second);
  if (plan::BufferOp buffer = plan::getBufferOp(ref); buffer && buffer.getKind() == plan::BufferKind::Constant) {
    std::optional<SmallVector<int64_t>> values = readIntegers(buffer.getValueAttr());
    return values && !values->empty() ? std::optional(EndForm::constant(*llvm::max_element(*values))) : std::nullopt;
  }
  auto [launch, value] = findMaker(ref);
  return launch ? getMost(value, launch) : std::nullopt;
}

std::optional<EndForm> EndAnalysis::getMost(Value value, plan::LaunchOp launch) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getMost(launch.getReads()[argument.getArgNumber()]);
  // A value that depends on itself, in a loop, has no bound.
  auto [known, isNew] = bounds.try_emplace({value, launch.getOperation()}, std::nullopt);
  if (!isNew)
    return known->second;
  std::optional<EndForm> most = computeMost(value, launch);
  bounds[{value, launch.getOperation()}] = most;
  return most;
}

std::optional<EndForm> EndAnalysis::computeMost(Value value, plan::LaunchOp launch) {
  Operation *op = value.getDefiningOp();
  bool isFloat = isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
  auto of = [&](Value operand) { return getMost(operand, launch); };
  auto constantOf = [&](Value operand) -> std::optional<int64_t> {
    auto constant = operand.getDefiningOp<ConstantOp>();
    std::optional<SmallVector<int64_t>> values = constant ? readIntegers(constant.getValue()) : std::nullopt;
    return values && llvm::all_equal(*values) && !values->empty() ? std::optional(values->front()) : std::nullopt;
  };
  using Bound = std::optional<EndForm>;
  return TypeSwitch<Operation *, Bound>(op)
      .Case([&](ConstantOp constant) -> Bound {
        std::optional<SmallVector<int64_t>> values = readIntegers(constant.getValue());
        return values && !values->empty() ? Bound(EndForm::constant(*llvm::max_element(*values))) : std::nullopt;
      })
      .Case<ReshapeOp, FloorOp, CastOp>([&](auto unary) -> Bound {
        // Signs of integers may change, and so may numbers that do not fit.
        Type from = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
        Type to = cast<RankedTensorType>(value.getType()).getElementType();
        bool isWide = from == to || isFloat || to.getIntOrFloatBitWidth() == 64;
        if (!isWide || (to.isUnsignedInteger() && from != to && !isNeverNegative(op->getOperand(0), launch)))
          return std::nullopt;
        return of(op->getOperand(0));
      })
      .Case([&](AddOp) -> Bound {
        Bound a = of(op->getOperand(0)), b = of(op->getOperand(1));
        return a && b ? EndForm::add(*a, *b) : std::nullopt;
      })
      .Case([&](SubOp) -> Bound {
        Bound a = of(op->getOperand(0));
        std::optional<int64_t> b = constantOf(op->getOperand(1));
        return a && b ? a->plus(-*b) : std::nullopt;
      })
      .Case([&](MulOp) -> Bound {
        for (unsigned number : {0, 1})
          if (std::optional<int64_t> factor = constantOf(op->getOperand(number)); factor && *factor >= 0 && !isFloat)
            if (Bound other = of(op->getOperand(1 - number)))
              return other->times(*factor);
        return std::nullopt;
      })
      .Case([&](DivOp) -> Bound {
        Bound a = of(op->getOperand(0));
        std::optional<int64_t> divisor = constantOf(op->getOperand(1));
        if (!a || !divisor || *divisor < 1 || isFloat)
          return std::nullopt;
        // Quotients are rounded toward 0.
        Bound quotient = a->dividedBy(*divisor);
        return quotient && !isNeverNegative(op->getOperand(0), launch) ? EndForm::join(*quotient, EndForm::constant(0))
                                                                       : quotient;
      })
      .Case([&](MaxOp) -> Bound {
        Bound a = of(op->getOperand(0)), b = of(op->getOperand(1));
        return a && b ? EndForm::join(*a, *b) : std::nullopt;
      })
      .Case([&](ReluOp) -> Bound {
        Bound a = of(op->getOperand(0));
        return a ? EndForm::join(*a, EndForm::constant(0)) : a;
      })
      .Case([&](MinOp) -> Bound {
        Bound a = of(op->getOperand(0)), b = of(op->getOperand(1));
        return a && b && b->isConstant() ? a : b ? b : a;
      })
      .Case([&](SelectOp) -> Bound {
        Bound a = of(op->getOperand(1)), b = of(op->getOperand(2));
        return a && b ? EndForm::join(*a, *b) : std::nullopt;
      })
      .Case([&](ClearTailOp) -> Bound {
        Bound a = of(op->getOperand(0));
        return a ? EndForm::join(*a, EndForm::constant(0)) : a;
      })
      // A check: the only element is looked up.
      .Case([&](GatherOp) -> Bound { return op->hasAttr(kPositionsAttrName) ? of(op->getOperand(0)) : std::nullopt; })
      .Default(std::nullopt);
}

bool EndAnalysis::isNeverNegative(Value value, plan::LaunchOp launch) {
  if (cast<RankedTensorType>(value.getType()).getElementType().isUnsignedInteger())
    return true;
  auto isFine = [](Attribute attribute) {
    std::optional<SmallVector<int64_t>> values = readIntegers(attribute);
    return values && llvm::all_of(*values, [](int64_t number) { return number >= 0; });
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Value ref = launch.getReads()[argument.getArgNumber()];
    if (lengths.contains(ref))
      return true;
    if (plan::BufferOp buffer = plan::getBufferOp(ref); buffer && buffer.getKind() == plan::BufferKind::Constant)
      return isFine(buffer.getValueAttr());
    auto [maker, made] = findMaker(ref);
    // Steps make what later ones read, but for what loops carry.
    return maker && (maker->getBlock() != launch->getBlock() || maker->isBeforeInBlock(launch)) &&
           isNeverNegative(made, maker);
  }
  Operation *op = value.getDefiningOp();
  auto is = [&](unsigned operand) { return isNeverNegative(op->getOperand(operand), launch); };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](ConstantOp constant) { return isFine(constant.getValue()); })
      .Case<ReshapeOp, FloorOp, ClearTailOp>([&](auto) { return is(0); })
      .Case([&](CastOp) {
        // An integer that does not fit may become a negative one.
        Type to = cast<RankedTensorType>(value.getType()).getElementType();
        return (isa<FloatType>(to) || to.getIntOrFloatBitWidth() == 64) && is(0);
      })
      .Case<AddOp, MulOp, DivOp, MinOp>([&](auto) { return is(0) && is(1); })
      .Case([&](MaxOp) { return is(0) || is(1); })
      .Case([&](ReluOp) { return true; })
      .Case([&](SelectOp) { return is(1) && is(2); })
      .Case([&](GatherOp) { return op->hasAttr(kPositionsAttrName) && is(0); })
      .Default(false);
}

bool EndAnalysis::isPosition(Value value, plan::LaunchOp launch) {
  Attribute constant;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Value ref = launch.getReads()[argument.getArgNumber()];
    if (plan::BufferOp buffer = plan::getBufferOp(ref); buffer && buffer.getKind() == plan::BufferKind::Constant)
      constant = buffer.getValueAttr();
    else if (auto [maker, made] = findMaker(ref); maker && !isa<BlockArgument>(made))
      return isPosition(made, maker);
  } else if (auto op = value.getDefiningOp<ConstantOp>()) {
    constant = op.getValue();
  } else if (auto reshaped = value.getDefiningOp<ReshapeOp>()) {
    return isPosition(reshaped.getOperand(), launch);
  } else if (auto range = value.getDefiningOp<RangeOp>()) {
    auto is = [](Attribute attribute, int64_t number) {
      auto integer = dyn_cast<IntegerAttr>(attribute);
      return integer && integer.getValue() == number;
    };
    return is(range.getStart(), 0) && is(range.getStep(), 1);
  }
  std::optional<SmallVector<int64_t>> values = readIntegers(constant);
  return values && llvm::all_of(llvm::enumerate(*values),
                                [](auto each) { return each.value() == static_cast<int64_t>(each.index()); });
}

std::optional<std::pair<int64_t, EndForm>> EndAnalysis::getMask(Value value, plan::LaunchOp launch) {
  auto [maker, made] = resolve(value, launch);
  auto less = maker ? made.getDefiningOp<LessOp>() : nullptr;
  if (!less)
    return std::nullopt;
  auto positions = cast<RankedTensorType>(less->getOperand(0).getType());
  auto count = cast<RankedTensorType>(less->getOperand(1).getType());
  std::optional<int64_t> along;
  for (auto [dim, extent] : llvm::enumerate(positions.getShape()))
    if (extent != 1) {
      if (along)
        return std::nullopt;
      along = positions.getRank() - static_cast<int64_t>(dim);
    }
  if (!along || count.getNumElements() != 1 || !isPosition(less->getOperand(0), maker))
    return std::nullopt;
  std::optional<EndForm> most = getMost(less->getOperand(1), maker);
  return most ? std::optional(std::pair(*along, *most)) : std::nullopt;
}
