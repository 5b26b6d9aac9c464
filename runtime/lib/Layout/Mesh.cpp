//===- Mesh.cpp - Named axes of devices and the ranks on them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Mesh.h"

#include <cassert>
#include <cstdint>
#include <limits>
#include <ostream>

using namespace dovetail::layout;

int Mesh::numRanks() const {
  int ranks = 1;
  for (const MeshAxis &axis : axes)
    ranks *= axis.size;
  return ranks;
}

std::vector<int> Mesh::coordsOf(int rank) const {
  assert(0 <= rank && rank < numRanks() && "rank outside of the mesh");
  std::vector<int> coords(axes.size());
  for (int axis = numAxes() - 1; axis >= 0; --axis) {
    coords[axis] = rank % axes[axis].size;
    rank /= axes[axis].size;
  }
  return coords;
}

int Mesh::rankOf(std::span<const int> coords) const {
  assert(coords.size() == axes.size() && "one coordinate for each axis");
  int rank = 0;
  for (int axis = 0; axis < numAxes(); ++axis)
    rank = rank * axes[axis].size + coords[axis];
  return rank;
}

std::optional<int> Mesh::axisIndex(std::string_view name) const {
  for (int axis = 0; axis < numAxes(); ++axis)
    if (axes[axis].name == name)
      return axis;
  return std::nullopt;
}

bool Mesh::verify(std::string *why) const {
  auto fail = [&](std::string reason) {
    if (why)
      *why = std::move(reason);
    return false;
  };
  int64_t ranks = 1;
  for (int axis = 0; axis < numAxes(); ++axis) {
    const auto &[name, size] = axes[axis];
    if (name.empty())
      return fail("mesh axis " + std::to_string(axis) + " has no name");
    if (axisIndex(name) != axis)
      return fail("mesh axis \"" + name + "\" appears twice");
    if (size < 1)
      return fail("mesh axis \"" + name + "\" has size " + std::to_string(size) + "; it must be at least 1");
    ranks *= size;
    if (ranks > std::numeric_limits<int>::max())
      return fail("the mesh has more ranks than " + std::to_string(std::numeric_limits<int>::max()));
  }
  return true;
}

std::string Mesh::str() const {
  std::string text;
  for (const auto &[name, size] : axes)
    text += (text.empty() ? "\"" : ", \"") + name + "\"=" + std::to_string(size);
  return "[" + text + "]";
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, const Mesh &mesh) { return os << mesh.str(); }
