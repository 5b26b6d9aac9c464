//===- Contraction.cpp - Sums of products of several tensors --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how what an equation says is built.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "llvm/Support/MathExtras.h"

#include <functional>

using namespace dovetail;
using namespace dovetail::importer;

namespace {

/// An operand, or what some of them have been contracted to: a tensor, and the label of each of its dimensions, which
/// differ.
struct Factor {
  mlir::Value value;
  llvm::SmallVector<Label> labels;

  bool has(Label label) const { return llvm::is_contained(labels, label); }
};

/// Builds what an equation says.
class Contraction {
public:
  Contraction(GraphBuilder &builder, const Equation &equation) : builder(builder), equation(equation) {}

  /// The result, or null after an error.
  mlir::Value build(llvm::ArrayRef<mlir::Value> operands);

private:
  /// An operand without repeated labels, and without dimensions of extent 1 that others repeat.
  Factor read(mlir::Value operand, llvm::ArrayRef<Label> labels);
  /// Dimensions of `labels`, which must be all of the factor's.
  mlir::Value transpose(const Factor &factor, llvm::ArrayRef<Label> labels);
  /// The factor without labels that neither the result nor any of `others` has.
  Factor sumAlone(Factor factor, llvm::ArrayRef<Factor> others);
  /// Whether the result or any of `others` needs a label.
  bool isKept(Label label, llvm::ArrayRef<Factor> others) const;
  Factor multiply(const Factor &a, const Factor &b, llvm::ArrayRef<Factor> others);
  Factor multiplyElements(const Factor &a, const Factor &b, llvm::ArrayRef<Label> sums);
  Factor multiplyMatrices(const Factor &a, const Factor &b, llvm::ArrayRef<Label> sums);
  int64_t getExtent(Label label) const { return equation.extents.lookup(label); }
  int64_t countElements(llvm::ArrayRef<Label> labels) const;
  llvm::SmallVector<int64_t> getShape(llvm::ArrayRef<Label> labels) const;
  /// Contracts all factors, two at a time in the order that takes fewest multiplications.
  Factor contract(llvm::SmallVector<Factor> factors);

  GraphBuilder &builder;
  const Equation &equation;
};

} // namespace

int64_t Contraction::countElements(llvm::ArrayRef<Label> labels) const {
  int64_t count = 1;
  for (Label label : labels)
    count = llvm::SaturatingMultiply<uint64_t>(count, getExtent(label));
  return count;
}

llvm::SmallVector<int64_t> Contraction::getShape(llvm::ArrayRef<Label> labels) const {
  return llvm::map_to_vector(labels, [&](Label label) { return getExtent(label); });
}

Factor Contraction::read(mlir::Value operand, llvm::ArrayRef<Label> given) {
  Factor factor;
  llvm::SmallVector<int64_t> shape;
  for (auto [label, extent] : llvm::zip_equal(given, builder.getShape(operand)))
    if (extent == getExtent(label)) {
      factor.labels.push_back(label);
      shape.push_back(extent);
    }
  factor.value = builder.reshape(operand, shape);
  // The diagonal of two dimensions: every (extent + 1)-th element of both as one. A part of it is in a part of rows.
  for (unsigned first = 0; first < factor.labels.size(); ++first) {
    auto *again = std::find(factor.labels.begin() + first + 1, factor.labels.end(), factor.labels[first]);
    if (again == factor.labels.end())
      continue;
    unsigned second = again - factor.labels.begin();
    int64_t extent = shape[first];
    llvm::SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    std::rotate(order.begin() + first + 1, order.begin() + second, order.begin() + second + 1);
    factor.labels.erase(again);
    shape.erase(shape.begin() + second);
    shape[first] = extent * extent;
    mlir::Value merged = builder.reshape(builder.transpose(factor.value, order), shape);
    llvm::SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    shape[first] = extent;
    steps[first] = extent + 1;
    factor.value = builder.slice(merged, starts, shape, steps);
    --first;
  }
  return factor;
}

mlir::Value Contraction::transpose(const Factor &factor, llvm::ArrayRef<Label> labels) {
  llvm::SmallVector<int64_t> permutation;
  for (Label label : labels)
    permutation.push_back(llvm::find(factor.labels, label) - factor.labels.begin());
  return factor.value ? builder.transpose(factor.value, permutation) : mlir::Value();
}

bool Contraction::isKept(Label label, llvm::ArrayRef<Factor> others) const {
  return llvm::is_contained(equation.result, label) ||
         llvm::any_of(others, [&](const Factor &other) { return other.has(label); });
}

