//===- Exchange.cpp - Plans the transfers that change a sharding -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Exchange.h"

#include "ReducedAxes.h"

#include <cstdlib>
#include <ostream>
#include <utility>

using namespace dovetail::layout;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Calls `visit` with each choice of one index below each of `sizes`, the last
/// one varying fastest.
template <typename Visit> static void forEachChoice(std::span<const int> sizes, Visit visit) {
  for (int size : sizes)
    if (size == 0)
      return;
  std::vector<int> choice(sizes.size());
  while (true) {
    visit(std::as_const(choice));
    size_t i = sizes.size();
    while (i > 0 && ++choice[i - 1] == sizes[i - 1])
      choice[--i] = 0;
    if (i == 0)
      return;
  }
}

template <typename T> static int sizeOf(const std::vector<T> &list) { return static_cast<int>(list.size()); }

std::vector<int> dovetail::layout::findReducedAxes(const Sharding &from, const Sharding &to) {
  std::vector<int> axes;
  for (int axis : from.partialAxes)
    if (std::find(to.partialAxes.begin(), to.partialAxes.end(), axis) == to.partialAxes.end())
      axes.push_back(axis);
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<int> dovetail::layout::findReducedAxes(const Mesh &mesh, const Sharding &from, const Sharding &to) {
  std::vector<int> axes = findReducedAxes(from, to);
  std::erase_if(axes, [&](int axis) { return mesh.axisSize(axis) <= 1; });
  return axes;
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, const Transfer &transfer) {
  return os << transfer.source << " -> " << transfer.dest << ": " << transfer.box;
}

//===----------------------------------------------------------------------===//
// PieceIndex
//===----------------------------------------------------------------------===//

ExchangePlanner::PieceIndex::PieceIndex(std::vector<Interval> list) : pieces(std::move(list)) {
  for (int coordinate = 0; coordinate < sizeOf(pieces); ++coordinate)
    if (!pieces[coordinate].empty())
      order.push_back(coordinate);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(pieces[a].lo, a) < std::pair(pieces[b].lo, b); });
  maxHi.reserve(order.size());
  for (int coordinate : order) {
    if (maxHi.empty()) {
      maxHi.push_back(pieces[coordinate].hi);
      continue;
    }
    disjoint &= maxHi.back() <= pieces[coordinate].lo;
    maxHi.push_back(std::max(maxHi.back(), pieces[coordinate].hi));
  }
}

