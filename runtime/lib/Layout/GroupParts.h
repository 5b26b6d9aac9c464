//===- GroupParts.h - What ranks move in some dimensions --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares GroupParts, which counts what ranks receive and send in dimensions that mesh axes connect.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_LAYOUT_GROUPPARTS_H
#define DOVETAIL_RUNTIME_LIB_LAYOUT_GROUPPARTS_H

#include "Overlaps.h"
#include "dovetail/Layout/Sharding.h"

#include <algorithm>
#include <optional>

namespace dovetail::layout {

/// What a rank receives or sends in some dimensions, in elements.
struct Part {
  /// Moved to it or by it, and what of that is between it and near ranks, itself among them.
  int64_t moved = 1, kept = 1;
  /// Whom it receives from or sends to, and which of them are near.
  int64_t partners = 1, nearPartners = 1;

  /// Whether with this, and with any other dimensions, a rank moves at least as much as with `other`, and has at least
  /// as many partners besides itself.
  bool isAtLeast(const Part &other) const {
    return moved >= other.moved && kept <= other.kept && partners >= other.partners &&
           nearPartners <= other.nearPartners;
  }
  friend bool operator==(const Part &, const Part &) = default;
};

/// The parts of all ranks that differ in some dimensions.
struct Parts {
  /// Of all together.
  int64_t moved = 0, kept = 0;
  /// Those that no other one is at least as much as, each once: whoever moves most has one of them.
  std::vector<Part> greatest;

  void add(const Part &part) {
    moved += part.moved;
    kept += part.kept;
    addGreatest(part);
  }
  void addGreatest(const Part &part) {
    if (std::any_of(greatest.begin(), greatest.end(), [&](const Part &other) { return other.isAtLeast(part); }))
      return;
    std::erase_if(greatest, [&](const Part &other) { return part.isAtLeast(other); });
    greatest.push_back(part);
  }
};

/// Dimensions that mesh axes connect.
struct DimGroup {
  std::vector<int> axes, dims;
};

/// What ranks of one group of dimensions receive and send.
class GroupParts {
public:
  GroupParts(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
             const std::vector<int> &reducedAxes, const std::vector<int> &nearAxes, const DimGroup &group,
             bool countSent);

  /// `sent` is empty where that is not counted.
  Parts received, sent;

private:
  /// A dimension, what follows from each of its pieces, and where in these lists ranks are that have a coordinate over
  /// the group's axes.
  struct Dim {
    /// Of shardings, or all of the dimension.
    std::span<const Interval> sources, targets;
    /// Of each target: how many sources have elements of it.
    std::vector<int64_t> partners;
    /// Of each source, for each coordinate over `fixedAxes` that split the target: the elements that all targets with
    /// that coordinate need of it, and how many do.
    std::optional<Overlaps> given;
    /// Where near ranks differ in what they have: of each target, for each coordinate over axes that are not near and
    /// split the source, the elements of it that sources with that coordinate have, and how many do. Where they differ
    /// in what they need: what `given` says, for each coordinate over those that are not near, too.
    std::optional<Overlaps> nearHeld, nearGiven;
    /// Where ranks are, and by how much that changes along each of the group's axes.
    int source = 0, target = 0, give = 0, held = 0, nearGive = 0;
    std::vector<int> sourceSteps, targetSteps, giveSteps, heldSteps, nearGiveSteps;

    /// Goes on by `count` coordinates along the axis at `place` of the group's.
    void advance(size_t place, int count) {
      source += sourceSteps[place] * count;
      target += targetSteps[place] * count;
      give += giveSteps[place] * count;
      held += heldSteps[place] * count;
      nearGive += nearGiveSteps[place] * count;
    }
  };

  /// `whole` is all of the dimension, and outlives what is made.
  Dim makeDim(const Mesh &mesh, const DimSharding &from, const DimSharding &to, const Interval &whole,
              const DimGroup &group) const;
  /// Adds the parts of ranks whose coordinates differ along the last axis of `group`.
  void addAlongLast(const std::vector<Dim> &dims, int count, int64_t replicas, int64_t nearReplicas);

  /// Axes on which source and target are at the same coordinate, as the source has the same at all of them.
  std::vector<int> fixedAxes;
  const std::vector<int> &nearAxes;
  bool countSent;
};

} // namespace dovetail::layout

#endif // DOVETAIL_RUNTIME_LIB_LAYOUT_GROUPPARTS_H
