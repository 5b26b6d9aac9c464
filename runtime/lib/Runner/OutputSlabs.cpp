//===- OutputSlabs.cpp - Outputs in slabs ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputSlabs.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Transfer;

namespace {

constexpr int64_t mostBytes = 4 << 20;

/// How many pieces a box lies in, in a row-major array of this shape.
int64_t countRuns(const Box &box, const std::vector<int64_t> &shape) {
  if (box.empty())
    return 0;
  // The last dimensions that are whole lie in one piece, with those of the one before them.
  int first = box.rank() - 1;
  while (first > 0 && box[first].size() == shape[first])
    --first;
  int64_t runs = 1;
  for (int dim = 0; dim < first; ++dim)
    runs *= box[dim].size();
  return runs;
}

} // namespace

OutputSlabs::OutputSlabs(const PortInfo &output, const OutputPieces &pieces, int ranks)
    : pieces(pieces), shape(output.shape), ranks(ranks) {
  allBytes = rowBytes = Box::ofShape(shape).volume() * elementSize(output.type);
  if (allBytes == 0 || shape.empty())
    return;
  // The first dimension whose coordinates have few enough bytes each.
  int64_t outer = 1, last = static_cast<int64_t>(shape.size()) - 1;
  while (rowBytes / shape[dim] > mostBytes && dim < last) {
    rowBytes /= shape[dim];
    outer *= shape[dim++];
  }
  rowBytes /= shape[dim];
  int64_t rows = std::max<int64_t>(1, mostBytes / rowBytes);
  partsOfDim = (shape[dim] + rows - 1) / rows;
  numSlabs = outer * partsOfDim;
}

bool OutputSlabs::areBetter(int64_t bytes) const {
  int64_t all = 0, most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int64_t runs = 0;
    for (const Box &piece : pieces.of(rank))
      runs += countRuns(piece, shape);
    all += runs;
    most = std::max(most, runs);
  }
  return numSlabs > 0 && ranks > 1 && allBytes < bytes * all && most > rounds();
}

Box OutputSlabs::slab(int rank, int64_t round) const {
  int64_t number = firstOf(rank) + round;
  Box box = Box::ofShape(shape);
  if (number >= firstOf(rank + 1)) {
    box[dim] = {0, 0};
    return box;
  }
  int64_t part = number % partsOfDim, rest = number / partsOfDim;
  box[dim] = {shape[dim] * part / partsOfDim, shape[dim] * (part + 1) / partsOfDim};
  for (int outer = dim - 1; outer >= 0; --outer) {
    box[outer] = {rest % shape[outer], rest % shape[outer] + 1};
    rest /= shape[outer];
  }
  return box;
}

std::vector<Box> OutputSlabs::common(int source, int dest, int64_t round) const {
  std::vector<Box> result;
  Box wanted = slab(dest, round);
  for (const Box &piece : pieces.of(source))
    if (Box common = piece.intersect(wanted); !common.empty())
      result.push_back(std::move(common));
  return result;
}

std::vector<Transfer> OutputSlabs::sends(int rank, int64_t round) const {
  std::vector<Transfer> result;
  for (int dest = 0; dest < ranks; ++dest)
    if (dest != rank)
      for (Box &box : common(rank, dest, round))
        result.push_back({rank, dest, std::move(box)});
  return result;
}

std::vector<Transfer> OutputSlabs::receives(int rank, int64_t round) const {
  std::vector<Transfer> result;
  for (int source = 0; source < ranks; ++source)
    if (source != rank)
      for (Box &box : common(source, rank, round))
        result.push_back({source, rank, std::move(box)});
  return result;
}

int64_t OutputSlabs::slabBytes() const { return (shape[dim] + partsOfDim - 1) / partsOfDim * rowBytes; }
