//===- BorderSplitter.cpp - What exchanges send, computed first -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements splitBorders.
//
//===----------------------------------------------------------------------===//

#include "BorderSplitter.h"

#include "StepSplitter.h"

#include "dovetail/Dialect/Dovetail/IR/ShardingLayout.h"
#include "dovetail/Dialect/Plan/IR/PlanParts.h"

#include <algorithm>

using namespace mlir;
using namespace dovetail;

namespace {

class BorderSplitter {
public:
  BorderSplitter(plan::StepOpInterface step, plan::ExchangeOp exchange, const layout::Mesh &mesh,
                 SymbolTableCollection &symbols)
      : step(step), exchange(exchange), mesh(mesh), symbols(symbols) {}

  SmallVector<plan::StepOpInterface> split();

private:
  /// Whether what the step does can be done in parts, in any order.
  bool canSplit();
  /// Finds the messages; false if the exchange does anything else with what the step reads or writes.
  bool findMessages();
  /// Finds in each dimension that is split which part of each piece is not sent.
  void findInterior();
  /// What remains of the interior of a dimension without `sent`: what is before it or what is behind it.
  static layout::Interval getRest(layout::Interval inner, layout::Interval sent);
  /// Leaves what `rank` sends out of the interior, if it is for a rank that lies elsewhere in several dimensions
  /// (`isCorner`), or in one.
  void leaveOut(int rank, const layout::Transfer &transfer, bool isCorner);
  layout::Box getInterior(int rank) const;

  plan::StepOpInterface step;
  plan::ExchangeOp exchange;
  const layout::Mesh &mesh;
  SymbolTableCollection &symbols;
  plan::KernelOp kernel; ///< Of a launch.
  RankedTensorType type; ///< Of what is sent, and what each rank has of it.
  layout::Sharding held;
  std::vector<layout::HaloMessages> messages;
  /// Of each dimension: what is not sent of each of its pieces.
  std::vector<SmallVector<layout::Interval>> interior;
};

} // namespace

bool BorderSplitter::canSplit() {
  if (!plan::isDivisible(step) || step.getStepWrites().empty())
    return false;
  if (auto launch = dyn_cast<plan::LaunchOp>(*step)) {
    kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(step, launch.getKernelAttr());
    if (!kernel || kernel.getInPlace() || launch.getChecks())
      return false;
  }
  return llvm::none_of(step.getStepReads(), [&](Value read) {
    // The parts before may have written over it; the exchange may bring it.
    return llvm::any_of(step.getStepWrites(),
                        [&](Value write) { return plan::getBufferOp(read) == plan::getBufferOp(write); }) ||
           (llvm::any_of(exchange.getTargets(),
                         [&](Value target) { return plan::getBufferOp(read) == plan::getBufferOp(target); }) &&
            !llvm::is_contained(exchange.getSources(), read));
  });
}

bool BorderSplitter::findMessages() {
  for (auto [move, source, target] : llvm::enumerate(exchange.getSources(), exchange.getTargets())) {
    bool isWritten = llvm::is_contained(step.getStepWrites(), source);
    bool isMet = llvm::any_of(step.getStepWrites(), [&](Value write) {
      return plan::getBufferOp(write) == plan::getBufferOp(source) ||
             plan::getBufferOp(write) == plan::getBufferOp(target);
    });
    if (!isMet)
      continue;
    std::optional<layout::HaloMessages> found;
    if (isWritten)
      found = plan::getHaloMessages(exchange, move, mesh);
    if (!found || (type && plan::getTensor(source) != type))
      return false;
    type = plan::getTensor(source);
    held = toLayout(getSharding(type), mesh, type.getRank());
    if (plan::getWritten(step, source, mesh).dims != held.dims)
      return false;
    messages.push_back(*std::move(found));
  }
  return !messages.empty();
}

layout::Box BorderSplitter::getInterior(int rank) const {
  layout::Box box = held.boxOf(mesh, type.getShape(), rank);
  for (int dim = 0; dim < box.rank(); ++dim)
    if (held.dims[dim].isSplit())
      box[dim] = interior[dim][held.coordinateOf(mesh, dim, rank)];
  return box;
}

layout::Interval BorderSplitter::getRest(layout::Interval inner, layout::Interval sent) {
  layout::Interval before{inner.lo, std::clamp(sent.lo, inner.lo, inner.hi)},
      behind{std::clamp(sent.hi, inner.lo, inner.hi), inner.hi};
  return before.size() > behind.size() ? before : behind;
}

void BorderSplitter::leaveOut(int rank, const layout::Transfer &transfer, bool isCorner) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < held.dims.size(); ++dim)
    if (held.dims[dim].isSplit() && held.coordinateOf(mesh, dim, rank) != held.coordinateOf(mesh, dim, transfer.dest))
      dims.push_back(dim);
  // What is next to a corner may be left out already.
  if (dims.empty() || (dims.size() > 1) != isCorner || transfer.box.intersect(getInterior(rank)).empty())
    return;
  auto innerOf = [&](unsigned dim) -> layout::Interval & { return interior[dim][held.coordinateOf(mesh, dim, rank)]; };
  auto restOf = [&](unsigned dim) { return getRest(innerOf(dim), transfer.box[dim]); };
  unsigned best = *llvm::max_element(dims, [&](unsigned a, unsigned b) { return restOf(a).size() < restOf(b).size(); });
  innerOf(best) = restOf(best);
}

void BorderSplitter::findInterior() {
  for (const layout::DimSharding &dim : held.dims)
    interior.emplace_back(dim.pieces.begin(), dim.pieces.end());
  for (bool isCorner : {false, true})
    for (const layout::HaloMessages &halo : messages)
      for (int rank = 0; rank < mesh.numRanks(); ++rank)
        for (const layout::Transfer &transfer : halo.sends(rank))
          leaveOut(rank, transfer, isCorner);
}

SmallVector<plan::StepOpInterface> BorderSplitter::split() {
  if (!canSplit() || !findMessages())
    return {};
  findInterior();
  SmallVector<DimShardingAttr> dims = getResultLoops(step, type.getRank()), inner(dims);
  SmallVector<SplitDim> splits;
  for (auto [dim, whole] : llvm::enumerate(dims)) {
    SplitDim split{static_cast<unsigned>(dim), {}, interior[dim], {}};
    bool isCut = false;
    for (auto [piece, rest] : llvm::zip_equal(held.dims[dim].pieces, interior[dim])) {
      split.low.push_back({piece.lo, rest.lo});
      split.high.push_back({rest.hi, piece.hi});
      isCut |= rest != piece;
    }
    if (!isCut)
      continue;
    inner[dim] = DimShardingAttr::getWindows(whole.getAxes(), interior[dim]);
    if (isEmpty(inner[dim]) || (kernel && isScan(kernel, dim)))
      return {};
    splits.push_back(std::move(split));
  }
  if (splits.empty())
    return {};
  SmallVector<plan::StepOpInterface> parts;
  addBoundaries(step, "border", splits, dims, inner, parts);
  size_t numBorders = parts.size();
  addPart(step, "interior", inner, parts);
  if (numBorders > 0 && parts.size() > numBorders && plan::leavesWrites(exchange, parts.back(), mesh))
    return parts;
  llvm::for_each(parts, [](plan::StepOpInterface part) { part->erase(); });
  return {};
}

SmallVector<plan::StepOpInterface> dovetail::splitBorders(plan::StepOpInterface step, plan::ExchangeOp exchange,
                                                          const layout::Mesh &mesh, SymbolTableCollection &symbols) {
  return BorderSplitter(step, exchange, mesh, symbols).split();
}
