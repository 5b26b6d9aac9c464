//===- FourierPlan.cpp - Steps of fast Fourier transforms -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines FourierPlan.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/FourierPlan.h"

#include <cmath>
#include <numbers>

using namespace dovetail;

std::complex<double> dovetail::getRootOfOne(int64_t numerator, int64_t denominator) {
  numerator %= denominator;
  // Up to an eighth of a turn, where both functions are exact enough, and then as symmetry says.
  bool isNegative = 2 * numerator > denominator;
  if (isNegative)
    numerator = denominator - numerator;
  bool isBeyondQuarter = 4 * numerator > denominator;
  // In quarters of 1 / (4 * denominator).
  int64_t part = isBeyondQuarter ? 2 * denominator - 4 * numerator : 4 * numerator;
  bool isSwapped = 2 * part > denominator;
  if (isSwapped)
    part = denominator - part;
  long double angle = std::numbers::pi_v<long double> * part / (2 * static_cast<long double>(denominator));
  long double cosine = std::cos(angle), sine = std::sin(angle);
  if (isSwapped)
    std::swap(cosine, sine);
  if (isBeyondQuarter)
    cosine = -cosine;
  return {static_cast<double>(cosine), static_cast<double>(isNegative ? sine : -sine)};
}

std::optional<FourierPlan> FourierPlan::create(int64_t length, bool onesided) {
  constexpr int64_t largestFactor = 31, mostPoints = 8192;
  if (length < 1 || length > 2 * mostPoints || (onesided && length % 2 != 0))
    return std::nullopt;
  FourierPlan plan;
  plan.length = length;
  plan.onesided = onesided;
  plan.points = onesided ? length / 2 : length;
  if (plan.points > mostPoints)
    return std::nullopt;
  int64_t rest = plan.points, size = 1;
  auto take = [&](int64_t factor) {
    // The first step has no roots but one.
    plan.steps.push_back({factor, size, plan.tableSize});
    if (size > 1)
      plan.tableSize += size * (factor - 1);
    size *= factor;
    rest /= factor;
  };
  while (rest % 4 == 0)
    take(4);
  for (int64_t factor = 2; factor <= largestFactor; ++factor)
    while (rest % factor == 0)
      take(factor);
  if (rest != 1)
    return std::nullopt;
  plan.realRoots = plan.tableSize;
  if (onesided)
    plan.tableSize += plan.points + 1;
  plan.tableSize = std::max<int64_t>(plan.tableSize, 1);
  return plan;
}

llvm::SmallVector<double> FourierPlan::getTable() const {
  llvm::SmallVector<double> table(2 * tableSize, 0);
  auto set = [&](int64_t number, std::complex<double> root) {
    table[2 * number] = root.real();
    table[2 * number + 1] = root.imag();
  };
  for (const Step &step : steps)
    for (int64_t j = 0; step.size > 1 && j < step.size; ++j)
      for (int64_t t = 1; t < step.factor; ++t)
        set(step.roots + j * (step.factor - 1) + t - 1, getRootOfOne(j * t, step.size * step.factor));
  for (int64_t k = 0; onesided && k <= points; ++k)
    set(realRoots + k, getRootOfOne(k, length));
  return table;
}
