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

#include "dovetail/Cost/ExchangeCosts.h"

#include "dovetail/Layout/ExchangeKind.h"

#include "llvm/ADT/bit.h"

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

const ExchangeCosts::Layout &ExchangeCosts::getLayout(ShardingAttr sharding) {
  std::unique_ptr<Layout> &entry = layouts[sharding];
  if (!entry) {
    layout::Sharding plain = toLayout(sharding, mesh, sharding.getDims().size());
    layout::Sharding refined = levels.refine(plain);
    entry = std::make_unique<Layout>(Layout{std::move(plain), std::move(refined)});
  }
  return *entry;
}

double ExchangeCosts::getLargestBytes(RankedTensorType type, ShardingAttr held) {
  return static_cast<double>(getLayout(held).plain.largestVolume(type.getShape())) *
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

ExchangeCosts::Levels::Levels(const layout::Mesh &mesh, const Cluster &cluster) {
  int64_t below = 1;
  std::vector<int64_t> sizes;
  for (const Link &link : cluster.getLinks())
    sizes.push_back(link.groupSize > 0 ? link.groupSize : mesh.numRanks());
  // From the last axis, along which ranks are nearest to each other: `below` ranks are those of the axes behind.
  std::vector<layout::MeshAxis> fine;
  std::vector<int64_t> strides;
  for (const layout::MeshAxis &axis : llvm::reverse(mesh.getAxes())) {
    std::vector<int> parts;
    int64_t rest = axis.size;
    for (int64_t size : sizes)
      // A group ends within the axis, where both can be divided so.
      if (int64_t inside = size / below; size % below == 0 && inside > 1 && inside < rest && rest % inside == 0) {
        parts.push_back(static_cast<int>(inside));
        strides.push_back(below);
        below *= inside;
        rest /= inside;
      }
    parts.push_back(static_cast<int>(rest));
    strides.push_back(below);
    below *= rest;
    for (int part : parts)
      fine.push_back({axis.name, part});
    numParts.push_back(static_cast<int>(parts.size()));
  }
  std::reverse(fine.begin(), fine.end());
  std::reverse(strides.begin(), strides.end());
  std::reverse(numParts.begin(), numParts.end());
  this->mesh = layout::Mesh(fine);
  for (int64_t size : sizes) {
    std::vector<int> &axes = near.emplace_back();
    for (auto [axis, stride] : llvm::enumerate(strides))
      if (int64_t all = stride * fine[axis].size; size % all == 0 || size >= mesh.numRanks())
        axes.push_back(static_cast<int>(axis));
  }
}

layout::Sharding ExchangeCosts::Levels::refine(const layout::Sharding &sharding) const {
  std::vector<int> first;
  int count = 0;
  for (int parts : numParts) {
    first.push_back(count);
    count += parts;
  }
  auto refineAxes = [&](std::vector<int> &axes) {
    std::vector<int> refined;
    for (int axis : axes)
      for (int part = 0; part < numParts[axis]; ++part)
        refined.push_back(first[axis] + part);
    axes = std::move(refined);
  };
  layout::Sharding result = sharding;
  for (layout::DimSharding &dim : result.dims)
    refineAxes(dim.axes);
  refineAxes(result.partialAxes);
  return result;
}

double ExchangeCosts::getCollectiveSeconds(layout::ExchangeKind kind, double partBytes,
                                           const std::vector<int> &members) const {
  if (members.size() < 2 || partBytes == 0)
    return 0;
  double seconds = 0;
  const std::vector<double> *before = nullptr;
  std::vector<std::vector<double>> reached = cluster.countReached(members);
  for (auto [member, near] : llvm::zip_equal(members, reached)) {
    // Most have as many near them as the one before.
    bool isKnown = before && near == *before && &cluster.getDevice(member) == &cluster.getDevice(members.front());
    before = &near;
    if (isKnown)
      continue;
    double own = getStreamSeconds(getCollectiveTraffic(kind, partBytes, near), cluster.getLinks(),
                                  /*isCollective=*/true);
    if (kind == layout::ExchangeKind::PackedGather)
      own += getCopySeconds(getPackedBytes(partBytes, static_cast<double>(members.size())), cluster.getDevice(member));
    seconds = std::max(seconds, own);
  }
  return seconds;
}

std::optional<double> ExchangeCosts::getCollectiveSeconds(ArrayRef<int64_t> shape, double elementBytes,
                                                          const layout::Sharding &from, const layout::Sharding &to) {
  if (engine != ExchangeEngine::Streams)
    return std::nullopt;
  layout::MemoryFormat rows = layout::MemoryFormat::rowMajor(static_cast<int>(shape.size()));
  layout::ExchangePlace place = {mesh, shape, from, to, {from, rows}, {to, rows}};
  layout::ExchangeKind kind = place.findKind(static_cast<int64_t>(elementBytes));
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
    seconds = std::max(
        seconds, getCollectiveSeconds(kind, static_cast<double>(group.largestVolume()) * elementBytes, group.members));
  }
  return seconds;
}

