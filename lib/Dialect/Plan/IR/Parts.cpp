//===- Parts.cpp - Steps that are parts of one ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what PlanParts.h declares.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/PlanParts.h"

#include "dovetail/Dialect/Dovetail/IR/ShardingLayout.h"
#include "dovetail/Layout/Box.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

static bool isIn(Value ref, ValueRange refs) {
  return llvm::any_of(refs, [&](Value other) { return getBufferOp(other) == getBufferOp(ref); });
}

bool plan::isDivisible(StepOpInterface step) {
  auto call = dyn_cast<CallOpInterface>(*step);
  return isa<LaunchOp>(*step) || (call && isElementwise(*call.getCallForm()));
}

layout::Sharding plan::getWritten(StepOpInterface step, Value write, const layout::Mesh &mesh) {
  RankedTensorType type = getTensor(write);
  SmallVector<DimShardingAttr> dims;
  if (auto loops = step->getAttrOfType<ArrayAttr>("loops"))
    for (auto [loop, extent] : llvm::zip(loops.getAsRange<LoopAttr>(), type.getShape()))
      if (loop.getExtent() == extent)
        dims.push_back(loop.getDim());
  if (static_cast<int64_t>(dims.size()) == type.getRank() && isDivisible(step))
    return toLayout(dims, mesh);
  return toLayout(getSharding(type), mesh, type.getRank());
}

std::optional<layout::HaloMessages> plan::getHaloMessages(ExchangeOp exchange, size_t move, const layout::Mesh &mesh) {
  if (exchange.getKind() != ExchangeKind::Messages || !exchange.keepsSource(move))
    return std::nullopt;
  Value source = exchange.getSources()[move];
  RankedTensorType own = getTensor(source), wide = getTensor(exchange.getTargets()[move]);
  layout::Sharding from = toLayout(getSharding(own), mesh, own.getRank()),
                   to = toLayout(getSharding(wide), mesh, wide.getRank());
  // Where ranks need what lies elsewhere, all have to do with all.
  if (!layout::verifyExchange(mesh, own.getShape(), from, to) ||
      layout::classify(mesh, own.getShape(), from, to) != layout::ExchangeClass::Halo)
    return std::nullopt;
  return layout::HaloMessages(mesh, own.getShape(), from, to);
}

bool plan::leavesWrites(ExchangeOp exchange, StepOpInterface step, const layout::Mesh &mesh) {
  for (Value write : step.getStepWrites()) {
    for (auto [move, source, target] : llvm::enumerate(exchange.getSources(), exchange.getTargets())) {
      if (!isIn(write, {source, target}))
        continue;
      std::optional<layout::HaloMessages> messages = getHaloMessages(exchange, move, mesh);
      if (!messages)
        return false;
      RankedTensorType type = getTensor(write);
      layout::Sharding written = getWritten(step, write, mesh);
      for (int rank = 0; rank < mesh.numRanks(); ++rank)
        if (!messages->leaves(rank, written.boxOf(mesh, type.getShape(), rank)))
          return false;
    }
  }
  return true;
}

namespace {
/// Steps that do the same and write the same values, one after the other.
class PartList {
public:
  explicit PartList(const layout::Mesh &mesh) : mesh(mesh) {}

  /// Whether there are such steps, of which `step` is one more. What is complete when it is exchanged is written anew.
  bool isContinuedBy(StepOpInterface step) {
    return !parts.empty() && step->getName() == parts.back()->getName() &&
           step->getAttr("kernel") == parts.back()->getAttr("kernel") &&
           step.getStepWrites() == parts.back().getStepWrites() && (exchanges.empty() || findGap());
  }
  void add(StepOpInterface step) { parts.push_back(step); }
  /// Takes note of an exchange behind the parts so far; false if it has nothing to do with what they write.
  bool add(ExchangeOp exchange) {
    if (parts.empty() ||
        llvm::none_of(exchange.getSources(), [&](Value source) { return isIn(source, parts.front().getStepWrites()); }))
      return false;
    exchanges.push_back({exchange, parts.size()});
    return true;
  }
  /// Checks the parts, and begins anew.
  LogicalResult finish() {
    bool areParts = parts.size() > 1 && !parts.front().getStepWrites().empty() &&
                    (isa<LaunchOp>(*parts.front()) || !exchanges.empty());
    LogicalResult result = areParts ? verify() : success();
    parts.clear();
    exchanges.clear();
    return result;
  }

private:
  /// What some rank does not compute once, and why; nothing if each computes each element once, or what is written does
  /// not fit the mesh, which is refused elsewhere.
  std::optional<std::pair<int, std::string>> findGap();
  LogicalResult verify();

  const layout::Mesh &mesh;
  SmallVector<StepOpInterface> parts;
  /// With how many parts there are before each.
  SmallVector<std::pair<ExchangeOp, size_t>> exchanges;
};
} // namespace

std::optional<std::pair<int, std::string>> PartList::findGap() {
  Value write = parts.front().getStepWrites().front();
  RankedTensorType type = getTensor(write);
  ArrayRef<int64_t> shape = type.getShape();
  layout::Sharding held = toLayout(getSharding(type), mesh, type.getRank());
  SmallVector<layout::Sharding> written;
  for (StepOpInterface part : parts)
    written.push_back(getWritten(part, write, mesh));
  auto fits = [&](const layout::Sharding &sharding) { return sharding.verify(mesh, shape); };
  if (!fits(held) || !llvm::all_of(written, fits))
    return std::nullopt;
  for (int rank = 0; rank < mesh.numRanks(); ++rank) {
    layout::Box whole = held.boxOf(mesh, shape, rank);
    // Boxes relative to what the rank holds.
    SmallVector<layout::Box> boxes;
    for (const layout::Sharding &part : written) {
      std::vector<layout::Interval> intervals;
      layout::Box box = part.boxOf(mesh, shape, rank);
      for (int dim = 0; dim < box.rank(); ++dim)
        intervals.push_back(box[dim].shifted(-whole[dim].lo));
      boxes.emplace_back(std::move(intervals));
    }
    std::vector<int64_t> extents = whole.shape();
    if (std::string why; !layout::coversExactlyOnce(boxes, extents, &why))
      return std::pair(rank, std::move(why));
  }
  return std::nullopt;
}

LogicalResult PartList::verify() {
  if (auto gap = findGap())
    return parts.front()->emitOpError("and those after it do not compute each element once on rank ")
           << gap->first << ": " << gap->second;
  for (auto [exchange, before] : exchanges)
    for (StepOpInterface part : ArrayRef(parts).drop_front(before))
      if (!leavesWrites(exchange, part, mesh))
        return part->emitOpError("writes elements that an exchange between the parts of its step sends or receives");
  return success();
}

LogicalResult plan::verifyParts(Block &steps, const layout::Mesh &mesh) {
  PartList parts(mesh);
  for (Operation &op : steps) {
    // The boundary waits for what the interior does not need.
    if (isa<WaitOp>(op))
      continue;
    if (auto exchange = dyn_cast<ExchangeOp>(op); exchange && parts.add(exchange))
      continue;
    auto step = dyn_cast<StepOpInterface>(op);
    bool mayBePart = step && isDivisible(step);
    if ((!mayBePart || !parts.isContinuedBy(step)) && failed(parts.finish()))
      return failure();
    if (mayBePart)
      parts.add(step);
  }
  return parts.finish();
}
