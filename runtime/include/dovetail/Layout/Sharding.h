//===- Sharding.h - Which box of a tensor each rank holds -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_SHARDING_H
#define DOVETAIL_LAYOUT_SHARDING_H

#include "dovetail/Layout/Box.h"
#include "dovetail/Layout/Mesh.h"

#include <optional>
#include <span>
#include <vector>

namespace dovetail::layout {

/// How values that are partial over mesh axes combine to the full value. Of `Owner` contributions one is the element,
/// and the bits of all others are zero.
enum class ReductionKind { None, Sum, Prod, Max, Min, Owner };

/// The kind's name in lower case, as in the IR and in messages.
const char *stringifyReductionKind(ReductionKind kind);

/// Up to where pieces of a dimension, in any order, have all its positions from 0 on.
int64_t coveredEnd(std::span<const Interval> pieces);

/// How one dimension of a tensor is split. Without axes, every rank has the
/// whole dimension.
struct DimSharding {
  /// Mesh axes that split the dimension, major to minor.
  std::vector<int> axes;
  /// What the ranks at each linear coordinate over `axes` hold: either cuts or
  /// windows, which may overlap and come in any order. None when unsplit.
  std::vector<Interval> pieces;

  /// The dimension split over `axes` at `cuts`, one more than coordinates.
  static DimSharding fromCuts(std::vector<int> axes, std::span<const int64_t> cuts);

  bool isSplit() const { return !axes.empty(); }
  /// Whether the non-empty pieces tile `[0, extent)` in order of their
  /// coordinates. True for an unsplit dimension.
  bool isCuts(int64_t extent) const;
  /// The positions when `isCuts(extent)`: one more than pieces for a split
  /// dimension, `{0, extent}` for an unsplit one. An empty piece lies where the
  /// piece before it ends.
  std::optional<std::vector<int64_t>> cuts(int64_t extent) const;
  /// Whether each position of `[0, extent)` lies in some piece. True for an
  /// unsplit dimension.
  bool covers(int64_t extent) const;
  /// Cuts inside of the pieces, one position more than pieces: which of the
  /// ranks that hold an element is its owner. Those of cuts are the cuts;
  /// windows are cut in the middle of where neighbours overlap. No value when
  /// the pieces do not cover the dimension, or neither begin nor end in the
  /// order of their coordinates. An empty piece owns nothing.
  std::optional<std::vector<int64_t>> ownerCuts(int64_t extent) const;
  /// What the ranks at linear `coordinate` hold of a dimension of `extent`.
  Interval pieceAt(int coordinate, int64_t extent) const {
    return isSplit() ? pieces[coordinate] : Interval{0, extent};
  }

  /// Whether every rank of `mesh` holds what it holds of `inner`, the same dimension of `extent` split in another way.
  /// Ranks with equal coordinates over the axes of both are looked at once.
  bool contains(const Mesh &mesh, const DimSharding &inner, int64_t extent) const;

  /// Equal axes and, as sets, equal pieces.
  friend bool operator==(const DimSharding &, const DimSharding &) = default;
};

/// Which box of a tensor each rank of a mesh holds, and over which axes its
/// values are partial. On the axes that neither split a dimension nor are
/// partial the value is replicated.
///
/// All methods but `verify` require a sharding that `verify` accepts.
struct Sharding {
  /// One for each dimension of the tensor.
  std::vector<DimSharding> dims;
  /// Mesh axes along which each rank has one contribution to the value.
  std::vector<int> partialAxes;
  /// How contributions combine; `None` exactly when `partialAxes` is empty.
  ReductionKind partialKind = ReductionKind::None;

  /// The sharding of a tensor of rank `rank` that is whole everywhere.
  static Sharding replicated(int rank);

  bool isReplicated() const;
  bool isPartial() const { return !partialAxes.empty(); }
  /// The linear coordinate of `rank` over the axes that split `dim`; 0 when it
  /// is unsplit.
  int coordinateOf(const Mesh &mesh, int dim, int rank) const;
  /// The box of a tensor of `shape` that `rank` holds.
  Box boxOf(const Mesh &mesh, std::span<const int64_t> shape, int rank) const;
  /// The volume of the largest box of a rank, as `Box::volume`.
  int64_t largestVolume(std::span<const int64_t> shape) const;
  /// Whether the box of each rank contains that of `inner`, another sharding of a tensor of `shape`. Costs O(ranks)
  /// only where some pieces lie outside, and it depends on other dimensions whether ranks with them hold anything.
  bool contains(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &inner) const;
  /// Whether this is a sharding of a tensor of `shape` over `mesh`: one entry
  /// for each dimension, axes in the mesh and used once in all, as many pieces
  /// as coordinates, pieces inside of the tensor and with ends in order. If
  /// not, and `why` is given, it names the dimension or axis at fault.
  bool verify(const Mesh &mesh, std::span<const int64_t> shape, std::string *why = nullptr) const;
  /// `[{}, {"y" : 0, 300, 512}] partial sum over {"x"}`, as in messages;
  /// windows are printed as intervals.
  std::string str(const Mesh &mesh) const;

  friend bool operator==(const Sharding &, const Sharding &) = default;
};

/// The linear index of `coords` over `axes`, major to minor.
int linearCoordinate(const Mesh &mesh, std::span<const int> axes, std::span<const int> coords);

/// The pairs of a linear coordinate over the axes `a` and one over `b` that ranks of `mesh` have, each once.
std::vector<std::pair<int, int>> coordinatePairs(const Mesh &mesh, std::span<const int> a, std::span<const int> b);

/// Sets the entries of `coords` on `axes` to those of the linear `coordinate`.
void setCoordinate(const Mesh &mesh, std::span<const int> axes, int coordinate, std::span<int> coords);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_SHARDING_H
