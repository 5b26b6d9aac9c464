//===- ExchangeKind.cpp - How ranks carry out an exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/ExchangeKind.h"

#include "ReducedAxes.h"

#include "dovetail/Layout/Cuts.h"

#include <algorithm>

using namespace dovetail::layout;

const char *dovetail::layout::stringifyExchangeKind(ExchangeKind kind) {
  switch (kind) {
  case ExchangeKind::Messages:
    return "messages";
  case ExchangeKind::AllReduce:
    return "all-reduce";
  case ExchangeKind::ReduceScatter:
    return "reduce-scatter";
  case ExchangeKind::AllGather:
    return "all-gather";
  case ExchangeKind::PackedGather:
    return "packed all-gather";
  }
  return "unknown";
}

static bool contains(const std::vector<int> &list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

static bool splits(const Sharding &sharding, int axis) {
  return std::any_of(sharding.dims.begin(), sharding.dims.end(),
                     [&](const DimSharding &dim) { return contains(dim.axes, axis); });
}

/// Axes, ascending, on which the ranks of a group differ: those that are reduced, or else those along which pieces are
/// collected.
static std::vector<int> findGroupAxes(const Mesh &mesh, const Sharding &from, const Sharding &to) {
  std::vector<int> axes = findReducedAxes(mesh, from, to);
  if (!axes.empty())
    return axes;
  for (int axis = 0; axis < mesh.numAxes(); ++axis)
    if (mesh.axisSize(axis) > 1 && splits(from, axis) && !splits(to, axis))
      axes.push_back(axis);
  return axes;
}

static std::vector<int> findMembers(const Mesh &mesh, const std::vector<int> &axes, int rank) {
  std::vector<int> coords = mesh.coordsOf(rank), members;
  int count = 1;
  for (int axis : axes)
    count *= mesh.axisSize(axis);
  for (int i = 0; i < count; ++i) {
    setCoordinate(mesh, axes, i, coords);
    members.push_back(mesh.rankOf(coords));
  }
  return members;
}

/// Where in the memory of `held` the elements of `part` begin, if they lie there without gaps and as in a message.
static std::optional<int64_t> findInMemory(const TensorMemory &memory, const Box &held, const Box &part,
                                           const MemoryFormat &message) {
  std::vector<int64_t> strides = memory.format.strides(held), dense = message.strides(part);
  int64_t offset = 0;
  for (int dim = 0; dim < held.rank(); ++dim) {
    // Where the part has one coordinate only, the stride says nothing.
    if (part[dim].size() > 1 && strides[dim] != dense[dim])
      return std::nullopt;
    offset += (part[dim].lo - held[dim].lo) * strides[dim];
  }
  return offset;
}

/// Whether the parts lie in the memory of `held` one after another, each as in a message.
static bool followEachOther(const TensorMemory &memory, const Box &held, const std::vector<Box> &parts,
                            const MemoryFormat &message) {
  std::optional<int64_t> begin = findInMemory(memory, held, parts[0], message);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::optional<int64_t> offset = findInMemory(memory, held, parts[i], message);
    if (!offset || *offset != *begin + static_cast<int64_t>(i) * parts[0].volume())
      return false;
  }
  return true;
}

CollectiveGroup dovetail::layout::collectiveGroup(const Mesh &mesh, std::span<const int64_t> shape,
                                                  const Sharding &from, const Sharding &to, ExchangeKind kind,
                                                  int rank) {
  if (kind == ExchangeKind::Messages)
    return {};
  CollectiveGroup group{findMembers(mesh, findGroupAxes(mesh, from, to), rank), {}};
  for (int member : group.members) {
    Box part = to.boxOf(mesh, shape, member);
    if (isGather(kind))
      part = part.intersect(from.boxOf(mesh, shape, member));
    group.parts.push_back(std::move(part));
  }
  return group;
}

int64_t CollectiveGroup::largestVolume() const {
  int64_t largest = 0;
  for (const Box &part : parts)
    largest = std::max(largest, part.volume());
  return largest;
}

/// The ranks whose coordinates on `axes` are 0: one of each group.
static std::vector<int> findFirstMembers(const Mesh &mesh, const std::vector<int> &axes) {
  std::vector<int> ranks;
  for (int rank = 0, count = mesh.numRanks(); rank < count; ++rank) {
    std::vector<int> coords = mesh.coordsOf(rank);
    if (std::all_of(axes.begin(), axes.end(), [&](int axis) { return coords[axis] == 0; }))
      ranks.push_back(rank);
  }
  return ranks;
}

