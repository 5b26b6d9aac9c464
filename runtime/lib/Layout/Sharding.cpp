//===- Sharding.cpp - Which box of a tensor each rank holds -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Sharding.h"

#include "dovetail/Layout/Cuts.h"

#include <algorithm>
#include <limits>
#include <utility>

using namespace dovetail::layout;

const char *dovetail::layout::stringifyReductionKind(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::None:
    return "none";
  case ReductionKind::Sum:
    return "sum";
  case ReductionKind::Prod:
    return "prod";
  case ReductionKind::Max:
    return "max";
  case ReductionKind::Min:
    return "min";
  case ReductionKind::Owner:
    return "owner";
  }
  return "unknown";
}

int dovetail::layout::linearCoordinate(const Mesh &mesh, std::span<const int> axes, std::span<const int> coords) {
  int coordinate = 0;
  for (int axis : axes)
    coordinate = coordinate * mesh.axisSize(axis) + coords[axis];
  return coordinate;
}

/// That of the coordinates of `rank`, of which no list is made: boxes of all ranks are asked for very often.
static int linearCoordinateOf(const Mesh &mesh, std::span<const int> axes, int rank) {
  int coordinate = 0;
  for (int axis : axes) {
    int stride = 1;
    for (int minor = axis + 1; minor < mesh.numAxes(); ++minor)
      stride *= mesh.axisSize(minor);
    coordinate = coordinate * mesh.axisSize(axis) + rank / stride % mesh.axisSize(axis);
  }
  return coordinate;
}

void dovetail::layout::setCoordinate(const Mesh &mesh, std::span<const int> axes, int coordinate,
                                     std::span<int> coords) {
  for (size_t i = axes.size(); i-- > 0;) {
    coords[axes[i]] = coordinate % mesh.axisSize(axes[i]);
    coordinate /= mesh.axisSize(axes[i]);
  }
}

std::vector<std::pair<int, int>> dovetail::layout::coordinatePairs(const Mesh &mesh, std::span<const int> a,
                                                                   std::span<const int> b) {
  std::vector<int> axes(a.begin(), a.end());
  for (int axis : b)
    if (std::find(a.begin(), a.end(), axis) == a.end())
      axes.push_back(axis);
  int count = 1;
  for (int axis : axes)
    count *= mesh.axisSize(axis);
  std::vector<std::pair<int, int>> pairs;
  pairs.reserve(count);
  std::vector<int> coords(mesh.numAxes());
  for (int coordinate = 0; coordinate < count; ++coordinate) {
    setCoordinate(mesh, axes, coordinate, coords);
    pairs.emplace_back(linearCoordinate(mesh, a, coords), linearCoordinate(mesh, b, coords));
  }
  return pairs;
}

//===----------------------------------------------------------------------===//
// DimSharding
//===----------------------------------------------------------------------===//

DimSharding DimSharding::fromCuts(std::vector<int> axes, std::span<const int64_t> cuts) {
  return {std::move(axes), piecesFromCuts(cuts)};
}

bool DimSharding::isCuts(int64_t extent) const { return cuts(extent).has_value(); }

std::optional<std::vector<int64_t>> DimSharding::cuts(int64_t extent) const {
  if (!isSplit())
    return std::vector<int64_t>{0, extent};
  std::vector<int64_t> positions = {0};
  positions.reserve(pieces.size() + 1);
  for (Interval piece : pieces) {
    if (!piece.empty() && piece.lo != positions.back())
      return std::nullopt;
    positions.push_back(piece.empty() ? positions.back() : piece.hi);
  }
  if (positions.back() != extent)
    return std::nullopt;
  return positions;
}

