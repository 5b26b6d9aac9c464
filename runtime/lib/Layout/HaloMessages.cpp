//===- HaloMessages.cpp - What halos leave alone --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements HaloMessages.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/HaloMessages.h"

#include <algorithm>

using namespace dovetail::layout;

HaloMessages::HaloMessages(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to)
    : mesh(mesh), shape(shape.begin(), shape.end()), from(from), planner(mesh, shape, from, to) {}

bool HaloMessages::leaves(int rank, const Box &box) const {
  if (box.empty())
    return true;
  // What is received lies outside of what the rank has.
  if (!from.boxOf(mesh, shape, rank).contains(box))
    return false;
  std::vector<Transfer> sends = planner.sends(rank);
  return std::all_of(sends.begin(), sends.end(),
                     [&](const Transfer &transfer) { return transfer.box.intersect(box).empty(); });
}