/// Whether the pieces of a dimension that ranks of a group have are, for each group, what these need of it, each
/// element once.
static bool tilesNeeds(const Mesh &mesh, const DimSharding &from, const DimSharding &to, int64_t extent,
                       const std::vector<int> &groupAxes) {
  std::vector<int> fixed, collected;
  for (int axis : from.axes)
    (contains(groupAxes, axis) ? collected : fixed).push_back(axis);
  // All have all of it, or what they need.
  if (!from.isSplit() || (collected.empty() && from.axes == to.axes && from.pieces == to.pieces))
    return true;
  for (int axis : to.axes)
    if (!contains(fixed, axis))
      fixed.push_back(axis);
  auto count = [&](const std::vector<int> &axes) {
    int product = 1;
    for (int axis : axes)
      product *= mesh.axisSize(axis);
    return product;
  };
  std::vector<int> coords(mesh.numAxes());
  for (int group = 0, groups = count(fixed), members = count(collected); group < groups; ++group) {
    setCoordinate(mesh, fixed, group, coords);
    Interval needed = to.pieceAt(linearCoordinate(mesh, to.axes, coords), extent);
    std::vector<Interval> pieces;
    for (int member = 0; member < members; ++member) {
      setCoordinate(mesh, collected, member, coords);
      Interval piece = from.pieceAt(linearCoordinate(mesh, from.axes, coords), extent).intersect(needed);
      if (!piece.empty())
        pieces.push_back(piece);
    }
    std::sort(pieces.begin(), pieces.end(), [](Interval a, Interval b) { return a.lo < b.lo; });
    int64_t end = needed.lo;
    for (Interval piece : pieces) {
      if (piece.lo != end)
        return false;
      end = piece.hi;
    }
    if (!needed.empty() && end != needed.hi)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// ExchangePlace
//===----------------------------------------------------------------------===//

ExchangeKind ExchangePlace::findKind(int64_t elementBytes) const {
  if (findGroupAxes(mesh, from, to).empty())
    return ExchangeKind::Messages;
  for (ExchangeKind kind : {ExchangeKind::AllReduce, ExchangeKind::ReduceScatter, ExchangeKind::AllGather})
    if (fits(kind))
      return kind;
  if (!fits(ExchangeKind::PackedGather))
    return ExchangeKind::Messages;
  for (int first : findFirstMembers(mesh, findGroupAxes(mesh, from, to))) {
    CollectiveGroup group = collectiveGroup(mesh, shape, from, to, ExchangeKind::PackedGather, first);
    int64_t members = static_cast<int64_t>(group.members.size()), needed = to.boxOf(mesh, shape, first).volume(),
            padding = group.largestVolume() * members - needed;
    if (members < minPackedMembers || (padding > needed / 4 && padding * elementBytes >= minScatterBytes))
      return ExchangeKind::Messages;
  }
  return ExchangeKind::PackedGather;
}

bool ExchangePlace::fitsPacked(std::string *why) const {
  std::vector<int> axes = findGroupAxes(mesh, from, to);
  bool anyPart = true;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    if (!tilesNeeds(mesh, from.dims[dim], to.dims[dim], shape[dim], axes)) {
      if (why)
        *why = "pieces of dimension " + std::to_string(dim) + " are not all that is needed, each element once";
      return false;
    }
    bool anyPiece = false;
    for (size_t piece = 0; piece < std::max<size_t>(to.dims[dim].pieces.size(), 1); ++piece)
      anyPiece |= !to.dims[dim].pieceAt(static_cast<int>(piece), shape[dim]).empty();
    anyPart &= anyPiece;
  }
  if (!anyPart && why)
    *why = "no rank needs anything";
  return anyPart;
}

bool ExchangePlace::fits(ExchangeKind kind, std::string *why) const {
  auto fail = [&](std::string reason) {
    if (why)
      *why = std::string("the exchange is not of kind ") + stringifyExchangeKind(kind) + ": " + std::move(reason);
    return false;
  };
  if (kind == ExchangeKind::Messages)
    return true;
  bool gathers = isGather(kind);
  if (findReducedAxes(mesh, from, to).empty() != gathers)
    return fail(gathers ? "contributions are combined" : "the exchange combines no elements");
  std::vector<int> axes = findGroupAxes(mesh, from, to);
  if (axes.empty())
    return fail("no pieces are collected");
  if (kind == ExchangeKind::PackedGather) {
    std::string reason;
    return fitsPacked(&reason) || fail(reason);
  }
  const MemoryFormat &message = messageFormat();

  bool anyPart = false;
  for (int first : findFirstMembers(mesh, axes)) {
    CollectiveGroup group = collectiveGroup(mesh, shape, from, to, kind, first);
    const std::vector<Box> &parts = group.parts;
    auto at = [&](size_t member) { return " on rank " + std::to_string(group.members[member]); };
    Box needed = to.boxOf(mesh, shape, first);
    // Of the member before, so that what is equal on all is looked at once.
    Box lastHeld, lastMemory;
    int64_t volume = 0;
    bool nothing = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      volume += parts[i].volume();
      nothing &= to.boxOf(mesh, shape, group.members[i]).empty();
    }
    if (nothing)
      continue;
    anyPart = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty() || parts[i].volume() != parts[0].volume())
        return fail("parts differ in size" + at(i));
      int member = group.members[i];
      if (kind != ExchangeKind::ReduceScatter && !(to.boxOf(mesh, shape, member) == needed))
        return fail("another box is needed" + at(i));
      Box held = from.boxOf(mesh, shape, member);
      if (!gathers && (i == 0 || !(held == lastHeld)) &&
          !std::all_of(parts.begin(), parts.end(), [&](const Box &part) { return held.contains(part); }))
        return fail("contributions are incomplete" + at(i));
      // One of the two memories has the parts of all members, or each has one's own alone.
      const TensorMemory &all = gathers ? target : source, &single = gathers ? source : target;
      Box allBox = all.held.boxOf(mesh, shape, member), singleBox = single.held.boxOf(mesh, shape, member);
      bool allFollow = i > 0 && allBox == lastMemory;
      if (!allFollow)
        allFollow = kind == ExchangeKind::AllReduce ? findInMemory(all, allBox, parts[i], message).has_value()
                                                    : followEachOther(all, allBox, parts, message);
      if (!allFollow || !findInMemory(single, singleBox, parts[i], message))
        return fail("parts do not follow each other in memory" + at(i));
      lastHeld = std::move(held);
      lastMemory = std::move(allBox);
    }
    // Parts that follow each other are disjoint.
    if (gathers && volume != needed.volume())
      return fail("pieces are not all that is needed" + at(0));
  }
  return anyPart || fail("no rank needs anything");
}

