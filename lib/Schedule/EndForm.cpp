//===- EndForm.cpp - Where loops end in a run -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EndForm.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace dovetail;

/// Numbers of forms stay below, so that sums of their products are no concern.
static constexpr int64_t kLarge = int64_t(1) << 30;
/// Steps of calls have small factors.
static constexpr int64_t kLargeStep = 1 << 20;

EndForm EndForm::length(unsigned number) {
  EndForm form = constant(0);
  form.factors.resize(number + 1, 0);
  form.factors[number] = 1;
  form.least = 0;
  return form;
}

int64_t EndForm::getConstant() const {
  int64_t value = llvm::divideFloorSigned(added, divisor);
  return least ? std::max(*least, value) : value;
}

std::optional<EndForm> EndForm::simplified() const {
  EndForm result = *this;
  while (!result.factors.empty() && result.factors.back() == 0)
    result.factors.pop_back();
  int64_t common = std::gcd(result.divisor, result.added);
  for (int64_t factor : result.factors)
    common = std::gcd(common, factor);
  result.divisor /= common;
  result.added /= common;
  bool isLarge =
      result.divisor > kLarge || std::abs(result.added) > kLarge || std::abs(result.least.value_or(0)) > kLarge;
  for (int64_t &factor : result.factors)
    isLarge |= (factor /= common) > kLarge;
  return isLarge ? std::nullopt : std::optional(result);
}

bool EndForm::align(EndForm &a, EndForm &b) {
  int64_t common = std::lcm(a.divisor, b.divisor);
  if (common > kLarge)
    return false;
  for (EndForm *form : {&a, &b}) {
    int64_t scale = common / form->divisor;
    form->added *= scale;
    form->divisor = common;
    form->factors.resize(std::max(a.factors.size(), b.factors.size()), 0);
    for (int64_t &factor : form->factors)
      factor *= scale;
  }
  return true;
}

std::optional<EndForm> EndForm::add(const EndForm &first, const EndForm &second) {
  if (second.isConstant() && !second.least && second.divisor == 1)
    return first.plus(second.added);
  if (first.isConstant() && !first.least && first.divisor == 1)
    return second.plus(first.added);
  EndForm a = first, b = second;
  // max(l, x) is at most x + max(0, l - what x has besides lengths).
  for (EndForm *form : {&a, &b})
    if (form->least)
      form->added = std::max(form->added, *form->least * form->divisor);
  if (!align(a, b))
    return std::nullopt;
  a.added += b.added;
  for (size_t i = 0; i < a.factors.size(); ++i)
    a.factors[i] += b.factors[i];
  a.least = first.least && second.least ? std::optional(*first.least + *second.least) : std::nullopt;
  return a.simplified();
}

std::optional<EndForm> EndForm::plus(int64_t number) const {
  EndForm sum = *this;
  if (std::abs(number) > kLarge)
    return std::nullopt;
  sum.added += number * divisor;
  if (sum.least)
    *sum.least += number;
  return sum.simplified();
}

std::optional<EndForm> EndForm::times(int64_t factor) const {
  EndForm product = *this;
  if (factor > kLarge)
    return std::nullopt;
  product.added *= factor;
  for (int64_t &own : product.factors)
    own *= factor;
  if (product.least)
    *product.least *= factor;
  return product.simplified();
}

std::optional<EndForm> EndForm::dividedBy(int64_t number) const {
  EndForm quotient = *this;
  if (number > kLarge)
    return std::nullopt;
  quotient.divisor *= number;
  if (quotient.least)
    quotient.least = llvm::divideFloorSigned(*quotient.least, number);
  return quotient.simplified();
}

std::optional<EndForm> EndForm::join(const EndForm &first, const EndForm &second) {
  EndForm a = first, b = second;
  auto asLeast = [](EndForm &form) { return form.isConstant() ? std::optional(form.getConstant()) : form.least; };
  std::optional<int64_t> least = asLeast(a), other = asLeast(b);
  if (other)
    least = least ? std::max(*least, *other) : *other;
  // A constant is a bound from below of the other one.
  if (a.isConstant() || b.isConstant()) {
    EndForm result = a.isConstant() ? b : a;
    result.least = least;
    return result.simplified();
  }
  if (!align(a, b))
    return std::nullopt;
  a.added = std::max(a.added, b.added);
  for (size_t i = 0; i < a.factors.size(); ++i)
    a.factors[i] = std::max(a.factors[i], b.factors[i]);
  a.least = least;
  return a.simplified();
}

bool EndForm::isBelow(const EndForm &first, const EndForm &second) {
  EndForm a = first, b = second;
  if (!align(a, b) || a.added > b.added)
    return false;
  for (size_t i = 0; i < a.factors.size(); ++i)
    if (a.factors[i] > b.factors[i])
      return false;
  return !a.least || (b.least && *a.least <= *b.least);
}

End End::at(std::optional<EndForm> form, int64_t step, int64_t beyond) {
  // Without steps all is part of the form.
  if (form && step == 1)
    form = form->plus(std::exchange(beyond, 0));
  form = form ? EndForm::join(*form, EndForm::constant(0)) : form;
  if (!form || step > kLargeStep || beyond > kLarge)
    return all();
  End end(Kind::At);
  end.form = *std::move(form);
  end.step = step;
  end.beyond = std::max<int64_t>(beyond, 0);
  return end;
}

End End::within(int64_t extent) const {
  bool isAll = kind == Kind::At && form.isConstant() &&
               static_cast<int64_t>(llvm::alignTo(std::max<int64_t>(form.getConstant(), 0), step)) + beyond >= extent;
  return isAll || (extent <= 1 && kind != Kind::None) ? all() : *this;
}

std::optional<EndForm> End::getPlain() const { return form.plus(step - 1 + beyond); }

End End::roundedUp(int64_t grid) const {
  if (!hasForm())
    return *this;
  return at(beyond == 0 ? std::optional(form) : getPlain(), std::lcm(step, grid));
}

End End::read(int64_t factor, int64_t last, int64_t divisor) const {
  // That of the last iteration and one more: (factor * (this - 1) + last) / divisor + 1.
  if (std::optional<EndForm> scaled = form.times(factor); scaled && factor * step % divisor == 0 && factor < kLarge) {
    int64_t rest = factor * (beyond - 1) + last + divisor;
    std::optional<EndForm> quotient = scaled->plus(divisor - 1);
    quotient = quotient ? quotient->dividedBy(divisor) : quotient;
    return divisor == 1 ? at(scaled, factor * step, rest)
                        : at(quotient, factor * step / divisor, llvm::divideFloorSigned(rest, divisor));
  }
  std::optional<EndForm> plain = getPlain();
  plain = plain ? plain->times(factor) : plain;
  plain = plain ? plain->plus(last - factor + divisor) : plain;
  return at(plain ? plain->dividedBy(divisor) : plain);
}

End End::join(const End &a, const End &b) {
  if (a.isNone() || b.isAll())
    return b;
  if (b.isNone() || a.isAll())
    return a;
  return at(EndForm::join(a.form, b.form), std::lcm(a.step, b.step), std::max(a.beyond, b.beyond));
}

End End::meet(const End &a, const EndForm &b) {
  if (a.isNone() || (a.hasForm() && a.step == 1 && (a.form.isConstant() || EndForm::isBelow(a.form, b))))
    return a;
  return at(b);
}
