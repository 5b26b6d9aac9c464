//===- DimMap.cpp - Relation of an operand dimension to a loop dimension -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/DimMap.h"

#include "Saturate.h"
#include "dovetail/Layout/Arith.h"

#include <cassert>
#include <numeric>
#include <ostream>
#include <utility>

using namespace dovetail::layout;

//===----------------------------------------------------------------------===//
// Arithmetic that does not overflow
//===----------------------------------------------------------------------===//

/// `floor((num*i + offset) / den)`.
static int64_t evaluate(int64_t num, int64_t den, int64_t i, int64_t offset) {
  return floorDivSum(num, i, offset, den);
}

//===----------------------------------------------------------------------===//
// Factories
//===----------------------------------------------------------------------===//

DimMap DimMap::affine(int64_t num, int64_t den, int64_t offLo, int64_t offHi) {
  assert(den > 0 && "denominator must be positive");
  DimMap map(Kind::Affine);
  map.num = num;
  map.den = den;
  map.offLo = offLo;
  map.offHi = offHi;
  return map;
}

DimMap DimMap::window(int64_t kernel, int64_t stride, int64_t dilation, int64_t padLo) {
  return affine(stride, 1, -padLo, -padLo + (kernel - 1) * dilation);
}

DimMap DimMap::table(std::vector<int64_t> lo, std::vector<int64_t> last) {
  assert(lo.size() == last.size() && "one first and one last index each");
  auto entries = std::make_shared<Table>();
  bool anyEmpty = false;
  int64_t rises = 0, falls = 0;
  std::optional<Wide> before;
  for (size_t i = 0; i < lo.size(); ++i) {
    if (lo[i] > last[i]) {
      anyEmpty = true;
      continue;
    }
    Wide sum = Wide(lo[i]) + last[i];
    rises += before && sum > *before;
    falls += before && sum < *before;
    before = sum;
  }
  entries->monotone = falls == 0 && !anyEmpty;
  entries->backwards = falls > rises;
  entries->lo = std::move(lo);
  entries->last = std::move(last);
  DimMap map(Kind::Table);
  map.entries = std::move(entries);
  return map;
}

std::span<const int64_t> DimMap::getTableLo() const {
  return entries ? std::span<const int64_t>(entries->lo) : std::span<const int64_t>();
}

std::span<const int64_t> DimMap::getTableLast() const {
  return entries ? std::span<const int64_t>(entries->last) : std::span<const int64_t>();
}

//===----------------------------------------------------------------------===//
// Need
//===----------------------------------------------------------------------===//

Interval DimMap::need(Interval loop) const {
  switch (kind) {
  case Kind::Whole:
    return {0, unbounded};
  case Kind::Point:
    return {0, 1};
  case Kind::Table: {
    loop = loop.intersect({0, static_cast<int64_t>(entries->lo.size())});
    Interval hull;
    for (int64_t i = loop.lo; i < loop.hi; ++i)
      hull = hull.hull({entries->lo[i], entries->last[i] + 1});
    return hull;
  }
  case Kind::Affine:
    break;
  }
  if (loop.empty())
    return {};
  auto first = [&](int64_t i) { return evaluate(num, den, i, offLo); };
  auto last = [&](int64_t i) { return evaluate(num, den, i, offHi); };
  int64_t lo = loop.lo, hi = loop.hi - 1;
  if (offLo > offHi) {
    // Some indices need nothing; which ones repeats with a period of at most
    // `den`.
    int64_t reach = std::min(hi - lo, den - 1);
    int64_t skipped = 0;
    while (skipped <= reach && first(lo + skipped) > last(lo + skipped))
      ++skipped;
    if (skipped > reach)
      return {};
    lo += skipped;
    while (first(hi) > last(hi))
      --hi;
  }
  // Both bounds are monotone in the index.
  if (num < 0)
    std::swap(lo, hi);
  return Interval{first(lo), last(hi) + 1}.canonical();
}

Interval DimMap::needClipped(Interval loop, int64_t operandExtent) const {
  Interval operand = {0, operandExtent};
  return hasLoop() ? need(loop).intersect(operand) : operand.canonical();
}

//===----------------------------------------------------------------------===//
// Follow
//===----------------------------------------------------------------------===//

bool DimMap::canFollow() const {
  return (kind == Kind::Affine && num > 0) || (kind == Kind::Table && !entries->backwards);
}

/// Where a table is cut for the operand cut `cut`: the split point with the
/// fewest indices whose centre is on the wrong side, in the middle of the
/// indices that are right on the cut.
static int64_t cutTable(std::span<const int64_t> lo, std::span<const int64_t> last, bool monotone, int64_t cut) {
  int64_t size = static_cast<int64_t>(lo.size());
  // Centres are compared doubled: the cut lies half before index `cut`.
  Wide position = Wide(cut) * 2 - 1;
  auto side = [&](int64_t i) {
    if (lo[i] > last[i])
      return 0;
    Wide sum = Wide(lo[i]) + last[i];
    return sum < position ? -1 : sum > position;
  };
  if (monotone) {
    auto firstWith = [&](int wanted) {
      int64_t begin = 0, end = size;
      while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (side(middle) < wanted)
          begin = middle + 1;
        else
          end = middle;
      }
      return begin;
    };
    return (firstWith(0) + firstWith(1) + 1) / 2;
  }
  int64_t cost = 0, leastCost = 0, first = 0;
  for (int64_t i = 0; i < size; ++i) {
    cost += side(i);
    if (cost < leastCost) {
      leastCost = cost;
      first = i + 1;
    }
  }
  int64_t end = first;
  while (end < size && side(end) == 0)
    ++end;
  return (first + end + 1) / 2;
}