//===----------------------------------------------------------------------===//
// Two phases
//===----------------------------------------------------------------------===//

std::optional<Sharding> dovetail::layout::scatteredSharding(const Mesh &mesh, std::span<const int64_t> shape,
                                                            const Sharding &from, const Sharding &to,
                                                            std::span<const int> order) {
  std::vector<int> axes = findReducedAxes(mesh, from, to);
  if (axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int axis) { return splits(to, axis); }))
    return std::nullopt;
  if (!from.contains(mesh, shape, to))
    return std::nullopt;
  int64_t count = 1;
  for (int axis : axes)
    count *= mesh.axisSize(axis);

  // Windows that overlap would have several ranks that give the same element.
  int best = -1;
  int64_t longest = 1;
  for (int dim : order) {
    std::optional<std::vector<int64_t>> cuts = to.dims[dim].cuts(shape[dim]);
    if (!cuts)
      continue;
    int64_t length = 0;
    for (size_t i = 1; i < cuts->size(); ++i)
      length = std::max(length, (*cuts)[i] - (*cuts)[i - 1]);
    if (longest < count && length > longest) {
      best = dim;
      longest = length;
    }
  }
  if (best < 0)
    return std::nullopt;

  Sharding result = to;
  DimSharding &dim = result.dims[best];
  std::vector<int64_t> positions = {0}, cuts = *dim.cuts(shape[best]);
  for (size_t i = 1; i < cuts.size(); ++i) {
    std::vector<int64_t> parts = balancedCuts(cuts[i] - cuts[i - 1], static_cast<int>(count));
    for (size_t part = 1; part < parts.size(); ++part)
      positions.push_back(cuts[i - 1] + parts[part]);
  }
  dim.axes.insert(dim.axes.end(), axes.begin(), axes.end());
  dim = DimSharding::fromCuts(std::move(dim.axes), positions);
  return result;
}
