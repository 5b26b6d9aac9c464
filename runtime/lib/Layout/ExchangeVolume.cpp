//===- ExchangeVolume.cpp - How much an exchange moves --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ExchangeCounter.
//
//===----------------------------------------------------------------------===//

#include "GroupParts.h"
#include "ReducedAxes.h"
#include "dovetail/Layout/Exchange.h"

#include <map>
#include <unordered_map>

using namespace dovetail::layout;

/// Of ranks that differ in some dimensions and ranks that differ in others: all in both.
static void combine(Parts &all, const Parts &parts) {
  Parts combined;
  combined.moved = all.moved * parts.moved;
  combined.kept = all.kept * parts.kept;
  for (const Part &a : all.greatest)
    for (const Part &b : parts.greatest)
      combined.addGreatest(
          {a.moved * b.moved, a.kept * b.kept, a.partners * b.partners, a.nearPartners * b.nearPartners});
  all = std::move(combined);
}

static bool isSplit(const Sharding &from, const Sharding &to, int dim) {
  return from.dims[dim].isSplit() || to.dims[dim].isSplit();
}

/// The groups of dimensions that share axes in `from` or `to`, of those that any axis splits.
static std::vector<DimGroup> groupDims(const Sharding &from, const Sharding &to) {
  std::vector<DimGroup> groups;
  for (int dim = 0; dim < static_cast<int>(from.dims.size()); ++dim) {
    if (!isSplit(from, to, dim))
      continue;
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

namespace {

/// What ranks receive and send in a group of dimensions.
struct BothParts {
  Parts received, sent;
};

struct HashSplit {
  size_t operator()(const DimSharding &dim) const {
    // FNV-1a, of whole numbers.
    uint64_t hash = 0xcbf29ce484222325;
    auto add = [&](int64_t number) { hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3; };
    for (int axis : dim.axes)
      add(axis);
    // Of many pieces some: what agrees in these mostly agrees in all.
    for (size_t i = 0, step = dim.pieces.size() / 32 + 1; i < dim.pieces.size(); i += step) {
      add(dim.pieces[i].lo);
      add(dim.pieces[i].hi);
    }
    return hash ^ (hash >> 32);
  }
};

} // namespace

struct ExchangeCounter::State {
  Mesh mesh;
  bool countSent;
  std::vector<int> nearAxes;
  /// Each way to split a dimension has a number.
  std::unordered_map<DimSharding, int64_t, HashSplit> numbers;
  /// Of groups of dimensions, by extent and both ways of each, and the axes of the group that are reduced.
  std::map<std::vector<int64_t>, BothParts> known;

  int64_t getNumber(const DimSharding &dim) {
    return dim.isSplit() ? numbers.try_emplace(dim, static_cast<int64_t>(numbers.size())).first->second : -1;
  }
  const BothParts &get(std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                       const std::vector<int> &reducedAxes, const DimGroup &group);
};

const BothParts &ExchangeCounter::State::get(std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                                             const std::vector<int> &reducedAxes, const DimGroup &group) {
  std::vector<int64_t> key;
  for (int dim : group.dims)
    key.insert(key.end(), {shape[dim], getNumber(from.dims[dim]), getNumber(to.dims[dim])});
  for (int axis : group.axes)
    if (isIn(reducedAxes, axis))
      key.push_back(axis);
  auto entry = known.lower_bound(key);
  if (entry == known.end() || entry->first != key) {
    GroupParts parts(mesh, shape, from, to, reducedAxes, nearAxes, group, countSent);
    entry = known.emplace_hint(entry, std::move(key), BothParts{std::move(parts.received), std::move(parts.sent)});
  }
  return entry->second;
}

ExchangeCounter::ExchangeCounter(Mesh mesh, bool countSent, std::vector<int> nearAxes)
    : state(new State{std::move(mesh), countSent, std::move(nearAxes), {}, {}}) {}
ExchangeCounter::ExchangeCounter(ExchangeCounter &&) noexcept = default;
ExchangeCounter &ExchangeCounter::operator=(ExchangeCounter &&) noexcept = default;
ExchangeCounter::~ExchangeCounter() = default;

ExchangeVolume dovetail::layout::getExchangeVolume(const Mesh &mesh, std::span<const int64_t> shape,
                                                   const Sharding &from, const Sharding &to, bool countSent,
                                                   const std::vector<int> &nearAxes) {
  return ExchangeCounter(mesh, countSent, nearAxes).get(shape, from, to);
}

ExchangeVolume ExchangeCounter::get(std::span<const int64_t> shape, const Sharding &from, const Sharding &to) {
  const Mesh &mesh = state->mesh;
  const std::vector<int> &nearAxes = state->nearAxes;
  std::vector<int> reducedAxes = findReducedAxes(from, to);
  // Ranks that need the same, over axes of no group; of each contribution too.
  int64_t contributions = 1, nearContributions = 1, replicas = mesh.numRanks(), receivers = 1, nearReceivers = 1;
  for (int axis : reducedAxes) {
    contributions *= mesh.axisSize(axis);
    nearContributions *= isIn(nearAxes, axis) ? mesh.axisSize(axis) : 1;
  }
  // What no axis splits all ranks have and need.
  Part whole;
  for (int dim = 0; dim < static_cast<int>(from.dims.size()); ++dim)
    if (!isSplit(from, to, dim)) {
      whole.moved *= shape[dim];
      whole.kept *= shape[dim];
    }
  Parts received, sent;
  received.add(whole);
  sent.add(whole);
  std::vector<int> axes;
  for (const DimGroup &group : groupDims(from, to)) {
    const BothParts &parts = state->get(shape, from, to, reducedAxes, group);
    combine(received, parts.received);
    if (state->countSent)
      combine(sent, parts.sent);
    axes.insert(axes.end(), group.axes.begin(), group.axes.end());
  }
  for (int axis = 0; axis < mesh.numAxes(); ++axis)
    if (isIn(axes, axis))
      replicas /= mesh.axisSize(axis);
    else if (isIn(reducedAxes, axis)) {
      receivers *= mesh.axisSize(axis);
      nearReceivers *= isIn(nearAxes, axis) ? mesh.axisSize(axis) : 1;
    }
  ExchangeVolume volume;
  volume.total = (received.moved * contributions - received.kept * nearContributions) * replicas;
  for (const Part &part : received.greatest) {
    int64_t moved = part.moved * contributions - part.kept * nearContributions;
    volume.largest = std::max(volume.largest, moved);
    if (moved > 0)
      volume.sources = std::max(volume.sources, part.partners * contributions - part.nearPartners * nearContributions);
  }
  if (!state->countSent)
    return volume;
  for (const Part &part : sent.greatest) {
    int64_t moved = part.moved * receivers - part.kept * nearReceivers;
    volume.largestSent = std::max(volume.largestSent, moved);
    if (moved > 0)
      volume.targets = std::max(volume.targets, part.partners * receivers - part.nearPartners * nearReceivers);
  }
  return volume;
}