int64_t dovetail::layout::coveredEnd(std::span<const Interval> pieces) {
  // Most are in order, but for empty ones, and there is one for each of many ranks.
  std::vector<Interval> sorted;
  int64_t last = std::numeric_limits<int64_t>::min();
  bool isSorted = std::all_of(pieces.begin(), pieces.end(), [&](Interval piece) {
    return piece.empty() || std::exchange(last, piece.lo) <= piece.lo;
  });
  if (!isSorted) {
    sorted.assign(pieces.begin(), pieces.end());
    std::sort(sorted.begin(), sorted.end(), [](Interval a, Interval b) { return a.lo < b.lo; });
    pieces = sorted;
  }
  int64_t end = 0;
  for (Interval piece : pieces) {
    if (piece.empty())
      continue;
    if (piece.lo > end)
      break;
    end = std::max(end, piece.hi);
  }
  return end;
}

bool DimSharding::covers(int64_t extent) const { return !isSplit() || coveredEnd(pieces) >= extent; }

std::optional<std::vector<int64_t>> DimSharding::ownerCuts(int64_t extent) const {
  if (!isSplit())
    return std::vector<int64_t>{0, extent};
  std::vector<int64_t> positions = {0};
  positions.reserve(pieces.size() + 1);
  const Interval *last = nullptr; // Of the pieces that are not empty; where its owner's part ends follows.
  auto endLastAt = [&](int64_t position) {
    std::fill(positions.begin() + (last - pieces.data()) + 1, positions.end(), position);
  };
  for (const Interval &piece : pieces) {
    positions.push_back(positions.back());
    if (piece.empty())
      continue;
    if (last ? piece.lo < last->lo || piece.hi < last->hi || piece.lo > last->hi : piece.lo != 0)
      return std::nullopt;
    if (last)
      endLastAt(piece.lo + (last->hi - piece.lo) / 2);
    last = &piece;
  }
  if (last ? last->hi != extent : extent != 0)
    return std::nullopt;
  if (last)
    endLastAt(extent);
  return positions;
}

bool DimSharding::contains(const Mesh &mesh, const DimSharding &inner, int64_t extent) const {
  if (!isSplit())
    return true;
  if (axes == inner.axes)
    return std::equal(pieces.begin(), pieces.end(), inner.pieces.begin(), inner.pieces.end(),
                      [](Interval a, Interval b) { return a.contains(b); });
  std::vector<std::pair<int, int>> pairs = coordinatePairs(mesh, axes, inner.axes);
  return std::all_of(pairs.begin(), pairs.end(), [&](std::pair<int, int> pair) {
    return pieces[pair.first].contains(inner.pieceAt(pair.second, extent));
  });
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

Sharding Sharding::replicated(int rank) {
  Sharding sharding;
  sharding.dims.resize(rank);
  return sharding;
}

bool Sharding::isReplicated() const {
  return !isPartial() && std::none_of(dims.begin(), dims.end(), [](const DimSharding &dim) { return dim.isSplit(); });
}

int Sharding::coordinateOf(const Mesh &mesh, int dim, int rank) const {
  return linearCoordinateOf(mesh, dims[dim].axes, rank);
}

Box Sharding::boxOf(const Mesh &mesh, std::span<const int64_t> shape, int rank) const {
  Box box = Box::ofShape(shape);
  for (size_t d = 0; d < dims.size(); ++d)
    box[static_cast<int>(d)] = dims[d].pieceAt(linearCoordinateOf(mesh, dims[d].axes, rank), shape[d]);
  return box;
}

int64_t Sharding::largestVolume(std::span<const int64_t> shape) const {
  // No axis splits two dimensions, so some rank has the largest pieces of all.
  Box largest = Box::ofShape(shape);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].isSplit())
      largest[static_cast<int>(d)] = *std::max_element(dims[d].pieces.begin(), dims[d].pieces.end(),
                                                       [](Interval a, Interval b) { return a.size() < b.size(); });
  return largest.volume();
}

bool Sharding::contains(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &inner) const {
  bool isInside = true;
  for (size_t d = 0; d < dims.size() && isInside; ++d)
    isInside = dims[d].contains(mesh, inner.dims[d], shape[d]);
  // What is empty in one dimension holds nothing that could lie outside in others.
  for (int rank = 0, ranks = mesh.numRanks(); rank < ranks && !isInside; ++rank)
    if (!boxOf(mesh, shape, rank).contains(inner.boxOf(mesh, shape, rank)))
      return false;
  return true;
}

