//===- Window.cpp - Windows in accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines windows, and what accesses need of a dimension.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Window.h"

#include "Saturate.h"

#include <utility>

using namespace dovetail;
using namespace dovetail::layout;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

AccessDim Window::at(const IndexExpr &index, const IndexExpr &tap) const {
  if (isTransposed)
    return {index + pad - tap * dilation, stride};
  return index * stride + tap * dilation - pad;
}

Interval Window::resultOf(Interval used) const {
  return {used.lo * stride - pad, (used.hi - 1) * stride - pad + reach()};
}

std::optional<Window> Window::find(const AccessDim &access, int loop, int tap, int64_t kernel) {
  std::optional<int64_t> index = access.index.getFactor(loop), step = access.index.getFactor(tap);
  if (kernel < 1 || !index || !step || *index < 1 || *step == 0)
    return std::nullopt;
  Window window;
  window.kernel = kernel;
  window.isTransposed = *step < 0;
  window.stride = window.isTransposed ? access.divisor : *index;
  window.dilation = window.isTransposed ? -*step : *step;
  window.pad = window.isTransposed ? access.index.getConstant() : -access.index.getConstant();
  if (!(window.at(IndexExpr::loop(loop), IndexExpr::loop(tap)) == access))
    return std::nullopt;
  return window;
}

//===----------------------------------------------------------------------===//
// Needs
//===----------------------------------------------------------------------===//

/// Whether `a * x + b * y == sum` for some x and y in these intervals, which are not empty; a and b are not 0.
static bool hasSolution(Wide a, Interval x, Wide b, Interval y, Wide sum) {
  // Coefficients of the greatest common divisor: a * s = g modulo b.
  Wide g = a, next = b, s = 1, nextS = 0;
  while (next != 0) {
    Wide quotient = g / next;
    g = std::exchange(next, g - quotient * next);
    s = std::exchange(nextS, s - quotient * nextS);
  }
  if (g < 0)
    g = -g, s = -s;
  if (sum % g != 0)
    return false;
  a /= g, b /= g, sum /= g;
  // Solutions are first + t * |b|, with y falling by a for each t, or rising if b is negative.
  Wide period = b < 0 ? -b : b;
  Wide first = (sum % period) * (s % period) % period;
  Wide from = ceilDivWide(x.lo - first, period), to = floorDivWide(x.hi - 1 - first, period);
  Wide atFirst = (sum - a * first) / b, step = b < 0 ? a : -a;
  Wide least = y.lo - atFirst, most = y.hi - 1 - atFirst;
  if (step < 0) {
    step = -step;
    least = std::exchange(most, -least);
    least = -least;
  }
  from = std::max(from, ceilDivWide(least, step));
  to = std::min(to, floorDivWide(most, step));
  return from <= to;
}

bool dovetail::layout::isRead(const AccessDim &access, int64_t element, std::span<const Interval> loops) {
  if (access.border != Border::None)
    return true;
  Wide rest = Wide(element) * access.divisor - access.index.getConstant();
  struct Multiple {
    Wide factor;
    Interval range;
  };
  std::vector<Multiple> multiples;
  for (const IndexExpr::Term &term : access.index.getTerms()) {
    Interval range = term.bounds(loops);
    if (range.empty())
      return false;
    if (range.hi - 1 == range.lo)
      rest -= Wide(term.factor) * range.lo;
    else if (term.kind != IndexExpr::Kind::Loop)
      return true;
    else
      multiples.push_back({term.factor, range});
  }
  if (multiples.size() > 2)
    return true;
  // Those that are missing are of 0 alone.
  multiples.resize(2, {1, {0, 1}});
  return hasSolution(multiples[0].factor, multiples[0].range, multiples[1].factor, multiples[1].range, rest);
}

DimNeed dovetail::layout::needInside(const AccessDim &access, std::span<const Interval> loops, Interval tensor,
                                     Interval held) {
  Interval span = access.need(loops), inside = span.intersect(tensor);
  while (!inside.empty() && !held.contains(inside.lo) && !isRead(access, inside.lo, loops))
    ++inside.lo;
  while (!inside.empty() && !held.contains(inside.hi - 1) && !isRead(access, inside.hi - 1, loops))
    --inside.hi;
  inside = inside.canonical();
  return {inside, inside.lo - span.lo, span.hi - inside.hi};
}

Box dovetail::layout::needOf(std::span<const AccessDim> access, std::span<const Interval> loops) {
  std::vector<Interval> needs;
  for (const AccessDim &dim : access)
    needs.push_back(dim.need(loops));
  return needs;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string dovetail::layout::str(const AccessDim &access) {
  std::string index = access.index.str();
  if (access.divisor != 1)
    return "exact((" + index + ") / " + std::to_string(access.divisor) + ")";
  switch (access.border) {
  case Border::None:
    return index;
  case Border::Edge:
    return "edge(" + index + ", " + access.within.str() + ")";
  case Border::Reflect:
    return "reflect(" + index + ", " + access.within.str() + ")";
  case Border::Wrap:
    return "wrap(" + index + ", " + access.within.str() + ")";
  }
  return index;
}
