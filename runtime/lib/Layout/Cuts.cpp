//===- Cuts.cpp - Ways to cut a dimension into consecutive pieces -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Cuts.h"

#include "dovetail/Layout/Arith.h"

using namespace dovetail::layout;

std::vector<int64_t> dovetail::layout::balancedCuts(int64_t n, int64_t parts, int64_t align) {
  n = std::max<int64_t>(n, 0);
  parts = std::max<int64_t>(parts, 1);
  align = std::max<int64_t>(align, 1);
  int64_t units = ceilDiv(n, align);
  int64_t small = units / parts, larger = units % parts;
  std::vector<int64_t> cuts;
  cuts.reserve(parts + 1);
  for (int64_t part = 0; part <= parts; ++part)
    cuts.push_back(std::min(n, (part * small + std::min(part, larger)) * align));
  return cuts;
}

std::vector<int64_t> dovetail::layout::chunkCuts(int64_t n, int64_t parts) {
  n = std::max<int64_t>(n, 0);
  parts = std::max<int64_t>(parts, 1);
  int64_t size = ceilDiv(n, parts);
  std::vector<int64_t> cuts;
  cuts.reserve(parts + 1);
  for (int64_t part = 0; part <= parts; ++part)
    cuts.push_back(std::min(n, part * size));
  return cuts;
}

std::vector<int64_t> dovetail::layout::cutsFromSizes(std::span<const int64_t> sizes) {
  std::vector<int64_t> cuts = {0};
  cuts.reserve(sizes.size() + 1);
  for (int64_t size : sizes)
    cuts.push_back(cuts.back() + size);
  return cuts;
}

std::vector<Interval> dovetail::layout::piecesFromCuts(std::span<const int64_t> cuts) {
  std::vector<Interval> pieces;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    pieces.push_back({cuts[i], cuts[i + 1]});
  return pieces;
}

bool dovetail::layout::isValidCuts(std::span<const int64_t> cuts, int64_t extent) {
  return !cuts.empty() && cuts.front() == 0 && cuts.back() == extent && std::is_sorted(cuts.begin(), cuts.end());
}