std::vector<int> ExchangePlanner::PieceIndex::overlapping(Interval interval, PlanStatistics *statistics) const {
  std::vector<int> found;
  if (interval.empty())
    return found;
  // Before `begin` every piece ends too early; from `end` on all start too
  // late.
  size_t begin = static_cast<size_t>(std::upper_bound(maxHi.begin(), maxHi.end(), interval.lo) - maxHi.begin());
  for (size_t i = begin; i < order.size(); ++i) {
    if (pieces[order[i]].lo >= interval.hi)
      break;
    if (statistics)
      ++statistics->visited;
    if (pieces[order[i]].hi > interval.lo)
      found.push_back(order[i]);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// ExchangePlanner
//===----------------------------------------------------------------------===//

ExchangePlanner::ExchangePlanner(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                 const Sharding &to)
    : mesh(mesh), shape(shape.begin(), shape.end()), from(from), to(to), reducedAxes(findReducedAxes(from, to)) {
  for (const DimSharding &dim : from.dims)
    fromIndex.emplace_back(dim.pieces);
  for (const DimSharding &dim : to.dims)
    toIndex.emplace_back(dim.pieces);
}

/// The parts of `needed` that a rank whose own linear coordinate over the axes
/// of `from.dims[dim]` is `ownCoordinate` takes from `coordinate`: what that
/// holds and no nearer one does. Ascending.
std::vector<Interval> ExchangePlanner::share(int dim, int coordinate, int ownCoordinate, Interval needed,
                                             PlanStatistics *statistics) const {
  Interval held = from.dims[dim].pieceAt(coordinate, shape[dim]);
  held = held.intersect(needed);
  if (held.empty())
    return {};
  std::vector<Interval> parts = {held};
  const PieceIndex &index = fromIndex[dim];
  if (coordinate == ownCoordinate || index.disjoint)
    return parts;
  auto distance = [&](int other) { return std::pair(std::abs(other - ownCoordinate), other); };
  for (int other : index.overlapping(held, statistics)) {
    if (distance(other) >= distance(coordinate))
      continue;
    std::vector<Interval> rest;
    for (Interval part : parts)
      for (Interval outside : subtract(part, index.pieces[other]))
        rest.push_back(outside);
    parts = std::move(rest);
  }
  return parts;
}

/// Where a rank whose own linear coordinate over the axes of `from.dims[dim]` is `ownCoordinate` takes the parts of
/// `needed` from. Ascending.
std::vector<ExchangePlanner::Segment> ExchangePlanner::findSegments(int dim, int ownCoordinate, Interval needed,
                                                                    PlanStatistics *statistics) const {
  const DimSharding &split = from.dims[dim];
  if (!split.isSplit())
    return {{needed, 0}};
  std::vector<Segment> segments;
  std::vector<int> candidates = {ownCoordinate};
  if (!split.pieces[ownCoordinate].contains(needed))
    candidates = fromIndex[dim].overlapping(needed, statistics);
  for (int coordinate : candidates)
    for (Interval part : share(dim, coordinate, ownCoordinate, needed, statistics))
      segments.push_back({part, coordinate});
  std::sort(segments.begin(), segments.end(),
            [](const Segment &a, const Segment &b) { return a.interval.lo < b.interval.lo; });
  return segments;
}

/// The coordinates over the axes of `to.dims[dim]` that need some of `held`, by position.
std::vector<int> ExchangePlanner::findTakers(int dim, Interval held, PlanStatistics *statistics) const {
  return to.dims[dim].isSplit() ? toIndex[dim].overlapping(held, statistics) : std::vector<int>{0};
}

std::vector<Transfer> ExchangePlanner::receives(int rank, PlanStatistics *statistics) const {
  std::vector<Transfer> transfers;
  Box needed = to.boxOf(mesh, shape, rank);
  if (needed.empty())
    return transfers;
  std::vector<int> ownCoords = mesh.coordsOf(rank);

  // In each dimension: which coordinate which part comes from.
  std::vector<std::vector<Segment>> segments;
  std::vector<int> sizes;
  for (int dim = 0; dim < needed.rank(); ++dim) {
    int own = linearCoordinate(mesh, from.dims[dim].axes, ownCoords);
    segments.push_back(findSegments(dim, own, needed[dim], statistics));
    sizes.push_back(sizeOf(segments.back()));
  }

  std::vector<int> reducedSizes;
  for (int axis : reducedAxes)
    reducedSizes.push_back(mesh.axisSize(axis));
  forEachChoice(sizes, [&](const std::vector<int> &choice) {
    Box box = needed;
    std::vector<int> coords = ownCoords;
    for (int dim = 0; dim < box.rank(); ++dim) {
      const Segment &segment = segments[dim][choice[dim]];
      box[dim] = segment.interval;
      setCoordinate(mesh, from.dims[dim].axes, segment.coordinate, coords);
    }
    forEachChoice(reducedSizes, [&](const std::vector<int> &contribution) {
      for (size_t i = 0; i < reducedAxes.size(); ++i)
        coords[reducedAxes[i]] = contribution[i];
      int source = mesh.rankOf(coords);
      if (source != rank)
        transfers.push_back({source, rank, box});
    });
  });
  return transfers;
}

std::vector<Transfer> ExchangePlanner::sends(int rank, PlanStatistics *statistics) const {
  std::vector<Transfer> transfers;
  Box held = from.boxOf(mesh, shape, rank);
  if (held.empty())
    return transfers;
  std::vector<int> ownCoords = mesh.coordsOf(rank);

  // A destination may differ from this rank on the axes that split `from` or
  // are reduced, and only on those: on others it reads its own replica.
  std::vector<bool> mayDiffer(mesh.numAxes()), chosen(mesh.numAxes());
  for (const DimSharding &dim : from.dims)
    for (int axis : dim.axes)
      mayDiffer[axis] = true;
  for (int axis : reducedAxes)
    mayDiffer[axis] = true;

  // Where `to` is split: the coordinates whose piece meets what this rank
  // holds. Axes that split nothing in `to` are free: all their coordinates need
  // it.
  std::vector<std::vector<int>> candidates(shape.size());
  std::vector<int> sizes;
  for (int dim = 0; dim < held.rank(); ++dim) {
    const std::vector<int> &axes = to.dims[dim].axes;
    for (int axis : axes)
      chosen[axis] = true;
    std::vector<int> coords = ownCoords;
    for (int coordinate : findTakers(dim, held[dim], statistics)) {
      setCoordinate(mesh, axes, coordinate, coords);
      if (std::all_of(axes.begin(), axes.end(),
                      [&](int axis) { return mayDiffer[axis] || coords[axis] == ownCoords[axis]; }))
        candidates[dim].push_back(coordinate);
    }
    sizes.push_back(sizeOf(candidates[dim]));
  }
  std::vector<int> freeAxes;
  for (int axis = 0; axis < mesh.numAxes(); ++axis) {
    if (!mayDiffer[axis] || chosen[axis])
      continue;
    freeAxes.push_back(axis);
    sizes.push_back(mesh.axisSize(axis));
  }

  forEachChoice(sizes, [&](const std::vector<int> &choice) {
    if (statistics)
      ++statistics->visited;
    std::vector<int> coords = ownCoords;
    for (int dim = 0; dim < held.rank(); ++dim)
      setCoordinate(mesh, to.dims[dim].axes, candidates[dim][choice[dim]], coords);
    for (size_t i = 0; i < freeAxes.size(); ++i)
      coords[freeAxes[i]] = choice[shape.size() + i];
    int dest = mesh.rankOf(coords);
    if (dest == rank)
      return;
    // What it takes from here, not from a nearer rank that holds it too.
    std::vector<std::vector<Interval>> parts;
    std::vector<int> partSizes;
    for (int dim = 0; dim < held.rank(); ++dim) {
      const DimSharding &split = from.dims[dim];
      Interval needed = to.dims[dim].pieceAt(linearCoordinate(mesh, to.dims[dim].axes, coords), shape[dim]);
      parts.push_back(share(dim, linearCoordinate(mesh, split.axes, ownCoords),
                            linearCoordinate(mesh, split.axes, coords), needed, statistics));
      partSizes.push_back(sizeOf(parts.back()));
    }
    forEachChoice(partSizes, [&](const std::vector<int> &part) {
      Box box = held;
      for (int dim = 0; dim < box.rank(); ++dim)
        box[dim] = parts[dim][part[dim]];
      transfers.push_back({rank, dest, std::move(box)});
    });
  });
  std::sort(transfers.begin(), transfers.end(), [](const Transfer &a, const Transfer &b) {
    if (a.dest != b.dest)
      return a.dest < b.dest;
    return std::lexicographical_compare(a.box.begin(), a.box.end(), b.box.begin(), b.box.end(),
                                        [](Interval x, Interval y) { return x.lo < y.lo; });
  });
  return transfers;
}

std::vector<Box> ExchangePlanner::local(int rank) const {
  Box box = to.boxOf(mesh, shape, rank).intersect(from.boxOf(mesh, shape, rank));
  return box.empty() ? std::vector<Box>() : std::vector<Box>{box};
}

//===----------------------------------------------------------------------===//
// Single calls
//===----------------------------------------------------------------------===//

std::vector<Transfer> dovetail::layout::planReceives(const Mesh &mesh, std::span<const int64_t> shape,
                                                     const Sharding &from, const Sharding &to, int rank) {
  return ExchangePlanner(mesh, shape, from, to).receives(rank);
}

int64_t dovetail::layout::receiveVolume(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                        const Sharding &to, int rank) {
  int64_t volume = 0;
  for (const Transfer &transfer : planReceives(mesh, shape, from, to, rank))
    volume += transfer.box.volume();
  return volume;
}

int64_t dovetail::layout::lowerBound(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                     const Sharding &to, int rank) {
  int64_t contributions = 1;
  for (int axis : findReducedAxes(from, to))
    contributions *= mesh.axisSize(axis);
  Box needed = to.boxOf(mesh, shape, rank);
  Box held = from.boxOf(mesh, shape, rank);
  return needed.volume() * contributions - needed.intersect(held).volume();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

bool dovetail::layout::verifyExchange(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                      const Sharding &to, std::string *why) {
  auto fail = [&](std::string reason) {
    if (why)
      *why = std::move(reason);
    return false;
  };
  std::string reason;
  if (!from.verify(mesh, shape, &reason))
    return fail("source sharding: " + reason);
  if (!to.verify(mesh, shape, &reason))
    return fail("destination sharding: " + reason);

  for (int axis : to.partialAxes)
    if (std::find(from.partialAxes.begin(), from.partialAxes.end(), axis) == from.partialAxes.end())
      return fail("the destination is partial over mesh axis \"" + mesh.getAxes()[axis].name + "\", the source is not");
  if (to.isPartial() && to.partialKind != from.partialKind)
    return fail(std::string("the source is partial with reduction ") + stringifyReductionKind(from.partialKind) +
                ", the destination with " + stringifyReductionKind(to.partialKind));

  // No axis splits two dimensions, so every combination of pieces is needed by
  // some rank, unless all of them are empty.
  int rank = static_cast<int>(shape.size());
  for (int dim = 0; dim < rank; ++dim) {
    const DimSharding &split = to.dims[dim];
    bool anyNeeded = !split.isSplit() && shape[dim] > 0;
    for (Interval piece : split.pieces)
      anyNeeded |= !piece.empty();
    if (!anyNeeded)
      return true;
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (!from.dims[dim].isSplit())
      continue;
    std::vector<Interval> held;
    for (Interval piece : from.dims[dim].pieces)
      if (!piece.empty())
        held.push_back(piece);
    std::sort(held.begin(), held.end(),
              [](Interval a, Interval b) { return std::pair(a.lo, a.hi) < std::pair(b.lo, b.hi); });
    // Joined to disjoint runs, so that each piece is found by binary search.
    std::vector<Interval> runs;
    for (Interval piece : held) {
      if (runs.empty() || piece.lo > runs.back().hi)
        runs.push_back(piece);
      else
        runs.back().hi = std::max(runs.back().hi, piece.hi);
    }
    const DimSharding &split = to.dims[dim];
    int count = split.isSplit() ? sizeOf(split.pieces) : 1;
    for (int coordinate = 0; coordinate < count; ++coordinate) {
      Interval needed = split.pieceAt(coordinate, shape[dim]);
      if (needed.empty())
        continue;
      auto run = std::upper_bound(runs.begin(), runs.end(), needed.lo,
                                  [](int64_t lo, Interval candidate) { return lo < candidate.hi; });
      // The first run that ends after the piece's start decides.
      Interval missing = needed;
      if (run != runs.end() && run->lo <= needed.lo) {
        missing.lo = run->hi;
        ++run;
      }
      if (run != runs.end())
        missing.hi = std::min(needed.hi, run->lo);
      if (!missing.empty())
        return fail("elements " + missing.str() + " of dimension " + std::to_string(dim) +
                    " are needed at coordinate " + std::to_string(coordinate) + ", but no rank holds them");
    }
  }
  return true;
}
