//===- Overlaps.h - How much pieces have of others -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how pieces of a dimension, and how much of them, lie in others.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_LAYOUT_OVERLAPS_H
#define DOVETAIL_RUNTIME_LIB_LAYOUT_OVERLAPS_H

#include "dovetail/Layout/Mesh.h"
#include "dovetail/Layout/Sharding.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace dovetail::layout {

inline bool isIn(const std::vector<int> &axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Counts pieces of a dimension.
class Pieces {
public:
  explicit Pieces(std::span<const Interval> pieces);

  /// How many have elements of `interval`. Costs the logarithm of how many there are.
  int64_t countIn(Interval interval) const;
  /// The elements of `interval` in all of them. Costs the same.
  int64_t sizeIn(Interval interval) const {
    return interval.empty() ? 0 : sizeBelow(interval.hi) - sizeBelow(interval.lo);
  }

private:
  /// Sorts the positions from `first` on, and adds the sums of the first ones of them.
  void sumUp(size_t first);
  /// The elements below `position` in all of them: what lies between it and their begins, less what lies between it and
  /// their ends.
  int64_t sizeBelow(int64_t position) const;

  size_t count = 0;
  std::vector<int64_t> positions;
};

/// How much pieces of a dimension with a coordinate have of each piece of a list, each counted, and how many have any.
class Overlaps {
public:
  /// `axes` split the dimension into `others`. Coordinates are those over `fixed`, which are some of these in the same
  /// order. `list` must outlive this. `numReads` is how many entries will be read, about: if there are no more than
  /// these, all are counted at once.
  Overlaps(const Mesh &mesh, std::span<const Interval> list, std::span<const Interval> others,
           const std::vector<int> &axes, const std::vector<int> &fixed, int64_t numReads);

  int getNumCoordinates() const { return static_cast<int>(withCoordinate.size()); }

  /// The elements, and how many pieces have some. `place` is the number of the piece in the list, times the number of
  /// coordinates, plus the coordinate.
  std::pair<int64_t, int64_t> operator[](size_t place) const { return counted.empty() ? count(place) : counted[place]; }

private:
  std::pair<int64_t, int64_t> count(size_t place) const;

  std::span<const Interval> list;
  std::vector<Pieces> withCoordinate;
  std::vector<std::pair<int64_t, int64_t>> counted; ///< Empty: each is when it is read.
};

} // namespace dovetail::layout

#endif // DOVETAIL_RUNTIME_LIB_LAYOUT_OVERLAPS_H