Factor Contraction::sumAlone(Factor factor, llvm::ArrayRef<Factor> others) {
  llvm::SmallVector<int64_t> axes;
  llvm::SmallVector<Label> left;
  for (auto [dim, label] : llvm::enumerate(factor.labels))
    if (isKept(label, others))
      left.push_back(label);
    else
      axes.push_back(dim);
  if (axes.empty() || !factor.value)
    return factor;
  return {builder.reshape(builder.reduce(factor.value, ReduceKind::Sum, axes), getShape(left)), left};
}

Factor Contraction::multiplyElements(const Factor &a, const Factor &b, llvm::ArrayRef<Label> sums) {
  llvm::SmallVector<Label> labels(a.labels);
  for (Label label : b.labels)
    if (!a.has(label))
      labels.push_back(label);
  // In the order of the result, where they are in it, so that nothing is left to transpose.
  auto place = [&](Label label) { return llvm::find(equation.result, label) - equation.result.begin(); };
  llvm::stable_sort(labels, [&](Label l, Label r) { return place(l) < place(r); });
  auto spread = [&](const Factor &factor) {
    llvm::SmallVector<Label> own;
    llvm::SmallVector<int64_t> shape;
    for (Label label : labels) {
      if (factor.has(label))
        own.push_back(label);
      shape.push_back(factor.has(label) ? getExtent(label) : 1);
    }
    return builder.reshape(transpose(factor, own), shape);
  };
  mlir::Value left = spread(a), right = spread(b);
  // Products that are added up are not rounded before.
  if (!sums.empty()) {
    left = builder.widen(left);
    right = builder.widen(right);
  }
  Factor product{builder.create<MulOp>(left, right), labels};
  llvm::SmallVector<int64_t> axes;
  llvm::SmallVector<Label> kept;
  for (auto [dim, label] : llvm::enumerate(labels))
    if (llvm::is_contained(sums, label))
      axes.push_back(dim);
    else
      kept.push_back(label);
  if (product.value)
    product = {builder.reshape(builder.reduce(product.value, ReduceKind::Sum, axes), getShape(kept)), kept};
  return product;
}

Factor Contraction::multiplyMatrices(const Factor &a, const Factor &b, llvm::ArrayRef<Label> sums) {
  // The result's order, as far as it goes, spares it a transpose: batches, rows, columns.
  llvm::SmallVector<Label> batch, rows, columns;
  auto isSum = [&](Label label) { return llvm::is_contained(sums, label); };
  llvm::SmallVector<Label> order(equation.result);
  for (const Factor *factor : {&a, &b})
    for (Label label : factor->labels)
      if (!llvm::is_contained(order, label))
        order.push_back(label);
  for (Label label : order) {
    if (isSum(label) || !(a.has(label) || b.has(label)))
      continue;
    (a.has(label) && b.has(label) ? batch : a.has(label) ? rows : columns).push_back(label);
  }
  // Rows are dimensions of their own, over which the second factor is repeated. Columns and terms are one each.
  llvm::SmallVector<Label> left(batch), right(batch);
  llvm::append_range(left, rows);
  llvm::append_range(left, sums);
  llvm::append_range(right, sums);
  llvm::append_range(right, columns);
  int64_t terms = countElements(sums), width = countElements(columns);
  llvm::SmallVector<int64_t> leftShape = getShape(batch), rightShape = getShape(batch);
  llvm::append_range(leftShape, getShape(rows));
  if (rows.empty())
    leftShape.push_back(1);
  leftShape.push_back(terms);
  rightShape.append(rows.empty() ? 0 : rows.size() - 1, 1);
  rightShape.append({terms, width});
  mlir::Value product = builder.create<MatMulOp>(builder.reshape(transpose(a, left), leftShape),
                                                 builder.reshape(transpose(b, right), rightShape));
  // Sums of integers of 8 bits wrap around, whether in these or in more.
  product = builder.cast(product, builder.getType(a.value).getElementType());
  llvm::SmallVector<Label> labels(batch);
  llvm::append_range(labels, rows);
  llvm::append_range(labels, columns);
  return {builder.reshape(product, getShape(labels)), labels};
}

Factor Contraction::multiply(const Factor &a, const Factor &b, llvm::ArrayRef<Factor> others) {
  if (!a.value || !b.value)
    return {};
  llvm::SmallVector<Label> sums;
  bool hasRows = false, hasColumns = false;
  for (Label label : a.labels) {
    if (b.has(label) && !isKept(label, others))
      sums.push_back(label);
    hasRows |= !b.has(label);
  }
  hasColumns = llvm::any_of(b.labels, [&](Label label) { return !a.has(label); });
  // Sums of products of vectors are no matrix product that a library would be fast at.
  if (sums.empty() || !(hasRows || hasColumns))
    return multiplyElements(a, b, sums);
  // Columns come last in the result if they can.
  auto last = std::find_if(equation.result.rbegin(), equation.result.rend(),
                           [&](Label label) { return a.has(label) != b.has(label); });
  bool isSwapped = last != equation.result.rend() ? a.has(*last) : !hasColumns;
  return isSwapped ? multiplyMatrices(b, a, sums) : multiplyMatrices(a, b, sums);
}