bool Sharding::verify(const Mesh &mesh, std::span<const int64_t> shape, std::string *why) const {
  auto fail = [&](std::string reason) {
    if (why)
      *why = std::move(reason);
    return false;
  };
  if (dims.size() != shape.size())
    return fail("the sharding has " + std::to_string(dims.size()) + " dimensions, the tensor " +
                std::to_string(shape.size()));

  std::vector<bool> used(mesh.numAxes());
  auto useAxis = [&](int axis) {
    if (axis < 0 || axis >= mesh.numAxes())
      return fail("axis " + std::to_string(axis) + " is not in the mesh " + mesh.str());
    if (used[axis])
      return fail("mesh axis \"" + mesh.getAxes()[axis].name + "\" is used twice");
    used[axis] = true;
    return true;
  };

  auto dimension = [](size_t d) { return "dimension " + std::to_string(d); };
  for (size_t d = 0; d < dims.size(); ++d) {
    if (shape[d] < 0)
      return fail(dimension(d) + " of the tensor has extent " + std::to_string(shape[d]));
    // At most the number of ranks: no axis counts twice.
    size_t coordinates = 1;
    for (int axis : dims[d].axes) {
      if (!useAxis(axis))
        return false;
      coordinates *= mesh.axisSize(axis);
    }
    const std::vector<Interval> &pieces = dims[d].pieces;
    if (!dims[d].isSplit()) {
      if (!pieces.empty())
        return fail(dimension(d) + " has pieces but no mesh axes");
      continue;
    }
    if (pieces.size() != coordinates)
      return fail(dimension(d) + " has " + std::to_string(pieces.size()) + " pieces for " +
                  std::to_string(coordinates) + " coordinates of its mesh axes");
    for (size_t i = 0; i < pieces.size(); ++i) {
      bool ends = pieces[i].lo <= pieces[i].hi;
      if (ends && 0 <= pieces[i].lo && pieces[i].hi <= shape[d])
        continue;
      std::string piece = "piece " + std::to_string(i) + " of " + dimension(d) + ", " + pieces[i].str() + ",";
      return fail(ends ? piece + " reaches outside of " + Interval{0, shape[d]}.str()
                       : piece + " ends before it starts");
    }
  }
  for (int axis : partialAxes)
    if (!useAxis(axis))
      return false;
  if (isPartial() && partialKind == ReductionKind::None)
    return fail("the value is partial, but no reduction kind is given");
  if (!isPartial() && partialKind != ReductionKind::None)
    return fail(std::string("reduction kind ") + stringifyReductionKind(partialKind) +
                " is given, but the value is not partial over any mesh axis");
  return true;
}

std::string Sharding::str(const Mesh &mesh) const {
  auto axisNames = [&](const std::vector<int> &axes) {
    std::string text;
    for (int axis : axes)
      text += (text.empty() ? "\"" : ", \"") + mesh.getAxes()[axis].name + "\"";
    return text;
  };
  std::string text;
  for (const DimSharding &dim : dims) {
    std::string entry = axisNames(dim.axes);
    int64_t extent = 0;
    for (Interval piece : dim.pieces)
      extent = std::max(extent, piece.hi);
    std::string pieces;
    if (dim.isSplit()) {
      if (std::optional<std::vector<int64_t>> cuts = dim.cuts(extent)) {
        for (int64_t cut : *cuts)
          pieces += (pieces.empty() ? "" : ", ") + std::to_string(cut);
      } else {
        for (Interval piece : dim.pieces)
          pieces += (pieces.empty() ? "" : ", ") + piece.str();
      }
      entry += " : " + pieces;
    }
    text += (text.empty() ? "{" : ", {") + entry + "}";
  }
  text = "[" + text + "]";
  if (isPartial())
    text += std::string(" partial ") + stringifyReductionKind(partialKind) + " over {" + axisNames(partialAxes) + "}";
  return text;
}
