//===- OutputPieces.cpp - Who delivers what of an output -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputPieces.h"

#include "dovetail/Layout/Exchange.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

namespace {

/// Of all ranks' pieces of a round, which rank 0 takes together, unless there are very many ranks.
constexpr int64_t mostBytes = 64 << 20, leastPiece = 64 << 10;

/// Cuts `box` in halves until each is small enough.
void addPieces(const Box &box, int64_t elementBytes, int64_t most, std::vector<Box> &pieces) {
  int dim = 0;
  while (dim < box.rank() && box[dim].size() <= 1)
    ++dim;
  if (dim == box.rank() || box.volume() * elementBytes <= most) {
    pieces.push_back(box);
    return;
  }
  Box first = box, second = box;
  first[dim].hi = second[dim].lo = box[dim].lo + box[dim].size() / 2;
  addPieces(first, elementBytes, most, pieces);
  addPieces(second, elementBytes, most, pieces);
}

} // namespace

OutputPieces::OutputPieces(const Plan &plan, const PortInfo &output) : boxes(plan.mesh.numRanks()) {
  // Collecting the output on rank 0 would fetch each element exactly once: from its owner.
  layout::ExchangePlanner planner(plan.mesh, output.shape, plan.tensors[output.tensor].sharding,
                                  layout::Sharding::replicated(output.shape.size()));
  boxes[0] = planner.local(0);
  const int64_t most = std::max(mostBytes / plan.mesh.numRanks(), leastPiece);
  for (const layout::Transfer &transfer : planner.receives(0))
    addPieces(transfer.box, elementSize(output.type), most, boxes[transfer.source]);
}

OutputPieces OutputPieces::within(const Box &box) const {
  OutputPieces result = *this;
  for (std::vector<Box> &pieces : result.boxes) {
    for (Box &piece : pieces)
      piece = piece.intersect(box);
    std::erase_if(pieces, [](const Box &piece) { return piece.empty(); });
  }
  return result;
}

size_t OutputPieces::rounds() const {
  size_t most = 0;
  for (size_t rank = 1; rank < boxes.size(); ++rank)
    most = std::max(most, boxes[rank].size());
  return most;
}
