//===- Extents.cpp - Shapes that nodes are given --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements GraphBuilder::traceExtents, which knows what Shape of a bounded dimension has become on its way to a node:
// moved, added, multiplied, divided.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace dovetail;
using namespace dovetail::importer;

/// More operations than lie between a Shape and what it is for.
static constexpr unsigned kMaxDepth = 64;

/// Scales of so many bits behind the point are exact quotients of extents.
static constexpr int64_t kMaxScale = int64_t(1) << 20;

namespace {

using SignedExtent = GraphBuilder::SignedExtent;

/// Finds out what numbers and counts the elements of a value are.
class Tracer {
public:
  Tracer(GraphBuilder &builder, const Bounds &bounds) : builder(builder), bounds(bounds) {}

  /// The elements of integers, row-major; none if they are made by something else than moving numbers and counts, and
  /// adding, multiplying and dividing them.
  std::optional<llvm::SmallVector<SignedExtent>> trace(mlir::Value value, unsigned depth = kMaxDepth);

  /// The elements are these in runs in which no sum is below its number.
  llvm::SmallVector<std::pair<CountForm, int64_t>> requirements;

private:
  /// `extent * numerator / denominator`, which floats stand for before they are rounded.
  struct Real {
    Extent extent;
    int64_t numerator = 1, denominator = 1;
  };

  std::optional<llvm::SmallVector<SignedExtent>> traceParts(mlir::Operation *op, unsigned depth);
  std::optional<llvm::SmallVector<SignedExtent>> traceArithmetic(mlir::Operation *op, unsigned depth);
  std::optional<llvm::SmallVector<SignedExtent>> traceFloor(mlir::Value value, unsigned depth);
  std::optional<llvm::SmallVector<Real>> traceReal(mlir::Value value, unsigned depth);
  std::optional<SignedExtent> combine(mlir::Operation *op, const SignedExtent &a, const SignedExtent &b);
  /// The sum or difference of two numbers, or the multiple or quotient of one, that may be below 0.
  std::optional<SignedExtent> combineSigned(mlir::Operation *op, const SignedExtent &a, const SignedExtent &b);
  std::optional<SignedExtent> makeExtent(const std::optional<CountForm> &form);
  int64_t getLeast(const CountForm &form) const {
    return form.getLeast([this](mlir::Value count) { return bounds.getBound(count); });
  }

  GraphBuilder &builder;
  const Bounds &bounds;
};

} // namespace

std::optional<SignedExtent> Tracer::makeExtent(const std::optional<CountForm> &form) {
  if (!form)
    return std::nullopt;
  if (form->isConstant())
    return SignedExtent{{form->divisor == 1 ? form->added : form->getConstant(), {}}};
  if (bounds.getBound(*form) == 0)
    return SignedExtent{{0, {}}};
  mlir::Value count = builder.makeCount(*form);
  return count ? std::optional(SignedExtent{{bounds.getBound(*form), count}}) : std::nullopt;
}

std::optional<SignedExtent> Tracer::combineSigned(mlir::Operation *op, const SignedExtent &a, const SignedExtent &b) {
  CountForm exact = builder.getExact(a), other = builder.getExact(b);
  if (llvm::isa<MulOp>(op) && exact.isConstant())
    std::swap(exact, other);
  if (llvm::isa<MulOp, DivOp>(op)) {
    int64_t number = other.added;
    if (!other.isConstant() || number < 0 || (number == 0 && llvm::isa<DivOp>(op)))
      return std::nullopt;
    if (llvm::isa<DivOp>(op)) {
      // Quotients are rounded to 0, to which those of small numbers below 0 are, too.
      if (getLeast(exact) <= -number)
        requirements.emplace_back(exact, 1 - number);
      return makeExtent(exact.dividedBy(number));
    }
    std::optional<CountForm> product = exact.times(number);
    if (!product)
      return std::nullopt;
    exact = *product;
  } else if (!exact.accumulate(other, llvm::isa<SubOp>(op) ? -1 : 1)) {
    return std::nullopt;
  }
  std::optional<SignedExtent> result = makeExtent(exact);
  if (result && !exact.isConstant() && getLeast(exact) < 0)
    result->exact = exact;
  return result;
}

