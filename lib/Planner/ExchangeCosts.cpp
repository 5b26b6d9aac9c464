//===- ExchangeCosts.cpp - What exchanges cost ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ExchangeCosts.
//
//===----------------------------------------------------------------------===//

#include "ExchangeCosts.h"

#include "dovetail/Layout/ExchangeKind.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace dovetail;

/// What an exchange counts by itself, in bytes: of ways that move as much, that with fewer exchanges is chosen.
static constexpr double kBytesPerExchange = 1e-3;

double ExchangeCost::get(Objective objective) const {
  switch (objective) {
  case Objective::Time:
    return seconds;
  case Objective::Bytes:
    return totalBytes + kBytesPerExchange * static_cast<double>(phases);
  case Objective::Memory:
    return kBytesPerSecond * seconds;
  }
  llvm_unreachable("covered switch");
}

const layout::Sharding &ExchangeCosts::getLayout(ShardingAttr sharding) {
  std::unique_ptr<layout::Sharding> &entry = layouts[sharding];
  if (!entry)
    entry = std::make_unique<layout::Sharding>(toLayout(sharding, mesh, sharding.getDims().size()));
  return *entry;
}

double ExchangeCosts::getLargestBytes(RankedTensorType type, ShardingAttr held) {
  return static_cast<double>(getLayout(held).largestVolume(type.getShape())) *
         static_cast<double>(getElementByteSize(type.getElementType()));
}

const Link &ExchangeCosts::getLink(const llvm::SmallBitVector &axes) {
  const Link *&slowest = links[axes];
  if (slowest)
    return *slowest;
  slowest = &cluster.getLink(0, 0);
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    // The first one of its group.
    std::vector<int> coords = mesh.coordsOf(rank);
    for (unsigned axis : axes.set_bits())
      coords[axis] = 0;
    const Link &link = cluster.getLink(mesh.rankOf(coords), rank);
    // They are in the order of their groups.
    if (slowest < &link)
      slowest = &link;
  }
  return *slowest;
}

/// The axes along which ranks differ that send and receive.
static llvm::SmallBitVector getCrossedAxes(const layout::Mesh &mesh, const layout::Sharding &from,
                                           const layout::Sharding &to) {
  llvm::SmallBitVector crossed(mesh.numAxes());
  auto addDifferent = [&](const std::vector<int> &some, const std::vector<int> &others) {
    for (int axis : some)
      if (!llvm::is_contained(others, axis))
        crossed.set(axis);
  };
  for (auto [held, needed] : llvm::zip_equal(from.dims, to.dims)) {
    if (held.axes != needed.axes) {
      addDifferent(held.axes, needed.axes);
      addDifferent(needed.axes, held.axes);
    } else if (held.pieces != needed.pieces) {
      for (int axis : held.axes)
        crossed.set(axis);
    }
  }
  addDifferent(from.partialAxes, to.partialAxes);
  return crossed;
}

std::optional<double> ExchangeCosts::getCollectiveSeconds(ArrayRef<int64_t> shape, double elementBytes,
                                                          const layout::Sharding &from, const layout::Sharding &to) {
  if (transport != TransportKind::Streams)
    return std::nullopt;
  layout::MemoryFormat rows = layout::MemoryFormat::rowMajor(static_cast<int>(shape.size()));
  layout::ExchangePlace place = {mesh, shape, from, to, {from, rows}, {to, rows}};
  layout::ExchangeKind kind = place.findKind();
  if (kind == layout::ExchangeKind::Messages)
    return std::nullopt;
  double seconds = 0;
  std::vector<bool> isCounted(mesh.numRanks());
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    if (isCounted[rank])
      continue;
    // Groups have parts of different sizes where another dimension is cut unevenly.
    layout::CollectiveGroup group = layout::collectiveGroup(mesh, shape, from, to, kind, rank);
    for (int member : group.members)
      isCounted[member] = true;
    double bytes = static_cast<double>(group.parts.front().volume()) * elementBytes;
    SmallVector<LinkTraffic> traffic = getCollectiveTraffic(kind, bytes, cluster.countReached(rank, group.members));
    seconds = std::max(seconds, getStreamSeconds(traffic, cluster.getLinks(), /*isCollective=*/true));
  }
  return seconds;
}