int64_t DimMap::followCut(int64_t cut, int64_t operandExtent, int64_t loopExtent) const {
  if (cut <= 0)
    return 0;
  if (cut >= operandExtent)
    return loopExtent;
  if (kind == Kind::Table)
    return std::min(cutTable(entries->lo, entries->last, entries->monotone, cut), loopExtent);
  auto middle = static_cast<int64_t>(floorDivWide(Wide(offLo) + offHi, 2));
  // Rounded up.
  int64_t index = -floorDivSum(-cut, den, middle, num);
  return std::clamp<int64_t>(index, 0, loopExtent);
}

int64_t DimMap::followCutBack(int64_t loopCut, int64_t operandExtent, int64_t loopExtent) const {
  if (loopCut <= 0)
    return 0;
  if (loopCut >= loopExtent)
    return operandExtent;
  if (kind == Kind::Table) {
    // The last operand cut that is not followed beyond `loopCut`.
    int64_t begin = 0, end = operandExtent;
    while (begin + 1 < end) {
      int64_t middle = begin + (end - begin) / 2;
      if (followCut(middle, operandExtent, loopExtent) <= loopCut)
        begin = middle;
      else
        end = middle;
    }
    return begin;
  }
  // The operand cuts that are followed to `loopCut`: none or `first ...
  // centre`.
  auto middle = static_cast<int64_t>(floorDivWide(Wide(offLo) + offHi, 2));
  int64_t centre = floorDivSum(num, loopCut, middle, den);
  int64_t first = std::min(floorDivSum(num, loopCut - 1, middle, den) + 1, unbounded);
  int64_t stride = num / std::gcd(num, den);
  int64_t aligned = floorDiv(centre, stride) * stride;
  int64_t chosen = aligned >= first ? aligned : centre;
  // At an end of the operand, a cut would be followed to that end; the nearest
  // one inside may do.
  if (chosen <= 0 && centre > 0)
    chosen = std::max<int64_t>(first, 1);
  if (chosen >= operandExtent && first < operandExtent)
    chosen = std::min(centre, operandExtent - 1);
  return std::clamp<int64_t>(chosen, 0, operandExtent);
}

std::optional<std::vector<int64_t>> DimMap::follow(std::span<const int64_t> cuts, int64_t loopExtent) const {
  if (!canFollow() || cuts.empty())
    return std::nullopt;
  std::vector<int64_t> loopCuts;
  loopCuts.reserve(cuts.size());
  for (int64_t cut : cuts)
    loopCuts.push_back(followCut(cut, cuts.back(), loopExtent));
  loopCuts.front() = 0;
  loopCuts.back() = loopExtent;
  return loopCuts;
}

std::optional<std::vector<int64_t>> DimMap::followBack(std::span<const int64_t> loopCuts, int64_t operandExtent) const {
  if (!canFollow() || loopCuts.empty())
    return std::nullopt;
  std::vector<int64_t> cuts;
  cuts.reserve(loopCuts.size());
  for (int64_t cut : loopCuts)
    cuts.push_back(followCutBack(cut, operandExtent, loopCuts.back()));
  cuts.front() = 0;
  cuts.back() = operandExtent;
  return cuts;
}

//===----------------------------------------------------------------------===//
// Equality and printing
//===----------------------------------------------------------------------===//

bool dovetail::layout::operator==(const DimMap &a, const DimMap &b) {
  if (a.kind != b.kind)
    return false;
  if (a.kind == DimMap::Kind::Table)
    return a.entries == b.entries || (a.entries->lo == b.entries->lo && a.entries->last == b.entries->last);
  return a.num == b.num && a.den == b.den && a.offLo == b.offLo && a.offHi == b.offHi;
}

std::string DimMap::str() const {
  switch (kind) {
  case Kind::Whole:
    return "whole";
  case Kind::Point:
    return "point";
  case Kind::Table:
    return "table of " + std::to_string(entries->lo.size());
  case Kind::Affine:
    break;
  }
  auto bound = [&](int64_t offset) {
    std::string text = num == 1 ? "i" : num == -1 ? "-i" : std::to_string(num) + "*i";
    if (offset != 0)
      text += (offset > 0 ? " + " : " - ") + std::to_string(offset > 0 ? offset : -offset);
    if (den == 1)
      return text;
    return (num == 1 && offset == 0 ? text : "(" + text + ")") + " / " + std::to_string(den);
  };
  return offLo == offHi ? bound(offLo) : bound(offLo) + " ... " + bound(offHi);
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, const DimMap &map) { return os << map.str(); }
