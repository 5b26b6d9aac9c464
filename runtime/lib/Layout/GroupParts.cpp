//===- GroupParts.cpp - What ranks move in some dimensions ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements GroupParts.
//
//===----------------------------------------------------------------------===//

#include "GroupParts.h"

using namespace dovetail::layout;

static bool splitsAny(const Sharding &sharding, const DimGroup &group, int axis) {
  return std::any_of(group.dims.begin(), group.dims.end(),
                     [&](int dim) { return isIn(sharding.dims[dim].axes, axis); });
}

/// By how much the linear coordinate over `axes` grows along each of `all`, of which they are some.
static std::vector<int> getSteps(const Mesh &mesh, const std::vector<int> &all, const std::vector<int> &axes) {
  std::vector<int> steps(all.size());
  int step = 1;
  for (size_t i = axes.size(); i-- > 0; step *= mesh.axisSize(axes[i]))
    steps[std::find(all.begin(), all.end(), axes[i]) - all.begin()] = step;
  return steps;
}

GroupParts::Dim GroupParts::makeDim(const Mesh &mesh, const DimSharding &from, const DimSharding &to,
                                    const Interval &whole, const DimGroup &group) const {
  Dim dim;
  dim.sources = from.isSplit() ? std::span<const Interval>(from.pieces) : std::span(&whole, 1);
  dim.targets = to.isSplit() ? std::span<const Interval>(to.pieces) : std::span(&whole, 1);
  Pieces sources(dim.sources);
  dim.partners.reserve(dim.targets.size());
  for (Interval piece : dim.targets)
    dim.partners.push_back(sources.countIn(piece));
  dim.sourceSteps = getSteps(mesh, group.axes, from.axes);
  dim.targetSteps = getSteps(mesh, group.axes, to.axes);
  dim.giveSteps = dim.heldSteps = dim.nearGiveSteps = std::vector<int>(group.axes.size());
  auto select = [](const std::vector<int> &axes, auto isSelected) {
    std::vector<int> selected;
    std::copy_if(axes.begin(), axes.end(), std::back_inserter(selected), isSelected);
    return selected;
  };
  int64_t numRanks = 1;
  for (int axis : group.axes)
    numRanks *= mesh.axisSize(axis);
  auto makeOverlaps = [&](std::span<const Interval> list, const std::vector<int> &listSteps,
                          std::span<const Interval> others, const std::vector<int> &axes, const std::vector<int> &fixed,
                          std::vector<int> &steps) {
    Overlaps overlaps(mesh, list, others, axes, fixed, numRanks);
    steps = getSteps(mesh, group.axes, fixed);
    for (size_t i = 0; i < group.axes.size(); ++i)
      steps[i] += listSteps[i] * overlaps.getNumCoordinates();
    return overlaps;
  };
  auto isFar = [&](int axis) { return !isIn(nearAxes, axis); };
  if (std::vector<int> far = select(from.axes, isFar); far != from.axes)
    dim.nearHeld = makeOverlaps(dim.targets, dim.targetSteps, dim.sources, from.axes, far, dim.heldSteps);
  if (!countSent)
    return dim;
  auto isFixed = [&](int axis) { return isIn(fixedAxes, axis); };
  dim.given = makeOverlaps(dim.sources, dim.sourceSteps, dim.targets, to.axes, select(to.axes, isFixed), dim.giveSteps);
  if (std::vector<int> same = select(to.axes, [&](int axis) { return isFixed(axis) || isFar(axis); }); same != to.axes)
    dim.nearGiven = makeOverlaps(dim.sources, dim.sourceSteps, dim.targets, to.axes, same, dim.nearGiveSteps);
  return dim;
}

void GroupParts::addAlongLast(const std::vector<Dim> &dims, int count, int64_t replicas, int64_t nearReplicas) {
  Part lastGet{-1, -1, -1, -1}, lastGive = lastGet;
  for (int i = 0; i < count; ++i) {
    Part get, give{replicas, nearReplicas, replicas, nearReplicas};
    for (const Dim &dim : dims) {
      auto at = [&](int base, const std::vector<int> &steps) { return base + (steps.empty() ? 0 : steps.back() * i); };
      int target = at(dim.target, dim.targetSteps);
      Interval needed = dim.targets[target];
      get.moved *= needed.size();
      get.partners *= dim.partners[target];
      int64_t own = needed.intersect(dim.sources[at(dim.source, dim.sourceSteps)]).size();
      std::pair<int64_t, int64_t> itself = {own, own > 0};
      auto [held, holders] = !dim.nearHeld ? itself : (*dim.nearHeld)[at(dim.held, dim.heldSteps)];
      get.kept *= std::min(held, needed.size());
      get.nearPartners *= holders;
      if (!countSent)
        continue;
      auto [size, partners] = (*dim.given)[at(dim.give, dim.giveSteps)];
      give.moved *= size;
      give.partners *= partners;
      auto [nearSize, takers] = !dim.nearGiven ? itself : (*dim.nearGiven)[at(dim.nearGive, dim.nearGiveSteps)];
      give.kept *= nearSize;
      give.nearPartners *= takers;
    }
    received.moved += get.moved;
    received.kept += get.kept;
    // Most ranks have as much as those beside them.
    if (!(get == lastGet))
      received.addGreatest(get);
    if (countSent && !(give == lastGive))
      sent.addGreatest(give);
    lastGet = get;
    lastGive = give;
  }
}

GroupParts::GroupParts(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                       const std::vector<int> &reducedAxes, const std::vector<int> &nearAxes, const DimGroup &group,
                       bool countSent)
    : nearAxes(nearAxes), countSent(countSent) {
  int64_t replicas = 1, nearReplicas = 1;
  for (int axis : group.axes)
    if (!splitsAny(from, group, axis) && !isIn(reducedAxes, axis))
      fixedAxes.push_back(axis);
    else if (!splitsAny(to, group, axis)) {
      replicas *= mesh.axisSize(axis);
      nearReplicas *= isIn(nearAxes, axis) ? mesh.axisSize(axis) : 1;
    }
  std::vector<Dim> dims;
  Box whole = Box::ofShape(shape);
  dims.reserve(group.dims.size());
  for (int dim : group.dims)
    dims.push_back(makeDim(mesh, from.dims[dim], to.dims[dim], whole[dim], group));
  size_t last = group.axes.size() - 1;
  std::vector<int> coords(last);
  while (true) {
    addAlongLast(dims, mesh.axisSize(group.axes[last]), replicas, nearReplicas);
    size_t place = last;
    for (; place > 0 && coords[place - 1] + 1 == mesh.axisSize(group.axes[place - 1]); --place) {
      for (Dim &dim : dims)
        dim.advance(place - 1, -coords[place - 1]);
      coords[place - 1] = 0;
    }
    if (place == 0)
      return;
    ++coords[place - 1];
    for (Dim &dim : dims)
      dim.advance(place - 1, 1);
  }
}
