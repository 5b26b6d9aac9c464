//===- Box.h - Products of intervals: the parts of a tensor -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_BOX_H
#define DOVETAIL_LAYOUT_BOX_H

#include "dovetail/Layout/Interval.h"

#include <initializer_list>
#include <span>
#include <utility>

namespace dovetail::layout {

/// A product of intervals, one for each dimension of a tensor. The box of a
/// scalar has rank 0 and volume 1. A box is a set: it is empty when any of its
/// intervals is, and all empty boxes of a rank are equal.
///
/// Operations on two boxes require equal ranks.
class Box {
public:
  Box() = default;
  Box(std::vector<Interval> dims) : dims(std::move(dims)) {}
  Box(std::initializer_list<Interval> dims) : dims(dims) {}
  /// The box of a whole tensor.
  static Box ofShape(std::span<const int64_t> shape);

  int rank() const { return static_cast<int>(dims.size()); }
  const Interval &operator[](int dim) const { return dims[dim]; }
  Interval &operator[](int dim) { return dims[dim]; }
  auto begin() const { return dims.begin(); }
  auto end() const { return dims.end(); }

  bool empty() const;
  /// Number of elements; the largest `int64_t` if there are more.
  int64_t volume() const;
  /// Extents, one for each dimension.
  std::vector<int64_t> shape() const;
  bool contains(std::span<const int64_t> index) const;
  /// Whether every element of `other` is in this box.
  bool contains(const Box &other) const;
  Box intersect(const Box &other) const;
  /// The smallest box that contains both.
  Box hull(const Box &other) const;
  /// `[lo, hi) x [lo, hi)`, as in messages.
  std::string str() const;

  friend bool operator==(const Box &a, const Box &b) {
    return a.rank() == b.rank() && ((a.empty() && b.empty()) || a.dims == b.dims);
  }

private:
  std::vector<Interval> dims;
};

/// The elements of `a` outside of `b`, as at most `2 * rank` disjoint non-empty
/// boxes in a fixed order.
std::vector<Box> subtract(const Box &a, const Box &b);

/// The partition check: whether each element of a tensor of `shape` is in
/// exactly one of `boxes` and no box reaches outside. Empty boxes are ignored.
/// If not, and `why` is given, it says which boxes or how many elements are at
/// fault.
bool coversExactlyOnce(std::span<const Box> boxes, std::span<const int64_t> shape, std::string *why = nullptr);

std::ostream &operator<<(std::ostream &os, const Box &box);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_BOX_H
