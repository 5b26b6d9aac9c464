//===- LeastCost.h - The least of many costs --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines findLeast, in which searches spend most of their time.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SEARCH_LEASTCOST_H
#define DOVETAIL_LIB_SEARCH_LEASTCOST_H

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace dovetail {

/// The least of some costs, infinite if there are none. Several are compared at a time, which compilers do together.
inline double findLeast(const std::vector<double> &costs) {
  constexpr size_t width = 8;
  std::array<double, width> least;
  least.fill(std::numeric_limits<double>::infinity());
  size_t i = 0;
  for (; i + width <= costs.size(); i += width)
    for (size_t j = 0; j < width; ++j)
      least[j] = std::min(least[j], costs[i + j]);
  for (; i < costs.size(); ++i)
    least[0] = std::min(least[0], costs[i]);
  return *std::min_element(least.begin(), least.end());
}

} // namespace dovetail

#endif // DOVETAIL_LIB_SEARCH_LEASTCOST_H
