//===- IndexExpr.cpp - Indices as functions of loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines IndexExpr: its normal form, evaluation and bounds.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/IndexExpr.h"

#include "Saturate.h"
#include "dovetail/Layout/Arith.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <ostream>
#include <utility>

using namespace dovetail;
using namespace dovetail::layout;

//===----------------------------------------------------------------------===//
// Arithmetic that does not overflow
//===----------------------------------------------------------------------===//

static int64_t multiply(int64_t a, int64_t b) { return saturate(Wide(a) * b); }
static int64_t sum(int64_t a, int64_t b) { return saturate(Wide(a) + b); }
static int64_t floorMod(int64_t a, int64_t b) { return a - floorDiv(a, b) * b; }

static Interval scaled(Interval interval, int64_t factor) {
  if (interval.empty())
    return {};
  int64_t a = multiply(interval.lo, factor), b = multiply(interval.hi - 1, factor);
  return {std::min(a, b), std::max(a, b) + 1};
}

static Interval sum(Interval a, Interval b) {
  return a.empty() || b.empty() ? Interval{} : Interval{sum(a.lo, b.lo), sum(a.hi - 1, b.hi - 1) + 1};
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

static int order(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

using Values = std::shared_ptr<const std::vector<int64_t>>;

static int order(const Values &a, const Values &b) {
  if (a == b)
    return 0;
  return *a < *b ? -1 : *b < *a;
}

int IndexExpr::Term::compare(const Term &a, const Term &b) {
  if (int by = order(static_cast<int>(a.kind), static_cast<int>(b.kind)))
    return by;
  if (int by = order(a.number, b.number))
    return by;
  if (int by = order(a.divisor, b.divisor))
    return by;
  if (int by = order(a.hasOperand(), b.hasOperand()); by || !a.hasOperand())
    return by;
  if (int by = compare(*a.operand, *b.operand))
    return by;
  if (int by = order(a.first, b.first))
    return by;
  return order(a.last, b.last);
}

int IndexExpr::Term::compare(const IndexExpr &a, const IndexExpr &b) {
  if (int by = order(a.terms.size(), b.terms.size()))
    return by;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (int by = compare(a.terms[i], b.terms[i]))
      return by;
    if (int by = order(a.terms[i].factor, b.terms[i].factor))
      return by;
  }
  return order(a.constant, b.constant);
}

bool IndexExpr::Term::dependsOn(int loop) const {
  if (kind == Kind::Loop)
    return number == loop;
  return hasOperand() && operand->dependsOn(loop);
}

int64_t IndexExpr::Term::evaluate(std::span<const int64_t> loops) const {
  switch (kind) {
  case Kind::Loop:
    return loops[number];
  case Kind::Unknown:
    assert(first && *first == *last && "unknown values have no value here");
    return (*first)[std::clamp<int64_t>(operand->evaluate(loops), 0, first->size() - 1)];
  case Kind::Quotient:
    return layout::floorDiv(operand->evaluate(loops), divisor);
  case Kind::Remainder:
    return floorMod(operand->evaluate(loops), divisor);
  }
  return 0;
}

Interval IndexExpr::Term::bounds(std::span<const Interval> loops) const {
  if (kind == Kind::Loop)
    return loops[number];
  if (!hasOperand())
    return {-unbounded, unbounded};
  Interval inner = operand->bounds(loops);
  if (inner.empty())
    return {};
  int64_t last = inner.hi - 1;
  switch (kind) {
  case Kind::Quotient:
    return {layout::floorDiv(inner.lo, divisor), layout::floorDiv(last, divisor) + 1};
  case Kind::Remainder:
    if (layout::floorDiv(inner.lo, divisor) == layout::floorDiv(last, divisor))
      return {floorMod(inner.lo, divisor), floorMod(last, divisor) + 1};
    return {0, divisor};
  default:
    break;
  }
  int64_t end = first->size() - 1, from = std::clamp<int64_t>(inner.lo, 0, end), to = std::clamp<int64_t>(last, 0, end);
  Interval hull;
  for (int64_t i = from; i <= to; ++i)
    hull = hull.hull({(*first)[i], (*this->last)[i] + 1});
  return hull;
}

//===----------------------------------------------------------------------===//
// Normal form
//===----------------------------------------------------------------------===//

IndexExpr IndexExpr::ofTerm(Term term) {
  IndexExpr expr;
  expr.terms.push_back(std::move(term));
  return expr;
}

IndexExpr IndexExpr::loop(int number) {
  assert(number >= 0 && "loops are numbered from 0");
  Term term;
  term.number = number;
  return ofTerm(std::move(term));
}

IndexExpr IndexExpr::unknown(int number) {
  Term term;
  term.kind = Kind::Unknown;
  term.number = number;
  return ofTerm(std::move(term));
}

IndexExpr IndexExpr::unknown(int number, const IndexExpr &index, std::vector<int64_t> lo, std::vector<int64_t> last) {
  assert(!lo.empty() && lo.size() == last.size() && "one first and one last value each");
  Term term;
  term.kind = Kind::Unknown;
  term.number = number;
  term.operand = std::make_shared<const IndexExpr>(index);
  term.first = std::make_shared<const std::vector<int64_t>>(std::move(lo));
  term.last = std::make_shared<const std::vector<int64_t>>(std::move(last));
  return ofTerm(std::move(term));
}

void IndexExpr::add(const Term &term) {
  auto place = std::lower_bound(terms.begin(), terms.end(), term,
                                [](const Term &a, const Term &b) { return Term::compare(a, b) < 0; });
  if (place == terms.end() || Term::compare(*place, term) != 0) {
    if (term.factor != 0)
      terms.insert(place, term);
    return;
  }
  place->factor = sum(place->factor, term.factor);
  if (place->factor == 0)
    terms.erase(place);
}

IndexExpr dovetail::layout::operator+(const IndexExpr &a, const IndexExpr &b) {
  IndexExpr result = a;
  result.constant = sum(a.constant, b.constant);
  for (const IndexExpr::Term &term : b.terms)
    result.add(term);
  return result;
}

IndexExpr dovetail::layout::operator-(const IndexExpr &a, const IndexExpr &b) { return a + -b; }

IndexExpr dovetail::layout::operator*(const IndexExpr &a, int64_t factor) {
  if (factor == 0)
    return {};
  IndexExpr result = a;
  result.constant = multiply(a.constant, factor);
  for (IndexExpr::Term &term : result.terms)
    term.factor = multiply(term.factor, factor);
  return result;
}

IndexExpr IndexExpr::floorDiv(int64_t divisor) const {
  assert(divisor > 0 && "divisors are positive");
  if (divisor == 1)
    return *this;
  // Multiples of the divisor come out.
  IndexExpr outer = layout::floorDiv(constant, divisor), inner = floorMod(constant, divisor);
  int64_t common = divisor;
  for (const Term &term : terms) {
    if (term.factor % divisor == 0) {
      outer.add(term);
      auto place = std::find_if(outer.terms.begin(), outer.terms.end(),
                                [&](const Term &each) { return Term::compare(each, term) == 0; });
      place->factor = term.factor / divisor;
    } else {
      inner.add(term);
      common = std::gcd(common, term.factor);
    }
  }
  if (inner.terms.empty())
    return outer;
  // What all terms share divides, and the constant cannot tell the difference: floor((4x + 3) / 8) = floor(x / 2).
  for (Term &term : inner.terms)
    term.factor /= common;
  inner.constant = layout::floorDiv(inner.constant, common);
  divisor /= common;
  if (divisor == 1)
    return outer + inner;
  // floor((floor(x / a) + c) / b) = floor((x + a*c) / (a*b)).
  if (inner.terms.size() == 1 && inner.terms[0].kind == Kind::Quotient && inner.terms[0].factor == 1) {
    int64_t first = inner.terms[0].divisor;
    return outer + (*inner.terms[0].operand + multiply(first, inner.constant)).floorDiv(multiply(first, divisor));
  }
  Term quotient;
  quotient.kind = Kind::Quotient;
  quotient.divisor = divisor;
  quotient.operand = std::make_shared<const IndexExpr>(std::move(inner));
  return outer + ofTerm(std::move(quotient));
}

IndexExpr IndexExpr::mod(int64_t divisor) const {
  assert(divisor > 0 && "divisors are positive");
  IndexExpr inner = floorMod(constant, divisor);
  for (const Term &term : terms) {
    Term rest = term;
    rest.factor = floorMod(term.factor, divisor);
    inner.add(rest);
  }
  if (inner.terms.empty())
    return inner;
  Term remainder;
  remainder.kind = Kind::Remainder;
  remainder.divisor = divisor;
  remainder.operand = std::make_shared<const IndexExpr>(std::move(inner));
  return ofTerm(std::move(remainder));
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

std::optional<int> IndexExpr::asLoop() const {
  if (constant != 0 || terms.size() != 1 || terms[0].kind != Kind::Loop || terms[0].factor != 1)
    return std::nullopt;
  return terms[0].number;
}

std::optional<int64_t> IndexExpr::getFactor(int loop) const {
  int64_t factor = 0;
  for (const Term &term : terms) {
    if (!term.dependsOn(loop))
      continue;
    if (term.kind != Kind::Loop)
      return std::nullopt;
    factor = term.factor;
  }
  return factor;
}

bool IndexExpr::dependsOn(int loop) const {
  return std::any_of(terms.begin(), terms.end(), [&](const Term &term) { return term.dependsOn(loop); });
}

bool IndexExpr::hasUnknown() const {
  return std::any_of(terms.begin(), terms.end(), [](const Term &term) {
    return term.kind == Kind::Unknown || (term.hasOperand() && term.operand->hasUnknown());
  });
}

int64_t IndexExpr::evaluate(std::span<const int64_t> loops) const {
  Wide value = constant;
  for (const Term &term : terms)
    value += Wide(term.factor) * term.evaluate(loops);
  return saturate(value);
}

Interval IndexExpr::bounds(std::span<const Interval> loops) const {
  Interval result = {constant, constant + 1};
  for (const Term &term : terms)
    result = sum(result, scaled(term.bounds(loops), term.factor));
  return result;
}

IndexExpr IndexExpr::substitute(std::span<const IndexExpr> replacements) const {
  IndexExpr result = constant;
  for (const Term &term : terms) {
    switch (term.kind) {
    case Kind::Loop:
      result = result + replacements[term.number] * term.factor;
      break;
    case Kind::Unknown: {
      Term unknown = term;
      if (term.hasOperand())
        unknown.operand = std::make_shared<const IndexExpr>(term.operand->substitute(replacements));
      result.add(unknown);
      break;
    }
    case Kind::Quotient:
      result = result + term.operand->substitute(replacements).floorDiv(term.divisor) * term.factor;
      break;
    case Kind::Remainder:
      result = result + term.operand->substitute(replacements).mod(term.divisor) * term.factor;
      break;
    }
  }
  return result;
}

bool dovetail::layout::operator==(const IndexExpr &a, const IndexExpr &b) {
  return IndexExpr::Term::compare(a, b) == 0;
}

std::string IndexExpr::str() const {
  std::string text;
  auto append = [&](int64_t value, const std::string &name) {
    int64_t magnitude = value < 0 ? -value : value;
    text += text.empty() ? (value < 0 ? "-" : "") : (value < 0 ? " - " : " + ");
    text += name.empty() ? std::to_string(magnitude) : magnitude == 1 ? name : std::to_string(magnitude) + "*" + name;
  };
  for (const Term &term : terms) {
    switch (term.kind) {
    case Kind::Loop:
      append(term.factor, "d" + std::to_string(term.number));
      break;
    case Kind::Unknown:
      append(term.factor, "u" + std::to_string(term.number));
      break;
    case Kind::Quotient:
      append(term.factor, "floor((" + term.operand->str() + ") / " + std::to_string(term.divisor) + ")");
      break;
    case Kind::Remainder:
      append(term.factor, "((" + term.operand->str() + ") mod " + std::to_string(term.divisor) + ")");
      break;
    }
  }
  if (constant != 0 || text.empty())
    append(constant, "");
  return text;
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, const IndexExpr &expr) { return os << expr.str(); }

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

namespace {
/// An index that a loop reaches in one place: `floor((factor * loop + offset) / divisor)`.
struct Affine {
  int64_t factor, divisor;
  Interval offset; ///< Over the other loops.
};
} // namespace

static std::optional<Affine> getAffine(const IndexExpr &index, int loop, std::span<const Interval> loops) {
  const IndexExpr::Term *found = nullptr;
  Interval others = {index.getConstant(), index.getConstant() + 1};
  for (const IndexExpr::Term &term : index.getTerms()) {
    if (term.dependsOn(loop)) {
      if (found)
        return std::nullopt;
      found = &term;
      continue;
    }
    others = sum(others, scaled(term.bounds(loops), term.factor));
  }
  if (found->kind == IndexExpr::Kind::Loop)
    return Affine{found->factor, 1, others};
  if (found->kind != IndexExpr::Kind::Quotient || found->factor != 1)
    return std::nullopt;
  std::optional<Affine> inner = getAffine(found->getOperand(), loop, loops);
  if (!inner || inner->divisor != 1)
    return std::nullopt;
  return Affine{inner->factor, found->divisor, sum(inner->offset, scaled(others, found->divisor))};
}

int64_t dovetail::layout::continueInside(int64_t index, Interval within, Border border) {
  switch (border) {
  case Border::None:
    return index;
  case Border::Edge:
    return std::clamp(index, within.lo, within.hi - 1);
  case Border::Wrap:
    return within.lo + floorMod(index - within.lo, within.size());
  case Border::Reflect:
    break;
  }
  if (within.size() == 1)
    return within.lo;
  int64_t period = 2 * (within.size() - 1);
  int64_t position = floorMod(index - within.lo, period);
  return within.lo + std::min(position, period - position);
}

DimMap AccessDim::getMap(int loop, std::span<const Interval> loops) const {
  bool wraps = std::any_of(index.getTerms().begin(), index.getTerms().end(), [&](const IndexExpr::Term &term) {
    return term.kind == IndexExpr::Kind::Remainder && term.dependsOn(loop);
  });
  Interval hull = index.bounds(loops);
  if (!index.dependsOn(loop) || wraps || (hull.lo <= -unbounded && hull.hi >= unbounded))
    return DimMap::whole();
  if (index.getTerms().size() == 1 && divisor == 1 && index.getConstant() == 0) {
    const IndexExpr::Term &term = index.getTerms()[0];
    if (term.kind == IndexExpr::Kind::Unknown && term.factor == 1 && term.getOperand().asLoop() == loop &&
        static_cast<int64_t>(term.getFirst().size()) == loops[loop].hi)
      return DimMap::table({term.getFirst().begin(), term.getFirst().end()},
                           {term.getLast().begin(), term.getLast().end()});
  }
  std::optional<Affine> affine = getAffine(index, loop, loops);
  // A first index that is to be a whole number is rounded up.
  bool isContinued = border != Border::None && !within.contains(hull);
  if (!isContinued && affine && (affine->divisor == 1 || divisor == 1))
    return DimMap::affine(affine->factor, affine->divisor * divisor, affine->offset.lo + divisor - 1,
                          affine->offset.hi - 1);
  std::vector<int64_t> lo, last;
  std::vector<Interval> at(loops.begin(), loops.end());
  for (int64_t i = 0; i < loops[loop].hi; ++i) {
    at[loop] = {i, i + 1};
    Interval piece = need(at);
    lo.push_back(piece.lo);
    last.push_back(piece.hi - 1);
  }
  return DimMap::table(std::move(lo), std::move(last));
}

Interval AccessDim::need(std::span<const Interval> loops) const {
  Interval hull = index.bounds(loops);
  if (hull.empty())
    return {};
  if (border != Border::None && !within.contains(hull)) {
    if (border == Border::Edge)
      return {continueInside(hull.lo, within, border), continueInside(hull.hi - 1, within, border) + 1};
    Interval need;
    // A period reaches everything.
    for (int64_t i = hull.lo, end = std::min(hull.hi, hull.lo + 2 * within.size()); i < end; ++i) {
      int64_t position = continueInside(i, within, border);
      need = need.hull({position, position + 1});
    }
    return need;
  }
  return Interval{ceilDiv(hull.lo, divisor), floorDiv(hull.hi - 1, divisor) + 1}.canonical();
}
