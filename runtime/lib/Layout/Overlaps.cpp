//===- Overlaps.cpp - How much pieces have of others ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Pieces and Overlaps.
//
//===----------------------------------------------------------------------===//

#include "Overlaps.h"

#include <numeric>

using namespace dovetail::layout;

Pieces::Pieces(std::span<const Interval> pieces) {
  for (Interval piece : pieces)
    count += !piece.empty();
  // Begins, ends, and their sums in one piece of memory: it is made very often.
  positions.reserve(4 * count + 2);
  for (Interval piece : pieces)
    if (!piece.empty())
      positions.push_back(piece.lo);
  for (Interval piece : pieces)
    if (!piece.empty())
      positions.push_back(piece.hi);
  sumUp(0);
  sumUp(count);
}

int64_t Pieces::countIn(Interval interval) const {
  if (interval.empty())
    return 0;
  auto begins = positions.begin(), ends = begins + count;
  int64_t begun = std::lower_bound(begins, begins + count, interval.hi) - begins;
  int64_t ended = std::upper_bound(ends, ends + count, interval.lo) - ends;
  return begun - ended;
}

void Pieces::sumUp(size_t first) {
  auto begin = positions.begin() + first, end = begin + count;
  if (!std::is_sorted(begin, end))
    std::sort(begin, end);
  int64_t sum = 0;
  positions.push_back(sum);
  for (size_t i = 0; i < count; ++i)
    positions.push_back(sum += positions[first + i]);
}

int64_t Pieces::sizeBelow(int64_t position) const {
  auto getDistance = [&](size_t first, size_t sums) {
    auto begin = positions.begin() + first;
    int64_t below = std::lower_bound(begin, begin + count, position) - begin;
    return below * position - positions[sums + below];
  };
  return getDistance(0, 2 * count) - getDistance(count, 3 * count + 1);
}

/// The pieces of a dimension that `axes` split, by their coordinate over those that are `fixed`, which are some of
/// these in the same order. Sets where the pieces with each coordinate begin.
static std::vector<Interval> sortByCoordinate(const Mesh &mesh, std::span<const Interval> pieces,
                                              const std::vector<int> &axes, const std::vector<int> &fixed,
                                              std::vector<size_t> &begins) {
  std::vector<int> coordinates(pieces.size());
  int stride = 1, step = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    int size = mesh.axisSize(axes[i]);
    if (isIn(fixed, axes[i])) {
      for (size_t piece = 0; piece < pieces.size(); ++piece)
        coordinates[piece] += static_cast<int>(piece) / stride % size * step;
      step *= size;
    }
    stride *= size;
  }
  begins.assign(step + 1, 0);
  for (int coordinate : coordinates)
    ++begins[coordinate + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<size_t> next(begins.begin(), begins.end() - 1);
  std::vector<Interval> sorted(pieces.size());
  for (size_t piece = 0; piece < pieces.size(); ++piece)
    sorted[next[coordinates[piece]]++] = pieces[piece];
  return sorted;
}

Overlaps::Overlaps(const Mesh &mesh, std::span<const Interval> list, std::span<const Interval> others,
                   const std::vector<int> &axes, const std::vector<int> &fixed, int64_t numReads)
    : list(list) {
  std::vector<size_t> begins;
  std::vector<Interval> sorted = sortByCoordinate(mesh, others, axes, fixed, begins);
  size_t numCoordinates = begins.size() - 1;
  withCoordinate.reserve(numCoordinates);
  for (size_t coordinate = 0; coordinate < numCoordinates; ++coordinate)
    withCoordinate.emplace_back(
        std::span<const Interval>(sorted).subspan(begins[coordinate], begins[coordinate + 1] - begins[coordinate]));
  size_t size = list.size() * numCoordinates;
  if (static_cast<int64_t>(size) > numReads)
    return;
  counted.reserve(size);
  for (size_t place = 0; place < size; ++place)
    counted.push_back(count(place));
}

std::pair<int64_t, int64_t> Overlaps::count(size_t place) const {
  const Pieces &pieces = withCoordinate[place % withCoordinate.size()];
  Interval interval = list[place / withCoordinate.size()];
  return {pieces.sizeIn(interval), pieces.countIn(interval)};
}
