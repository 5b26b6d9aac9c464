//===- Cuts.cpp - Ways to cut a dimension into consecutive pieces -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Cuts.h"

#include "dovetail/Layout/Arith.h"

#include <numeric>

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

Interval dovetail::layout::balancedPiece(Interval range, int64_t parts, int64_t part) {
  int64_t small = range.size() / parts, larger = range.size() % parts;
  auto cut = [&](int64_t number) { return range.lo + number * small + std::min(number, larger); };
  return {cut(part), cut(part + 1)};
}

std::vector<int64_t> dovetail::layout::weightedCuts(int64_t n, std::span<const double> speeds) {
  n = std::max<int64_t>(n, 0);
  double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  // Whole elements of each one's share, then one after the other where it takes least time (D'Hondt's method, which
  // gives nobody less than the whole elements of its share).
  std::vector<int64_t> sizes;
  int64_t left = n;
  for (double speed : speeds) {
    sizes.push_back(std::min(left, static_cast<int64_t>(static_cast<double>(n) * (speed / sum))));
    left -= sizes.back();
  }
  for (; left > 0; --left) {
    auto time = [&](size_t piece) { return static_cast<double>(sizes[piece] + 1) / speeds[piece]; };
    size_t best = 0;
    for (size_t piece = 1; piece < sizes.size(); ++piece)
      if (time(piece) < time(best))
        best = piece;
    ++sizes[best];
  }
  return cutsFromSizes(sizes);
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