std::optional<SignedExtent> Tracer::combine(mlir::Operation *op, const SignedExtent &a, const SignedExtent &b) {
  if (a.exact || b.exact)
    return combineSigned(op, a, b);
  auto compute = [&](const CountForm &formA, const CountForm &formB) -> std::optional<CountForm> {
    if (llvm::isa<AddOp>(op))
      return formA.plus(formB);
    if (llvm::isa<SubOp>(op))
      return formA.minus(formB);
    if (llvm::isa<MulOp>(op) && formA.isConstant())
      return formB.times(formA.added);
    if (!formB.isConstant())
      return std::nullopt;
    if (llvm::isa<MulOp>(op))
      return formA.times(formB.added);
    return formB.added > 0 ? formA.dividedBy(formB.added) : std::nullopt;
  };
  std::optional<CountForm> form = bounds.combine(a.extent, b.extent, compute);
  if (!form)
    return std::nullopt;
  std::optional<SignedExtent> result = makeExtent(form);
  if (!result || form->isConstant() || form->isNeverNegative() || llvm::isa<MulOp, DivOp>(op))
    return result;
  CountForm exact = builder.getExact(a);
  if (!exact.accumulate(builder.getExact(b), llvm::isa<SubOp>(op) ? -1 : 1))
    return std::nullopt;
  if (getLeast(exact) < 0)
    result->exact = exact;
  return result;
}

std::optional<llvm::SmallVector<SignedExtent>> Tracer::traceArithmetic(mlir::Operation *op, unsigned depth) {
  auto a = trace(op->getOperand(0), depth - 1), b = trace(op->getOperand(1), depth - 1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1))
    return std::nullopt;
  llvm::SmallVector<SignedExtent> result;
  for (size_t i = 0, size = a->empty() || b->empty() ? 0 : std::max(a->size(), b->size()); i < size; ++i) {
    auto extent = combine(op, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!extent)
      return std::nullopt;
    result.push_back(*extent);
  }
  return result;
}

std::optional<llvm::SmallVector<Tracer::Real>> Tracer::traceReal(mlir::Value value, unsigned depth) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || GraphBuilder::getConstant(value))
    return std::nullopt;
  if (llvm::isa<CastOp>(op) && GraphBuilder::getType(op->getOperand(0)).getElementType().isSignlessInteger()) {
    auto extents = trace(op->getOperand(0), depth - 1);
    if (!extents)
      return std::nullopt;
    return llvm::map_to_vector(*extents, [&](const SignedExtent &number) {
      if (number.exact)
        requirements.emplace_back(*number.exact, 0);
      return Real{number.extent};
    });
  }
  if (llvm::isa<ReshapeOp>(op))
    return traceReal(op->getOperand(0), depth - 1);
  if (!llvm::isa<MulOp, DivOp>(op))
    return std::nullopt;
  auto reals = traceReal(op->getOperand(0), depth - 1);
  mlir::ElementsAttr constant = GraphBuilder::getConstant(op->getOperand(1));
  auto numbers = constant && !isDataMissing(constant) ? readFloats(constant) : std::nullopt;
  if (!reals || !numbers || (numbers->size() != 1 && numbers->size() != reals->size()))
    return std::nullopt;
  for (auto [i, real] : llvm::enumerate(*reals)) {
    // Products of few bits are exact in floats, too.
    double scale = (*numbers)[numbers->size() == 1 ? 0 : i], scaled = scale * kMaxScale;
    if (!(scale > 0 && scaled <= kMaxScale * 1024.0) || scaled != std::floor(scaled) || real.denominator != 1 ||
        real.numerator != 1)
      return std::nullopt;
    int64_t numerator = static_cast<int64_t>(scaled), common = std::gcd(numerator, kMaxScale);
    std::tie(real.numerator, real.denominator) = std::pair(numerator / common, kMaxScale / common);
    if (llvm::isa<DivOp>(op)) {
      std::swap(real.numerator, real.denominator);
      // Else the quotient is rounded.
      if (!llvm::isPowerOf2_64(real.denominator))
        return std::nullopt;
    }
  }
  return reals;
}

