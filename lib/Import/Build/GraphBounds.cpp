//===- GraphBounds.cpp - Bounded dimensions of a node's values -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what imports of operators say about bounded dimensions, and reductions along them.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace dovetail;
using namespace dovetail::importer;

mlir::Value GraphBuilder::bound(mlir::Value value, Counts counts) {
  // The extent may be known after all.
  for (auto [dim, count] : llvm::enumerate(counts))
    if (mlir::ElementsAttr constant = getConstant(count); constant && value) {
      llvm::SmallVector<int64_t> sizes(getShape(value)), starts(sizes.size(), 0), steps(sizes.size(), 1);
      sizes[dim] = readInts(constant)->front();
      value = slice(value, starts, sizes, steps);
      count = {};
    }
  if (!value || llvm::none_of(counts, [](mlir::Value count) { return static_cast<bool>(count); }))
    return value;
  // What folds to a constant would be bounded by nothing.
  if (getConstant(value) && getType(value).getNumElements() > 0)
    value = importer::clearTails(context.builder, context.loc, value, counts);
  context.bounds.set(value, std::move(counts));
  return value;
}

mlir::Value GraphBuilder::state(mlir::Value value, Counts counts) {
  bool isBounded = llvm::any_of(counts, [](mlir::Value count) { return static_cast<bool>(count); });
  return isBounded ? bound(value, std::move(counts)) : stateUnbounded(value);
}

mlir::Value GraphBuilder::makeCount(const CountForm &form) {
  if (form.isConstant())
    return toScalar({form.getConstant()});
  if (mlir::Value known = context.bounds.getCount(form))
    return known;
  mlir::Value sum;
  for (const CountForm::Term &term : form.terms) {
    mlir::Value part = term.count;
    if (term.factor != 1)
      part = create<MulOp>(part, toScalar({term.factor}));
    sum = sum ? create<AddOp>(sum, part) : part;
  }
  if (form.added != 0)
    sum = create<AddOp>(sum, toScalar({form.added}));
  // Below 0 a quotient would be rounded to it.
  if (!form.isNeverNegative())
    sum = create<MaxOp>(sum, toScalar({0}));
  if (form.divisor != 1)
    sum = create<DivOp>(sum, toScalar({form.divisor}));
  if (sum)
    context.bounds.setCount(form, sum);
  return sum;
}

mlir::Value GraphBuilder::deriveCount(mlir::Value count, int64_t added, int64_t divisor) {
  return computeCount(count, [&](const CountForm &form) {
    std::optional<CountForm> sum = form.plus(CountForm::constant(added));
    return sum ? sum->dividedBy(divisor) : sum;
  });
}

mlir::Value GraphBuilder::multiplyCount(mlir::Value count, int64_t factor, int64_t added) {
  return computeCount(count, [&](const CountForm &form) {
    std::optional<CountForm> product = form.times(factor);
    return product ? product->plus(CountForm::constant(added)) : product;
  });
}

mlir::Value GraphBuilder::computeCount(mlir::Value count,
                                       llvm::function_ref<std::optional<CountForm>(const CountForm &)> compute) {
  if (!count)
    return {};
  auto form =
      context.bounds.combine({0, count}, {}, [&](const CountForm &own, const CountForm &) { return compute(own); });
  assert(form && "numbers of extents are small");
  return makeCount(*form);
}

mlir::Value GraphBuilder::addCounts(mlir::Value a, mlir::Value b) {
  if (!a || !b)
    return {};
  auto form = context.bounds.combine({0, a}, {0, b},
                                     [](const CountForm &own, const CountForm &other) { return own.plus(other); });
  return makeCount(*form);
}

Extent GraphBuilder::makeExtent(const CountForm &form) {
  if (form.isConstant())
    return {form.getConstant(), {}};
  int64_t bound = context.bounds.getBound(form);
  return {bound, bound == 0 ? mlir::Value() : makeCount(form)};
}

