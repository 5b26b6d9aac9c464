//===- Box.cpp - Products of intervals: the parts of a tensor -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Box.h"

#include <cassert>
#include <limits>
#include <ostream>

using namespace dovetail::layout;

Box Box::ofShape(std::span<const int64_t> shape) {
  std::vector<Interval> dims;
  dims.reserve(shape.size());
  for (int64_t extent : shape)
    dims.push_back({0, extent});
  return Box(std::move(dims));
}

bool Box::empty() const {
  return std::any_of(dims.begin(), dims.end(), [](const Interval &dim) { return dim.empty(); });
}

int64_t Box::volume() const {
  // Checked first, so that a zero extent wins over a product that overflows.
  if (empty())
    return 0;
  int64_t volume = 1;
  for (const Interval &dim : dims)
    if (__builtin_mul_overflow(volume, dim.size(), &volume))
      return std::numeric_limits<int64_t>::max();
  return volume;
}

std::vector<int64_t> Box::shape() const {
  std::vector<int64_t> shape;
  shape.reserve(dims.size());
  for (const Interval &dim : dims)
    shape.push_back(dim.size());
  return shape;
}

bool Box::contains(std::span<const int64_t> index) const {
  assert(index.size() == dims.size() && "index of another rank");
  for (size_t d = 0; d < dims.size(); ++d)
    if (!dims[d].contains(index[d]))
      return false;
  return true;
}

bool Box::contains(const Box &other) const {
  assert(other.rank() == rank() && "box of another rank");
  if (other.empty())
    return true;
  for (size_t d = 0; d < dims.size(); ++d)
    if (!dims[d].contains(other.dims[d]))
      return false;
  return true;
}

Box Box::intersect(const Box &other) const {
  assert(other.rank() == rank() && "box of another rank");
  Box result = *this;
  for (size_t d = 0; d < dims.size(); ++d)
    result.dims[d] = dims[d].intersect(other.dims[d]);
  return result;
}

Box Box::hull(const Box &other) const {
  assert(other.rank() == rank() && "box of another rank");
  if (empty())
    return other;
  if (other.empty())
    return *this;
  Box result = *this;
  for (size_t d = 0; d < dims.size(); ++d)
    result.dims[d] = dims[d].hull(other.dims[d]);
  return result;
}

std::string Box::str() const {
  if (dims.empty())
    return "scalar";
  std::string text;
  for (const Interval &dim : dims)
    text += (text.empty() ? "" : " x ") + dim.str();
  return text;
}

std::vector<Box> dovetail::layout::subtract(const Box &a, const Box &b) {
  assert(a.rank() == b.rank() && "boxes of different ranks");
  if (a.empty())
    return {};
  Box common = a.intersect(b);
  if (common.empty())
    return {a};
  // Peel slabs off dimension by dimension; what is left is inside of `b`.
  std::vector<Box> parts;
  Box rest = a;
  for (int d = 0; d < a.rank(); ++d) {
    for (Interval outside : subtract(rest[d], common[d])) {
      Box part = rest;
      part[d] = outside;
      parts.push_back(std::move(part));
    }
    rest[d] = common[d];
  }
  return parts;
}

bool dovetail::layout::coversExactlyOnce(std::span<const Box> boxes, std::span<const int64_t> shape, std::string *why) {
  auto fail = [&](std::string reason) {
    if (why)
      *why = std::move(reason);
    return false;
  };
  Box whole = Box::ofShape(shape);
  int64_t covered = 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (boxes[i].rank() != whole.rank())
      return fail("box " + std::to_string(i) + " has rank " + std::to_string(boxes[i].rank()) + ", the tensor " +
                  std::to_string(whole.rank()));
    if (boxes[i].empty())
      continue;
    if (!whole.contains(boxes[i]))
      return fail("box " + std::to_string(i) + ", " + boxes[i].str() + ", reaches outside of the tensor " +
                  whole.str());
    covered += boxes[i].volume();
    order.push_back(i);
  }
  // Sorted by the first dimension, a box meets only those that start before it
  // ends.
  auto start = [&](size_t i) { return whole.rank() ? boxes[i][0].lo : 0; };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(start(a), a) < std::pair(start(b), b); });
  for (size_t i = 0; i < order.size(); ++i) {
    const Box &box = boxes[order[i]];
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (whole.rank() && start(order[j]) >= box[0].hi)
        break;
      if (!box.intersect(boxes[order[j]]).empty())
        return fail("boxes " + std::to_string(std::min(order[i], order[j])) + " and " +
                    std::to_string(std::max(order[i], order[j])) + " overlap in " +
                    box.intersect(boxes[order[j]]).str());
    }
  }
  if (covered != whole.volume())
    return fail(std::to_string(whole.volume() - covered) + " of " + std::to_string(whole.volume()) +
                " elements are in no box");
  return true;
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, const Box &box) { return os << box.str(); }