std::optional<llvm::SmallVector<SignedExtent>> Tracer::traceFloor(mlir::Value value, unsigned depth) {
  // Of numbers that are not negative, to convert them to integers is to round down, too.
  if (auto floor = value.getDefiningOp<FloorOp>())
    value = floor->getOperand(0);
  auto reals = traceReal(value, depth);
  if (!reals)
    return std::nullopt;
  llvm::SmallVector<SignedExtent> result;
  for (const Real &real : *reals) {
    auto extent = makeExtent(bounds.combine(real.extent, {}, [&](const CountForm &form, const CountForm &) {
      std::optional<CountForm> product = form.times(real.numerator);
      return product ? product->dividedBy(real.denominator) : product;
    }));
    if (!extent)
      return std::nullopt;
    result.push_back(*extent);
  }
  return result;
}

std::optional<llvm::SmallVector<SignedExtent>> Tracer::traceParts(mlir::Operation *op, unsigned depth) {
  llvm::SmallVector<SignedExtent> result;
  if (llvm::isa<ConcatOp>(op)) {
    for (mlir::Value operand : op->getOperands()) {
      auto part = trace(operand, depth - 1);
      if (!part)
        return std::nullopt;
      result.append(*part);
    }
    return result;
  }
  mlir::Value source = op->getOperand(0);
  auto all = GraphBuilder::getRank(source) == 1 ? trace(source, depth - 1) : std::nullopt;
  if (!all)
    return std::nullopt;
  auto size = static_cast<int64_t>(all->size());
  if (auto slice = llvm::dyn_cast<SliceOp>(op)) {
    for (int64_t i = 0; i < slice.getSizes()[0]; ++i)
      result.push_back((*all)[slice.getStarts()[0] + i * slice.getSteps()[0]]);
    return result;
  }
  mlir::ElementsAttr indices = GraphBuilder::getConstant(op->getOperand(1));
  auto numbers = indices && !isDataMissing(indices) ? readInts(indices) : std::nullopt;
  if (!numbers)
    return std::nullopt;
  for (int64_t index : *numbers) {
    if (index < -size || index >= size)
      return std::nullopt;
    result.push_back((*all)[index < 0 ? index + size : index]);
  }
  return result;
}

std::optional<llvm::SmallVector<SignedExtent>> Tracer::trace(mlir::Value value, unsigned depth) {
  mlir::Type type = GraphBuilder::getType(value).getElementType();
  if (mlir::ElementsAttr constant = GraphBuilder::getConstant(value)) {
    auto numbers = isDataMissing(constant) ? std::nullopt : readInts(constant);
    if (!numbers)
      return std::nullopt;
    return llvm::map_to_vector(*numbers, [](int64_t number) { return SignedExtent{{number, {}}}; });
  }
  if (bounds.isCount(value))
    return llvm::SmallVector<SignedExtent>{{{bounds.getBound(value), value}}};
  mlir::Operation *op = value.getDefiningOp();
  // Of other integers some are too narrow.
  if (!op || depth == 0 || !(type.isInteger(64) || type.isInteger(32)))
    return std::nullopt;
  if (llvm::isa<CastOp>(op) && llvm::isa<mlir::FloatType>(GraphBuilder::getType(op->getOperand(0)).getElementType()))
    return traceFloor(op->getOperand(0), depth - 1);
  if (llvm::isa<ReshapeOp, CastOp>(op))
    return trace(op->getOperand(0), depth - 1);
  // All others are vectors.
  if (GraphBuilder::getRank(value) > 1)
    return std::nullopt;
  if (llvm::isa<ConcatOp, GatherOp, SliceOp>(op))
    return traceParts(op, depth);
  if (llvm::isa<AddOp, SubOp, MulOp, DivOp>(op))
    return traceArithmetic(op, depth);
  return std::nullopt;
}

CountForm GraphBuilder::getExact(const SignedExtent &number) const {
  if (number.exact)
    return *number.exact;
  if (!number.extent.count)
    return CountForm::constant(number.extent.number);
  CountForm form = context.bounds.getForm(number.extent.count);
  return form.divisor == 1 && form.isNeverNegative() ? form : CountForm::of(number.extent.count);
}

std::optional<llvm::SmallVector<SignedExtent>> GraphBuilder::traceExtents(mlir::Value value) {
  Tracer tracer(*this, context.bounds);
  auto numbers = tracer.trace(value);
  if (numbers)
    requirements.append(tracer.requirements);
  return numbers;
}

mlir::Value GraphBuilder::stateUnbounded(mlir::Value value) {
  if (value)
    context.bounds.set(value, {});
  return value;
}
