//===- ExchangeTraffic.cpp - What ranks send each other -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ExchangeTraffic and TrafficCounter.
//
//===----------------------------------------------------------------------===//

#include "ExchangeTraffic.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/ExchangeKind.h"

using namespace mlir;
using namespace dovetail;

double ExchangeTraffic::getBytes() const {
  double bytes = 0;
  for (const LinkTraffic &link : links)
    bytes += link.receivedBytes;
  return bytes;
}

double ExchangeTraffic::getBytes(size_t link) const {
  double bytes = 0;
  for (size_t at = link; at < links.size(); at += numLinks)
    bytes += links[at].receivedBytes;
  return bytes;
}

static std::span<const int64_t> getShape(RankedTensorType type) {
  return {type.getShape().data(), type.getShape().size()};
}

namespace {
/// One move of an exchange, as the Layout library has it.
struct Move {
  RankedTensorType type;
  layout::Sharding from, to;
  double elementBytes;
  bool isInPlace;

  Move(plan::ExchangeOp op, size_t number, const layout::Mesh &mesh) : type(plan::getTensor(op.getSources()[number])) {
    from = toLayout(getSharding(type), mesh, type.getRank());
    to = toLayout(getSharding(plan::getTensor(op.getTargets()[number])), mesh, type.getRank());
    elementBytes = double(getElementByteSize(type.getElementType()));
    isInPlace = plan::getBufferOp(op.getSources()[number]) == plan::getBufferOp(op.getTargets()[number]);
  }
};
} // namespace

void TrafficCounter::addMessages(plan::ExchangeOp op, ExchangeTraffic &traffic) const {
  int numRanks = mesh.numRanks();
  traffic.pulls.resize(numRanks);
  // What each rank gets of each other, in all moves.
  std::vector<double> bytes(numRanks);
  std::vector<int> sources;
  std::vector<Move> moves;
  std::vector<layout::ExchangePlanner> planners;
  bool combines = false;
  for (size_t number = 0; number < op.getNumMoves(); ++number) {
    const Move &move = moves.emplace_back(op, number, mesh);
    planners.emplace_back(mesh, getShape(move.type), move.from, move.to);
    combines |= !planners.back().getReducedAxes().empty();
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    for (auto [move, planner] : llvm::zip_equal(moves, planners)) {
      for (const layout::Transfer &transfer : planner.receives(rank)) {
        if (bytes[transfer.source] == 0)
          sources.push_back(transfer.source);
        bytes[transfer.source] += double(transfer.box.volume()) * move.elementBytes;
      }
      if (!move.isInPlace)
        for (const layout::Box &box : planner.local(rank))
          traffic.localBytes[rank] += double(box.volume()) * move.elementBytes;
    }
    // Contributions are combined in the order of ranks; else ranks begin with the next one.
    int first = combines ? 0 : rank;
    llvm::sort(sources,
               [&](int a, int b) { return (a - first + numRanks) % numRanks < (b - first + numRanks) % numRanks; });
    for (int source : sources) {
      unsigned link = cluster.getLinkNumber(rank, source);
      traffic.pulls[rank].push_back({source, link, bytes[source]});
      LinkTraffic &received = traffic.links[rank * traffic.numLinks + link];
      LinkTraffic &sent = traffic.links[source * traffic.numLinks + link];
      received.receivedBytes += bytes[source];
      received.receivedMessages += 1;
      sent.sentBytes += bytes[source];
      sent.sentMessages += 1;
      bytes[source] = 0;
    }
    sources.clear();
  }
}

void TrafficCounter::addCollective(plan::ExchangeOp op, ExchangeTraffic &traffic) const {
  std::vector<Move> moves;
  for (size_t number = 0; number < op.getNumMoves(); ++number)
    moves.emplace_back(op, number, mesh);
  layout::ExchangeKind kind = plan::toLayout(op.getKind());
  traffic.groupOf.assign(mesh.numRanks(), -1);
  for (int rank = 0; rank < mesh.numRanks(); ++rank) {
    if (traffic.groupOf[rank] >= 0)
      continue;
    // Of several moves the groups are the same.
    layout::CollectiveGroup group;
    std::vector<double> given;
    for (const Move &move : moves) {
      group = layout::collectiveGroup(mesh, getShape(move.type), move.from, move.to, kind, rank);
      given.resize(group.members.size());
      for (auto [bytes, part] : llvm::zip_equal(given, group.parts))
        bytes += double(part.volume()) * move.elementBytes;
    }
    double part = group.members.empty() ? 0 : *llvm::max_element(given);
    if (group.members.size() < 2 || part == 0)
      continue;
    for (auto [member, reached] : llvm::zip_equal(group.members, cluster.countReached(group.members))) {
      traffic.groupOf[member] = traffic.groups.size();
      llvm::copy(getCollectiveTraffic(kind, part, reached), &traffic.links[member * traffic.numLinks]);
      if (kind == layout::ExchangeKind::PackedGather)
        traffic.localBytes[member] = getPackedBytes(part, group.members.size());
    }
    traffic.groups.push_back(std::move(group.members));
  }
}

std::shared_ptr<const ExchangeTraffic> TrafficCounter::get(plan::ExchangeOp op) {
  std::vector<const void *> key = {reinterpret_cast<const void *>(static_cast<uintptr_t>(op.getKind()))};
  for (auto [source, target] : llvm::zip_equal(op.getSources(), op.getTargets())) {
    bool isInPlace = plan::getBufferOp(source) == plan::getBufferOp(target);
    key.insert(key.end(), {source.getType().getAsOpaquePointer(), target.getType().getAsOpaquePointer(),
                           reinterpret_cast<const void *>(static_cast<uintptr_t>(isInPlace))});
  }
  std::shared_ptr<const ExchangeTraffic> &entry = known[key];
  if (entry)
    return entry;
  auto traffic = std::make_shared<ExchangeTraffic>();
  traffic->numLinks = cluster.getLinks().size();
  traffic->links.resize(mesh.numRanks() * traffic->numLinks);
  traffic->localBytes.resize(mesh.numRanks());
  if (engine == ExchangeEngine::Streams && op.getKind() != plan::ExchangeKind::Messages)
    addCollective(op, *traffic);
  else
    addMessages(op, *traffic);
  return entry = std::move(traffic);
}