std::optional<Extent> GraphBuilder::subtractExtents(const SignedExtent &a, const SignedExtent &b) {
  std::optional<CountForm> form;
  if (a.exact || b.exact) {
    form = getExact(a);
    if (!form->accumulate(getExact(b), -1))
      return std::nullopt;
  } else {
    form = context.bounds.combine(a.extent, b.extent,
                                  [](const CountForm &own, const CountForm &other) { return own.minus(other); });
  }
  return form ? std::optional(makeExtent(*form)) : std::nullopt;
}

Extent GraphBuilder::divideExtent(const Extent &extent, int64_t number) {
  int64_t rounded = std::max<int64_t>(extent.number, 0) / number + (extent.number % number > 0);
  return {rounded, deriveCount(extent.count, number - 1, number)};
}

mlir::Value GraphBuilder::shareCount(mlir::Value count, std::array<int64_t, 3> numbers,
                                     llvm::function_ref<mlir::Value()> make) {
  if (mlir::Value known = context.bounds.getDerived(count, numbers))
    return known;
  mlir::Value made = make();
  if (count && made)
    context.bounds.setDerived(count, numbers, made);
  return made;
}

mlir::Value GraphBuilder::clearTails(mlir::Value value) {
  if (!context.bounds.isBounded(value))
    return value;
  mlir::Value cleared = importer::clearTails(context.builder, context.loc, value, getCounts(value));
  for (mlir::Value inner = cleared; inner != value; inner = inner.getDefiningOp()->getOperand(0))
    context.bounds.set(inner, {});
  return cleared;
}

Obstacle GraphBuilder::describeBounded(const llvm::Twine &what, mlir::Value value, const llvm::Twine &why) const {
  auto counts = getCounts(value);
  unsigned dim = llvm::find_if(counts, [](mlir::Value count) { return static_cast<bool>(count); }) - counts.begin();
  return importer::describeBounded(what, dim, getShape(value)[dim], why);
}

llvm::LogicalResult GraphBuilder::inferBounds(mlir::Value value) {
  if (!value || getObstacle())
    return llvm::failure();
  mlir::Operation *op = value.getDefiningOp();
  if (!op || context.bounds.isKnown(value) || llvm::is_contained(inputs, value) || !visited.insert(op).second)
    return llvm::success();
  for (mlir::Value operand : op->getOperands())
    if (failed(inferBounds(operand)))
      return llvm::failure();
  if (std::optional<Obstacle> why = context.bounds.infer(op))
    return unsupported(*why);
  return llvm::success();
}

mlir::Value GraphBuilder::fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, mlir::TypedAttr filler) {
  if (!value || failed(inferBounds(value)))
    return {};
  if (llvm::none_of(axes, [&](int64_t axis) { return static_cast<bool>(getCount(value, axis)); }))
    return value;
  auto scalar = mlir::RankedTensorType::get({}, getType(value).getElementType());
  return fillTails(value, axes, constant(mlir::DenseElementsAttr::get(scalar, filler)));
}

mlir::Value GraphBuilder::fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, mlir::Value filler) {
  if (!value || failed(inferBounds(value)))
    return {};
  Counts counts(getCounts(value));
  for (int64_t axis : axes) {
    if (counts.empty() || !counts[axis])
      continue;
    mlir::Value positions = countAlong(getRank(value), axis, getShape(value)[axis]);
    mlir::Value isThere = create<LessOp>(positions, counts[axis]);
    value = create<SelectOp>(isThere, value, filler);
    counts[axis] = {};
    if (!value)
      return {};
    context.bounds.set(value, counts);
  }
  return value;
}

mlir::Value GraphBuilder::countAlong(int64_t rank, int64_t dim, int64_t extent) {
  llvm::SmallVector<int64_t> shape(rank, 1);
  shape[dim] = extent;
  return reshape(count(0, extent), shape);
}

mlir::Value GraphBuilder::repeatLast(mlir::Value value, int64_t dim) {
  if (!value)
    return {};
  Counts counts(getCounts(value));
  mlir::Value count = counts[dim];
  counts[dim] = {};
  mlir::Value last = create<MaxOp>(create<SubOp>(count, scalarLike(count, 1)), scalarLike(count, 0));
  return fillTails(value, dim, state(create<GatherOp>(value, reshape(last, 1), dim), counts));
}

