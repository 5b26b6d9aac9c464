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

/// What some ranks receive or send in some dimensions, in elements.
struct Part {
  /// Moved to them or by them, and what of that they have themselves.
  int64_t moved = 1, kept = 1;
  /// Whom they receive from or send to; themselves, if they keep anything, among them.
  int64_t partners = 1;
  int64_t ranks = 1;
};

/// The different ones.
using Parts = std::vector<Part>;

/// Counts pieces of a dimension.
class Pieces {
public:
  explicit Pieces(const std::vector<Interval> &pieces) {
    for (Interval piece : pieces)
      if (!piece.empty()) {
        begins.push_back(piece.lo);
        ends.push_back(piece.hi);
      }
    sumUp(begins, beginSums);
    sumUp(ends, endSums);
  }

  /// How many have elements of `interval`. Costs the logarithm of how many there are.
  int64_t countIn(Interval interval) const {
    if (interval.empty())
      return 0;
    int64_t begun = std::lower_bound(begins.begin(), begins.end(), interval.hi) - begins.begin();
    int64_t ended = std::upper_bound(ends.begin(), ends.end(), interval.lo) - ends.begin();
    return begun - ended;
  }

  /// The elements of `interval` in all of them. Costs the same.
  int64_t sizeIn(Interval interval) const {
    return interval.empty() ? 0 : sizeBelow(interval.hi) - sizeBelow(interval.lo);
  }

private:
  /// Sorts positions and finds the sums of the first ones.
  static void sumUp(std::vector<int64_t> &positions, std::vector<int64_t> &sums) {
    std::sort(positions.begin(), positions.end());
    sums.assign(1, 0);
    for (int64_t position : positions)
      sums.push_back(sums.back() + position);
  }

  /// The elements below `position` in all of them: what lies between it and their begins, less what lies between it and
  /// their ends.
  int64_t sizeBelow(int64_t position) const {
    auto getDistance = [&](const std::vector<int64_t> &positions, const std::vector<int64_t> &sums) {
      int64_t below = std::lower_bound(positions.begin(), positions.end(), position) - positions.begin();
      return below * position - sums[below];
    };
    return getDistance(begins, beginSums) - getDistance(ends, endSums);
  }

  std::vector<int64_t> begins, beginSums, ends, endSums;
};

/// Dimensions that mesh axes connect.
struct DimGroup {
  std::vector<int> axes, dims;
};

} // namespace

static void add(Parts &parts, Part part) {
  for (Part &other : parts)
    if (other.moved == part.moved && other.kept == part.kept && other.partners == part.partners) {
      other.ranks += part.ranks;
      return;
    }
  parts.push_back(part);
}

