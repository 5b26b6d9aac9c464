//===- MemoryFormat.cpp - How tensors lie in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/MemoryFormat.h"

#include <algorithm>
#include <numeric>

using namespace dovetail::layout;

MemoryFormat MemoryFormat::rowMajor(int rank) {
  MemoryFormat format;
  format.order.resize(rank);
  std::iota(format.order.begin(), format.order.end(), 0);
  return format;
}

bool MemoryFormat::isRowMajor() const { return std::is_sorted(order.begin(), order.end()); }

std::string MemoryFormat::str() const {
  if (isRowMajor())
    return "row-major";
  std::string result;
  for (int dim : order)
    result += (result.empty() ? "" : ",") + std::to_string(dim);
  return result;
}

bool MemoryFormat::verify(size_t rank, std::string *why) const {
  auto fail = [&](const char *reason) {
    if (why)
      *why = reason;
    return false;
  };
  std::vector<bool> seen(rank);
  for (int dim : order) {
    if (dim < 0 || dim >= static_cast<int>(rank) || seen[dim])
      return fail("is not a permutation of the dimensions");
    seen[dim] = true;
  }
  if (order.size() != rank)
    return fail("is not a permutation of the dimensions");
  return true;
}

std::vector<int64_t> MemoryFormat::strides(std::span<const int64_t> extents) const {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    int dim = order[i];
    strides[dim] = stride;
    if (stride == dynamic || extents[dim] == dynamic)
      stride = dynamic;
    else
      stride *= std::max<int64_t>(extents[dim], 1);
  }
  return strides;
}

std::vector<int64_t> MemoryFormat::strides(const Box &box) const {
  std::vector<int64_t> extents;
  for (int dim = 0; dim < box.rank(); ++dim)
    extents.push_back(box[dim].size());
  return strides(extents);
}