ExchangeCost ExchangeCosts::getPhase(ArrayRef<int64_t> shape, double elementBytes, const Layout &from,
                                     const Layout &to) {
  layout::ExchangeVolume volume = counter.get(shape, from.plain, to.plain);
  ExchangeCost cost;
  if (volume.total == 0)
    return cost;
  cost.totalBytes = static_cast<double>(volume.total) * elementBytes;
  cost.phases = 1;
  if (std::optional<double> seconds = getCollectiveSeconds(shape, elementBytes, from.plain, to.plain)) {
    cost.seconds = *seconds;
    return cost;
  }
  cost.seconds = getMessageSeconds(shape, elementBytes, from, to, volume);
  return cost;
}

double ExchangeCosts::getMessageSeconds(ArrayRef<int64_t> shape, double elementBytes, const Layout &from,
                                        const Layout &to, const layout::ExchangeVolume &all) {
  bool isStreams = engine == ExchangeEngine::Streams;
  ArrayRef<Link> links = cluster.getLinks();
  SmallVector<LinkTraffic> traffic(links.size());
  // What goes over links up to one is what does not go beyond it.
  layout::ExchangeVolume upTo = all;
  for (auto [number, own] : llvm::enumerate(traffic)) {
    layout::ExchangeVolume further;
    if (number + 1 < links.size() && static_cast<int>(levels.near[number].size()) < levels.mesh.numAxes())
      further = beyond[number].get(shape, from.refined, to.refined);
    // The rank that has most to do with others may not be that which has most to do with those that are far.
    auto getOwn = [&](int64_t before, int64_t behind) {
      return static_cast<double>(std::max<int64_t>(before - behind, 0));
    };
    own = {getOwn(upTo.largest, further.largest) * elementBytes,
           getOwn(upTo.largestSent, further.largestSent) * elementBytes, getOwn(upTo.sources, further.sources),
           getOwn(upTo.targets, further.targets)};
    upTo = further;
  }
  if (isStreams)
    return getStreamSeconds(traffic, links, /*isCollective=*/false);
  // A thread copies what it needs from one after the other: the first one begins the exchange.
  double seconds = 0, beginning = 0;
  for (auto [own, link] : llvm::zip_equal(traffic, links)) {
    if (own.receivedMessages == 0)
      continue;
    seconds += own.receivedMessages * link.messageSeconds + own.receivedBytes / link.bytes;
    beginning = std::max(beginning, link.exchangeSeconds - link.messageSeconds);
  }
  return seconds + beginning;
}

/// The groups of ranks that differ along `axes` alone.
static std::vector<std::vector<int>> getGroups(const layout::Mesh &mesh, const llvm::SmallBitVector &axes) {
  std::vector<std::vector<int>> groups(mesh.numRanks());
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    std::vector<int> coords = mesh.coordsOf(rank);
    for (unsigned axis : axes.set_bits())
      coords[axis] = 0;
    groups[mesh.rankOf(coords)].push_back(rank);
  }
  llvm::erase_if(groups, [](const std::vector<int> &members) { return members.empty(); });
  return groups;
}

ExchangeCost ExchangeCosts::getTelling(double bytes, ArrayRef<StringAttr> names) {
  llvm::SmallBitVector axes(mesh.numAxes());
  for (StringAttr name : names)
    axes.set(*mesh.axisIndex({name.data(), name.size()}));
  double others = static_cast<double>(getNumParts(mesh, names) - 1);
  ExchangeCost cost;
  if (others == 0)
    return cost;
  cost.totalBytes = bytes * others * mesh.numRanks();
  cost.phases = 1;
  if (engine != ExchangeEngine::Streams || others + 1 < layout::minPackedMembers) {
    cost.seconds = Cluster::getSeconds(getLink(axes), {bytes * others, others, 1});
    return cost;
  }
  auto [entry, isNew] = toldSeconds.try_emplace({axes, llvm::bit_cast<uint64_t>(bytes)}, 0);
  if (isNew)
    for (const std::vector<int> &members : getGroups(mesh, axes))
      entry->second = std::max(entry->second, getCollectiveSeconds(layout::ExchangeKind::PackedGather, bytes, members));
  cost.seconds = entry->second;
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
  const Layout &source = getLayout(held), &target = getLayout(needed);
  const layout::Sharding &from = source.plain, &to = target.plain;
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
      layout::Sharding refined = levels.refine(*scattered);
      Layout between = {*std::move(scattered), std::move(refined)};
      ExchangeCost cost = getPhase(type.getShape(), elementBytes, source, between);
      return cost += getPhase(type.getShape(), elementBytes, between, target);
    }
  }
  return getPhase(type.getShape(), elementBytes, source, target);
}
