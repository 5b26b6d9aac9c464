//===- ExchangeVolume.cpp - How much an exchange moves --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements getExchangeVolume.
//
//===----------------------------------------------------------------------===//

#include "ReducedAxes.h"
#include "dovetail/Layout/Exchange.h"

#include <algorithm>

using namespace dovetail::layout;

namespace {

/// What some ranks need in some dimensions, and what of it they hold, in elements.
struct Need {
  int64_t needed = 1, held = 1;
  int64_t ranks = 1;
};

/// The different ones.
using Needs = std::vector<Need>;

/// Dimensions that mesh axes connect.
struct DimGroup {
  std::vector<int> axes, dims;
};

} // namespace

static void add(Needs &needs, Need need) {
  for (Need &other : needs)
    if (other.needed == need.needed && other.held == need.held) {
      other.ranks += need.ranks;
      return;
    }
  needs.push_back(need);
}

/// The groups of dimensions that share axes in `from` or `to`.
static std::vector<DimGroup> groupDims(const Sharding &from, const Sharding &to) {
  std::vector<DimGroup> groups;
  for (int dim = 0; dim < static_cast<int>(from.dims.size()); ++dim) {
    DimGroup group = {from.dims[dim].axes, {dim}};
    group.axes.insert(group.axes.end(), to.dims[dim].axes.begin(), to.dims[dim].axes.end());
    for (size_t i = 0; i < groups.size();) {
      bool isConnected = std::any_of(groups[i].axes.begin(), groups[i].axes.end(), [&](int axis) {
        return std::find(group.axes.begin(), group.axes.end(), axis) != group.axes.end();
      });
      if (!isConnected) {
        ++i;
        continue;
      }
      group.axes.insert(group.axes.end(), groups[i].axes.begin(), groups[i].axes.end());
      group.dims.insert(group.dims.end(), groups[i].dims.begin(), groups[i].dims.end());
      groups.erase(groups.begin() + i);
    }
    std::sort(group.axes.begin(), group.axes.end());
    group.axes.erase(std::unique(group.axes.begin(), group.axes.end()), group.axes.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

static Needs findNeeds(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                       const DimGroup &group) {
  int coordinates = 1;
  for (int axis : group.axes)
    coordinates *= mesh.axisSize(axis);
  Needs needs;
  std::vector<int> coords(mesh.numAxes());
  for (int coordinate = 0; coordinate < coordinates; ++coordinate) {
    setCoordinate(mesh, group.axes, coordinate, coords);
    Need need;
    for (int dim : group.dims) {
      auto pieceOf = [&](const DimSharding &split) {
        return split.pieceAt(linearCoordinate(mesh, split.axes, coords), shape[dim]);
      };
      Interval piece = pieceOf(to.dims[dim]);
      need.needed *= piece.size();
      need.held *= piece.intersect(pieceOf(from.dims[dim])).size();
    }
    add(needs, need);
  }
  return needs;
}

ExchangeVolume dovetail::layout::getExchangeVolume(const Mesh &mesh, std::span<const int64_t> shape,
                                                   const Sharding &from, const Sharding &to) {
  int64_t contributions = 1, replicas = mesh.numRanks();
  for (int axis : findReducedAxes(from, to))
    contributions *= mesh.axisSize(axis);
  Needs all = {Need()};
  for (const DimGroup &group : groupDims(from, to)) {
    for (int axis : group.axes)
      replicas /= mesh.axisSize(axis);
    Needs combined;
    Needs needs = findNeeds(mesh, shape, from, to, group);
    for (const Need &a : all)
      for (const Need &b : needs)
        add(combined, {a.needed * b.needed, a.held * b.held, a.ranks * b.ranks});
    all = std::move(combined);
  }
  ExchangeVolume volume;
  for (const Need &need : all) {
    int64_t received = need.needed * contributions - need.held;
    volume.total += received * need.ranks * replicas;
    volume.largest = std::max(volume.largest, received);
  }
  return volume;
}
