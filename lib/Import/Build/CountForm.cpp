//===- CountForm.cpp - Extents as sums of lengths -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements CountForm.
//
//===----------------------------------------------------------------------===//

#include "CountForm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace dovetail::importer;

mlir::Value CountForm::getCount() const {
  bool isPlain = terms.size() == 1 && terms[0].factor == 1 && added == 0 && divisor == 1;
  return isPlain ? terms[0].count : mlir::Value();
}

bool CountForm::isNeverNegative() const {
  return added >= 0 && llvm::all_of(terms, [](const Term &term) { return term.factor > 0; });
}

bool CountForm::accumulate(const CountForm &other, int64_t factor) {
  std::optional<int64_t> sum = llvm::checkedMulAdd(other.added, factor, added);
  if (!sum)
    return false;
  added = *sum;
  for (const Term &term : other.terms) {
    auto own = llvm::find_if(terms, [&](const Term &mine) { return mine.count == term.count; });
    if (own == terms.end())
      own = terms.insert(terms.end(), {term.count, 0});
    std::optional<int64_t> product = llvm::checkedMulAdd(term.factor, factor, own->factor);
    if (!product)
      return false;
    own->factor = *product;
  }
  llvm::erase_if(terms, [](const Term &term) { return term.factor == 0; });
  return true;
}

CountForm CountForm::normalized() const {
  // (g s + a) / (g d) is (s + floor(a / g)) / d, as s is an integer.
  int64_t common = divisor;
  for (const Term &term : terms)
    common = std::gcd(common, term.factor);
  CountForm form = *this;
  for (Term &term : form.terms)
    term.factor /= common;
  form.added = llvm::divideFloorSigned(added, common);
  form.divisor /= common;
  return form;
}

std::optional<CountForm> CountForm::plus(const CountForm &other) const {
  // max(x, 0) + y is max(x + y, 0) where y is not above 0, or x not below it.
  bool isLess = other.isConstant() && other.added <= 0;
  if (isConstant() && !other.isConstant())
    return other.plus(*this);
  if ((!isNeverNegative() && !isLess) || (!other.isNeverNegative() && !isLess))
    return std::nullopt;
  // floor(x / d) + y is floor((x + d y) / d).
  if (other.divisor != 1 && divisor == 1)
    return other.plus(*this);
  CountForm sum = *this;
  if (other.divisor != 1 || !sum.accumulate(other, divisor))
    return std::nullopt;
  return sum.normalized();
}

std::optional<CountForm> CountForm::minus(const CountForm &other) const {
  if (!other.isNeverNegative())
    return other.isConstant() ? plus(constant(-other.added)) : std::nullopt;
  CountForm difference = *this;
  if (other.divisor == 1)
    return difference.accumulate(other, -divisor) ? std::optional(difference.normalized()) : std::nullopt;
  // x - floor(y / d) is floor((d x - y + d - 1) / d).
  if (divisor != 1)
    return std::nullopt;
  difference = {{}, other.divisor - 1, other.divisor};
  if (!difference.accumulate(*this, other.divisor) || !difference.accumulate(other, -1))
    return std::nullopt;
  return difference.normalized();
}

std::optional<CountForm> CountForm::times(int64_t factor) const {
  if (factor == 0)
    return constant(0);
  CountForm product{{}, 0, 1};
  if (factor < 0 || divisor != 1 || !product.accumulate(*this, factor))
    return std::nullopt;
  return product;
}

std::optional<CountForm> CountForm::dividedBy(int64_t number) const {
  CountForm quotient = *this;
  std::optional<int64_t> product = llvm::checkedMul(divisor, number);
  if (!product)
    return std::nullopt;
  quotient.divisor = *product;
  return quotient.normalized();
}

int64_t CountForm::getBound(llvm::function_ref<int64_t(mlir::Value)> getBound) const {
  int64_t sum = added;
  for (const Term &term : terms)
    if (term.factor > 0) {
      std::optional<int64_t> next = llvm::checkedMulAdd(term.factor, getBound(term.count), sum);
      if (!next)
        return std::numeric_limits<int64_t>::max();
      sum = *next;
    }
  return std::max<int64_t>(sum, 0) / divisor;
}

int64_t CountForm::getLeast(llvm::function_ref<int64_t(mlir::Value)> getBound) const {
  int64_t sum = added;
  for (const Term &term : terms)
    if (term.factor < 0) {
      std::optional<int64_t> next = llvm::checkedMulAdd(term.factor, getBound(term.count), sum);
      if (!next)
        return std::numeric_limits<int64_t>::min();
      sum = *next;
    }
  return sum;
}

CountForm::Key CountForm::getKey() const {
  Key key;
  for (const Term &term : terms)
    key.emplace_back(term.count.getAsOpaquePointer(), term.factor);
  llvm::sort(key);
  key.emplace_back(nullptr, added);
  key.emplace_back(nullptr, divisor);
  return key;
}