mlir::Value GraphBuilder::countFromBegin(mlir::Value indices, mlir::Value extent, mlir::Value outside) {
  mlir::Value given = cast(indices, getBuilder().getI64Type());
  if (!given)
    return {};
  mlir::Value zero = scalarLike(given, 0);
  mlir::Value index = create<SelectOp>(create<LessOp>(given, zero), create<AddOp>(given, extent), given);
  mlir::Value isThere = create<AndOp>(create<LessOrEqualOp>(zero, index), create<LessOp>(index, extent));
  return create<SelectOp>(isThere, index, outside);
}

mlir::Value GraphBuilder::gatherBounded(mlir::Value value, mlir::Value indices, int64_t axis) {
  mlir::Value outside = toScalar({getShape(value)[axis]});
  mlir::Value index = countFromBegin(indices, getCount(value, axis), outside);
  if (failed(inferBounds(index)))
    return {};
  Counts ofIndices(getCounts(index)), ofValue(getCounts(value));
  ofIndices.resize(getRank(index));
  Counts counts(ofValue.begin(), ofValue.begin() + axis);
  llvm::append_range(counts, ofIndices);
  counts.append(ofValue.begin() + axis + 1, ofValue.end());
  return state(create<GatherOp>(value, clearTails(index), axis), std::move(counts));
}

/// What changes nothing when it is combined with others, as an element of `type`.
static mlir::TypedAttr getNeutral(mlir::Type type, ReduceKind kind) {
  double number = kind == ReduceKind::Prod ? 1 : 0;
  if (auto floatType = llvm::dyn_cast<mlir::FloatType>(type)) {
    llvm::APFloat value(number);
    if (kind == ReduceKind::Max || kind == ReduceKind::Min)
      value = llvm::APFloat::getInf(floatType.getFloatSemantics(), /*Negative=*/kind == ReduceKind::Max);
    bool isInexact;
    value.convert(floatType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
    return mlir::FloatAttr::get(floatType, value);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger() || width == 1;
  llvm::APInt value(width, static_cast<uint64_t>(number));
  if (kind == ReduceKind::Max)
    value = isUnsigned ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width);
  if (kind == ReduceKind::Min)
    value = isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
  return mlir::IntegerAttr::get(type, value);
}

mlir::Value GraphBuilder::neutralLike(mlir::Value like, ReduceKind kind) {
  mlir::Type type = getType(like).getElementType();
  return constant(mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({}, type), getNeutral(type, kind)));
}

mlir::Value GraphBuilder::fillTails(mlir::Value value, llvm::ArrayRef<int64_t> axes, ReduceKind kind) {
  return value ? fillTails(value, axes, getNeutral(getType(value).getElementType(), kind)) : mlir::Value();
}

mlir::Value GraphBuilder::reduce(mlir::Value value, ReduceKind kind, llvm::ArrayRef<int64_t> axes) {
  if (axes.empty())
    return value;
  llvm::SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted);
  value = fillTails(value, sorted, kind);
  return create<ReduceOp>(value, kind, sorted);
}

mlir::Value GraphBuilder::mean(mlir::Value value, llvm::ArrayRef<int64_t> axes) {
  if (failed(inferBounds(value)))
    return {};
  int64_t known = 1;
  mlir::Value lengths;
  llvm::ArrayRef<mlir::Value> counts = getCounts(value);
  for (int64_t axis : axes)
    if (mlir::Value length = counts.empty() ? mlir::Value() : counts[axis])
      lengths = lengths ? create<MulOp>(lengths, length) : length;
    else
      known *= getShape(value)[axis];
  mlir::Type type = getType(value).getElementType();
  mlir::Value wide = widen(value), sum = reduce(wide, ReduceKind::Sum, axes);
  if (lengths) {
    mlir::Value terms = create<MulOp>(lengths, scalarLike(lengths, known));
    // Integers cannot be divided by none.
    if (type.isInteger())
      terms = create<MaxOp>(terms, scalarLike(terms, 1));
    return cast(create<DivOp>(sum, cast(terms, getType(wide).getElementType())), type);
  }
  if (type.isInteger())
    return create<DivOp>(sum, scalarLike(value, known));
  return cast(create<MulOp>(sum, scalarLike(wide, 1.0 / known)), type);
}