/// Of ranks that differ in some dimensions and ranks that differ in others: all in both.
static void combine(Parts &all, const Parts &parts) {
  Parts combined;
  for (const Part &a : all)
    for (const Part &b : parts)
      add(combined, {a.moved * b.moved, a.kept * b.kept, a.partners * b.partners, a.ranks * b.ranks});
  all = std::move(combined);
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

static bool isIn(const std::vector<int> &axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

static bool splitsAny(const Sharding &sharding, const DimGroup &group, int axis) {
  return std::any_of(group.dims.begin(), group.dims.end(),
                     [&](int dim) { return isIn(sharding.dims[dim].axes, axis); });
}

namespace {

/// What ranks of one group of dimensions receive and send.
class GroupParts {
public:
  GroupParts(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
             const std::vector<int> &reducedAxes, const DimGroup &group);

  Parts received, sent;

private:
  /// The pieces of a dimension that ranks need which get it from the same ones: by the linear coordinate over `axes`.
  struct Targets {
    std::vector<int> axes;
    std::vector<Pieces> pieces;
  };
  Targets findTargets(const Mesh &mesh, const DimSharding &dim, int64_t extent);

  /// Axes on which source and target are at the same coordinate, as the source has the same at all of them.
  std::vector<int> fixedAxes;
};

} // namespace

GroupParts::Targets GroupParts::findTargets(const Mesh &mesh, const DimSharding &dim, int64_t extent) {
  Targets targets;
  int count = 1, coordinates = 1;
  for (int axis : dim.axes) {
    coordinates *= mesh.axisSize(axis);
    if (isIn(fixedAxes, axis)) {
      targets.axes.push_back(axis);
      count *= mesh.axisSize(axis);
    }
  }
  std::vector<std::vector<Interval>> pieces(count);
  std::vector<int> coords(mesh.numAxes());
  for (int coordinate = 0; coordinate < coordinates; ++coordinate) {
    setCoordinate(mesh, dim.axes, coordinate, coords);
    pieces[linearCoordinate(mesh, targets.axes, coords)].push_back(dim.pieceAt(coordinate, extent));
  }
  for (const std::vector<Interval> &own : pieces)
    targets.pieces.emplace_back(own);
  return targets;
}

GroupParts::GroupParts(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                       const std::vector<int> &reducedAxes, const DimGroup &group) {
  int coordinates = 1;
  int64_t replicas = 1;
  for (int axis : group.axes) {
    coordinates *= mesh.axisSize(axis);
    if (!splitsAny(from, group, axis) && !isIn(reducedAxes, axis))
      fixedAxes.push_back(axis);
    else if (!splitsAny(to, group, axis))
      replicas *= mesh.axisSize(axis);
  }
  std::vector<Pieces> sources;
  std::vector<Targets> targets;
  for (int dim : group.dims) {
    const DimSharding &source = from.dims[dim];
    sources.emplace_back(source.isSplit() ? source.pieces : std::vector<Interval>{{0, shape[dim]}});
    targets.push_back(findTargets(mesh, to.dims[dim], shape[dim]));
  }
  std::vector<int> coords(mesh.numAxes());
  for (int coordinate = 0; coordinate < coordinates; ++coordinate) {
    setCoordinate(mesh, group.axes, coordinate, coords);
    Part get, give;
    give.moved = give.partners = replicas;
    for (size_t i = 0; i < group.dims.size(); ++i) {
      int dim = group.dims[i];
      auto pieceOf = [&](const DimSharding &split) {
        return split.pieceAt(linearCoordinate(mesh, split.axes, coords), shape[dim]);
      };
      Interval needed = pieceOf(to.dims[dim]), held = pieceOf(from.dims[dim]);
      const Pieces &others = targets[i].pieces[linearCoordinate(mesh, targets[i].axes, coords)];
      get.moved *= needed.size();
      get.partners *= sources[i].countIn(needed);
      give.moved *= others.sizeIn(held);
      give.partners *= others.countIn(held);
      int64_t kept = needed.intersect(held).size();
      get.kept *= kept;
      give.kept *= kept;
    }
    add(received, get);
    add(sent, give);
  }
}

ExchangeVolume dovetail::layout::getExchangeVolume(const Mesh &mesh, std::span<const int64_t> shape,
                                                   const Sharding &from, const Sharding &to) {
  std::vector<int> reducedAxes = findReducedAxes(from, to);
  // Ranks that need the same, over axes of no group; of each contribution too.
  int64_t contributions = 1, replicas = mesh.numRanks(), receivers = 1;
  for (int axis : reducedAxes)
    contributions *= mesh.axisSize(axis);
  Parts received = {Part()}, sent = {Part()};
  std::vector<int> axes;
  for (const DimGroup &group : groupDims(from, to)) {
    GroupParts parts(mesh, shape, from, to, reducedAxes, group);
    combine(received, parts.received);
    combine(sent, parts.sent);
    axes.insert(axes.end(), group.axes.begin(), group.axes.end());
  }
  for (int axis = 0; axis < mesh.numAxes(); ++axis)
    if (isIn(axes, axis))
      replicas /= mesh.axisSize(axis);
    else if (isIn(reducedAxes, axis))
      receivers *= mesh.axisSize(axis);
  ExchangeVolume volume;
  for (const Part &part : received) {
    int64_t moved = part.moved * contributions - part.kept;
    volume.total += moved * part.ranks * replicas;
    volume.largest = std::max(volume.largest, moved);
    if (moved > 0)
      volume.sources = std::max(volume.sources, part.partners * contributions - (part.kept > 0));
  }
  for (const Part &part : sent) {
    int64_t moved = part.moved * receivers - part.kept;
    volume.largestSent = std::max(volume.largestSent, moved);
    if (moved > 0)
      volume.targets = std::max(volume.targets, part.partners * receivers - (part.kept > 0));
  }
  return volume;
}