ExchangeCost ExchangeCosts::getPhase(ArrayRef<int64_t> shape, double elementBytes, const layout::Sharding &from,
                                     const layout::Sharding &to) {
  layout::ExchangeVolume volume = layout::getExchangeVolume(mesh, shape, from, to, transport == TransportKind::Streams);
  ExchangeCost cost;
  if (volume.total == 0)
    return cost;
  cost.totalBytes = static_cast<double>(volume.total) * elementBytes;
  cost.phases = 1;
  if (std::optional<double> seconds = getCollectiveSeconds(shape, elementBytes, from, to)) {
    cost.seconds = *seconds;
    return cost;
  }
  ExchangeWork work;
  work.phases = 1;
  // Threads copy what they need; devices send and receive.
  bool sends = transport == TransportKind::Streams;
  work.receivedBytes =
      static_cast<double>(sends ? std::max(volume.largest, volume.largestSent) : volume.largest) * elementBytes;
  work.messages = static_cast<double>(sends ? std::max(volume.sources, volume.targets) : volume.sources);
  cost.seconds = Cluster::getSeconds(getLink(getCrossedAxes(mesh, from, to)), work);
  return cost;
}

ExchangeCost ExchangeCosts::getTelling(double bytes, ArrayRef<StringAttr> names) {
  llvm::SmallBitVector axes(mesh.numAxes());
  for (StringAttr name : names)
    axes.set(*mesh.axisIndex({name.data(), name.size()}));
  double others = static_cast<double>(getNumParts(mesh, names) - 1);
  ExchangeCost cost;
  cost.totalBytes = bytes * others * mesh.numRanks();
  cost.phases = 1;
  cost.seconds = Cluster::getSeconds(getLink(axes), {bytes * others, others, 1});
  return cost;
}

ExchangeCost ExchangeCosts::getGiving(RankedTensorType type, ShardingAttr held) {
  layout::Sharding sharding = toLayout(held, mesh, type.getRank());
  double elements = mesh.numRanks();
  // Each axis splits one dimension, so that what ranks hold together is a product, too.
  for (auto [dim, extent] : llvm::zip_equal(sharding.dims, type.getShape())) {
    int64_t sum = dim.isSplit() ? 0 : extent;
    for (layout::Interval piece : dim.pieces)
      sum += piece.size();
    elements *= static_cast<double>(sum) / std::max<double>(dim.pieces.size(), 1);
  }
  double elementBytes = static_cast<double>(getElementByteSize(type.getElementType()));
  ExchangeCost cost;
  cost.totalBytes = (elements - static_cast<double>(type.getNumElements())) * elementBytes;
  // Beyond what a rank has in any case, which is not more than an even part.
  double most = static_cast<double>(sharding.largestVolume(type.getShape())) -
                static_cast<double>(type.getNumElements()) / mesh.numRanks();
  cost.seconds = std::max(most, 0.0) * elementBytes / getLink(llvm::SmallBitVector(mesh.numAxes(), true)).bytes;
  return cost;
}

std::optional<ExchangeCost> ExchangeCosts::get(RankedTensorType type, ShardingAttr held, ShardingAttr needed) {
  if (!needed)
    needed = held.withoutPartial();
  if (needed.isPartial()) {
    bool isHeldSo = held.getPartialKind() == needed.getPartialKind() &&
                    held.getPartialAxes().size() == needed.getPartialAxes().size() &&
                    llvm::all_of(needed.getPartialAxes(),
                                 [&](StringAttr axis) { return llvm::is_contained(held.getPartialAxes(), axis); });
    if (!isHeldSo)
      return std::nullopt;
  }
  if (held == needed)
    return ExchangeCost();
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  auto [entry, isNew] = known.try_emplace({plain, held, needed});
  if (isNew)
    entry->second = find(type, held, needed);
  return entry->second;
}

std::optional<ExchangeCost> ExchangeCosts::find(RankedTensorType type, ShardingAttr held, ShardingAttr needed) {
  const layout::Sharding &from = getLayout(held), &to = getLayout(needed);
  bool holdsAll = llvm::all_of(llvm::zip_equal(from.dims, type.getShape()),
                               [](const auto &dim) { return std::get<0>(dim).covers(std::get<1>(dim)); });
  if (!holdsAll && !layout::verifyExchange(mesh, type.getShape(), from, to))
    return std::nullopt;
  double elementBytes = static_cast<double>(getElementByteSize(type.getElementType()));
  // A large reduction is scattered first, where lowering can do that.
  if (held.getPartialAxes().size() != needed.getPartialAxes().size() &&
      static_cast<double>(to.largestVolume(type.getShape())) * elementBytes >=
          static_cast<double>(layout::minScatterBytes)) {
    std::vector<int> order(type.getRank());
    std::iota(order.begin(), order.end(), 0);
    if (auto scattered = layout::scatteredSharding(mesh, type.getShape(), from, to, order)) {
      ExchangeCost cost = getPhase(type.getShape(), elementBytes, from, *scattered);
      return cost += getPhase(type.getShape(), elementBytes, *scattered, to);
    }
  }
  return getPhase(type.getShape(), elementBytes, from, to);
}
