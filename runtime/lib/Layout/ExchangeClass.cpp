//===- ExchangeClass.cpp - What an exchange amounts to -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Exchange.h"

#include "ReducedAxes.h"

#include <algorithm>

using namespace dovetail::layout;

namespace {
/// What happens to the axes that split a dimension.
enum class AxisChange { Same, Lost, Gained, Other };
} // namespace

const char *dovetail::layout::stringifyExchangeClass(ExchangeClass exchangeClass) {
  switch (exchangeClass) {
  case ExchangeClass::None:
    return "none";
  case ExchangeClass::Slice:
    return "slice";
  case ExchangeClass::Halo:
    return "halo";
  case ExchangeClass::AllGather:
    return "all-gather";
  case ExchangeClass::AllToAll:
    return "all-to-all";
  case ExchangeClass::AllReduce:
    return "all-reduce";
  case ExchangeClass::ReduceScatter:
    return "reduce-scatter";
  case ExchangeClass::General:
    return "general";
  }
  return "unknown";
}

/// Axes of `dim` that have more than one coordinate.
static std::vector<int> properAxes(const Mesh &mesh, const DimSharding &dim) {
  std::vector<int> axes;
  for (int axis : dim.axes)
    if (mesh.axisSize(axis) > 1)
      axes.push_back(axis);
  return axes;
}

/// Whether `part` is `whole` without some of its entries.
static bool isSubsequence(const std::vector<int> &part, const std::vector<int> &whole) {
  size_t matched = 0;
  for (int axis : whole)
    if (matched < part.size() && part[matched] == axis)
      ++matched;
  return matched == part.size();
}

static AxisChange compareAxes(const std::vector<int> &from, const std::vector<int> &to) {
  if (from == to)
    return AxisChange::Same;
  if (isSubsequence(to, from))
    return AxisChange::Lost;
  if (isSubsequence(from, to))
    return AxisChange::Gained;
  return AxisChange::Other;
}

ExchangeClass dovetail::layout::classify(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                         const Sharding &to) {
  bool allEqual = true, allKeep = true, allGrow = true, allMeet = true;
  for (int rank = 0, ranks = mesh.numRanks(); rank < ranks; ++rank) {
    Box held = from.boxOf(mesh, shape, rank);
    Box needed = to.boxOf(mesh, shape, rank);
    allEqual &= held == needed;
    allKeep &= held.contains(needed);
    allGrow &= needed.contains(held);
    allMeet &= held.empty() || needed.empty() || !held.intersect(needed).empty();
  }

  if (!findReducedAxes(mesh, from, to).empty())
    return allEqual ? ExchangeClass::AllReduce : allKeep ? ExchangeClass::ReduceScatter : ExchangeClass::General;
  if (allEqual)
    return ExchangeClass::None;
  if (allKeep)
    return ExchangeClass::Slice;

  bool axesStay = true, othersEqual = true;
  std::vector<int> lost, gained;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<int> before = properAxes(mesh, from.dims[dim]);
    std::vector<int> after = properAxes(mesh, to.dims[dim]);
    switch (compareAxes(before, after)) {
    case AxisChange::Same:
      othersEqual &= from.dims[dim].pieces == to.dims[dim].pieces;
      continue;
    case AxisChange::Lost:
      for (int axis : before)
        if (std::find(after.begin(), after.end(), axis) == after.end())
          lost.push_back(axis);
      break;
    case AxisChange::Gained:
      for (int axis : after)
        if (std::find(before.begin(), before.end(), axis) == before.end())
          gained.push_back(axis);
      break;
    case AxisChange::Other:
      return ExchangeClass::General;
    }
    axesStay = false;
  }
  if (axesStay)
    return allMeet ? ExchangeClass::Halo : ExchangeClass::General;
  if (!othersEqual)
    return ExchangeClass::General;
  if (gained.empty())
    return allGrow ? ExchangeClass::AllGather : ExchangeClass::General;
  bool allMoved = std::all_of(gained.begin(), gained.end(),
                              [&](int axis) { return std::find(lost.begin(), lost.end(), axis) != lost.end(); });
  return allMoved ? ExchangeClass::AllToAll : ExchangeClass::General;
}