Factor Contraction::contract(llvm::SmallVector<Factor> factors) {
  constexpr unsigned most = 10;
  while (factors.size() > most) {
    // Too many to compare all orders: the two whose product takes fewest multiplications.
    std::tuple<int64_t, unsigned, unsigned> best{INT64_MAX, 0, 1};
    for (unsigned i = 0; i < factors.size(); ++i)
      for (unsigned j = i + 1; j < factors.size(); ++j) {
        llvm::SmallVector<Label> labels(factors[i].labels);
        llvm::append_range(
            labels, llvm::make_filter_range(factors[j].labels, [&](Label label) { return !factors[i].has(label); }));
        best = std::min(best, {countElements(labels), i, j});
      }
    auto [cost, i, j] = best;
    Factor a = factors[i], b = factors[j];
    factors.erase(factors.begin() + j);
    factors.erase(factors.begin() + i);
    factors.push_back(multiply(a, b, factors));
  }
  // For each set of factors, what it takes to contract them, and one of the two sets that are contracted last.
  unsigned count = factors.size();
  struct Best {
    double cost = 0;
    unsigned half = 0;
  };
  std::vector<Best> best(size_t(1) << count);
  auto labelsOf = [&](unsigned set) {
    llvm::SmallVector<Label> labels;
    llvm::SmallVector<Factor> others;
    for (unsigned i = 0; i < count; ++i)
      if (!(set >> i & 1))
        others.push_back(factors[i]);
    bool isSingle = llvm::isPowerOf2_32(set);
    for (unsigned i = 0; i < count; ++i)
      if (set >> i & 1)
        for (Label label : factors[i].labels)
          if (!llvm::is_contained(labels, label) && (isSingle || isKept(label, others)))
            labels.push_back(label);
    return labels;
  };
  std::vector<llvm::SmallVector<Label>> labels(best.size());
  for (unsigned set = 1; set < best.size(); ++set) {
    labels[set] = labelsOf(set);
    if (llvm::isPowerOf2_32(set))
      continue;
    best[set].cost = std::numeric_limits<double>::infinity();
    for (unsigned half = (set - 1) & set; half > 0; half = (half - 1) & set) {
      unsigned rest = set & ~half;
      if (half < rest)
        break;
      double cost = best[half].cost + best[rest].cost, multiplications = 1;
      for (Label label : labels[half])
        multiplications *= getExtent(label);
      for (Label label : labels[rest])
        if (!llvm::is_contained(labels[half], label))
          multiplications *= getExtent(label);
      if (cost += multiplications; cost < best[set].cost)
        best[set] = {cost, half};
    }
  }
  std::function<Factor(unsigned)> build = [&](unsigned set) -> Factor {
    if (llvm::isPowerOf2_32(set))
      return factors[llvm::Log2_32(set)];
    unsigned half = best[set].half, rest = set & ~half;
    llvm::SmallVector<Factor> others;
    for (unsigned i = 0; i < count; ++i)
      if (!(set >> i & 1))
        others.push_back(factors[i]);
    Factor a = build(half), b = build(rest);
    return multiply(a, b, others);
  };
  return build(best.size() - 1);
}

mlir::Value Contraction::build(llvm::ArrayRef<mlir::Value> operands) {
  llvm::SmallVector<Factor> factors;
  for (auto [operand, labels] : llvm::zip_equal(operands, equation.operands))
    factors.push_back(read(operand, labels));
  bool isAlone = llvm::all_of(llvm::seq<size_t>(0, factors.size()), [&](size_t number) {
    llvm::SmallVector<Factor> others(factors);
    others.erase(others.begin() + number);
    return llvm::all_of(factors[number].labels, [&](Label label) { return isKept(label, others); });
  });
  // Several sums and products one after the other would be rounded in between.
  mlir::Type type = builder.getType(operands.front()).getElementType();
  if (factors.size() > 2 || (factors.size() == 2 && !isAlone))
    for (Factor &factor : factors)
      factor.value = builder.widen(factor.value);
  for (size_t number = 0; number < factors.size(); ++number) {
    llvm::SmallVector<Factor> others(factors);
    others.erase(others.begin() + number);
    factors[number] = sumAlone(factors[number], others);
  }
  Factor result = contract(std::move(factors));
  if (!result.value)
    return {};
  return builder.cast(transpose(result, equation.result), type);
}

mlir::Value dovetail::importer::buildContraction(GraphBuilder &builder, const Equation &equation,
                                                 llvm::ArrayRef<mlir::Value> operands) {
  return Contraction(builder, equation).build(operands);
}
