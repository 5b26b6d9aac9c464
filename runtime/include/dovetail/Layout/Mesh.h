//===- Mesh.h - Named axes of devices and the ranks on them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_MESH_H
#define DOVETAIL_LAYOUT_MESH_H

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dovetail::layout {

/// One named axis of a mesh; its size is at least 1.
struct MeshAxis {
  std::string name;
  int size = 1;

  friend bool operator==(const MeshAxis &, const MeshAxis &) = default;
};

/// Devices in a grid of named axes. The rank of a device is the row-major
/// linear index of its coordinates: the last axis varies fastest. A mesh
/// without axes has one rank.
class Mesh {
public:
  Mesh() = default;
  Mesh(std::vector<MeshAxis> axes) : axes(std::move(axes)) {}

  const std::vector<MeshAxis> &getAxes() const { return axes; }
  int numAxes() const { return static_cast<int>(axes.size()); }
  int axisSize(int axis) const { return axes[axis].size; }
  int numRanks() const;
  /// Coordinates of `rank`, one for each axis. `rank` must be in
  /// `[0, numRanks())`.
  std::vector<int> coordsOf(int rank) const;
  /// The rank at `coords`, one inside each axis.
  int rankOf(std::span<const int> coords) const;
  /// The position of the axis called `name`, if there is one.
  std::optional<int> axisIndex(std::string_view name) const;
  /// Whether names are distinct and not empty, sizes are positive and ranks fit
  /// an `int`. If not, and `why` is given, it says which axis is at fault.
  bool verify(std::string *why = nullptr) const;
  /// `["y"=4, "x"=2]`, as in messages.
  std::string str() const;

  friend bool operator==(const Mesh &, const Mesh &) = default;

private:
  std::vector<MeshAxis> axes;
};

std::ostream &operator<<(std::ostream &os, const Mesh &mesh);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_MESH_H
