//===- EvenCuts.cpp - Families of cuts that divide evenly -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how CutFamilies finds cuts whose largest pieces are small, or fit the shares of unequal ranks.
//
//===----------------------------------------------------------------------===//

#include "CutFamilies.h"
#include "dovetail/Layout/Cuts.h"

#include <limits>

using namespace mlir;
using namespace dovetail;

/// Pieces of connected places that are looked at to find shares of unequal ranks.
static constexpr size_t kMaxLooks = size_t(1) << 22;

std::vector<std::pair<double, CutFamilies::Family>>
CutFamilies::findEvenFamilies(ArrayRef<unsigned> seeds, ArrayRef<unsigned> connected, ArrayRef<StringAttr> axes) const {
  std::vector<std::pair<double, Family>> found;
  for (unsigned seed : seeds) {
    Family family = follow(seed, getEvenCuts(extents[seed], axes));
    double cost = getCost(family);
    // What some family does not reach counts as whole.
    for (unsigned place : connected)
      if (!family.contains(place))
        cost += work[place];
    found.push_back({cost, std::move(family)});
  }
  return found;
}

double CutFamilies::getCost(const Family &family, ArrayRef<CutWeights::Placed> operations,
                            const CutWeights::Parts &parts) const {
  size_t numParts = parts.classOf.size();
  // When parts are done.
  std::vector<double> clocks(numParts);
  for (const CutWeights::Placed &operation : operations) {
    const Member *member = nullptr;
    ArrayRef<CutWeights::Line> lines = operation.places.front().second;
    unsigned own = 0;
    double bytes = 0;
    for (const auto &[place, linesOf] : operation.places) {
      auto entry = family.find(place);
      if (entry == family.end())
        continue;
      if (!member) {
        member = &entry->second;
        lines = linesOf;
        own = place;
      }
      for (unsigned number : linksOf[place])
        if (const Link &link = links[number]; link.loop == place)
          if (auto held = family.find(link.held); held != family.end())
            bytes += getMissing(link, held->second.cuts, entry->second.cuts);
    }
    auto getShare = [&](size_t part) {
      return member ? static_cast<double>(member->cuts[part + 1] - member->cuts[part]) /
                          static_cast<double>(std::max<int64_t>(extents[own], 1))
                    : 1;
    };
    if (bytes > 0) {
      double last = 0;
      for (size_t part = 0; part < numParts; ++part)
        if (getShare(part) > 0)
          last = std::max(last, clocks[part]);
      const dovetail::Link &link = cluster.getLinks().front();
      last += link.exchangeSeconds + bytes / link.bytes;
      for (size_t part = 0; part < numParts; ++part)
        if (getShare(part) > 0)
          clocks[part] = last;
    }
    // Operations that the family does not reach count as whole, whoever computes them.
    double whole = std::numeric_limits<double>::infinity();
    for (const CutWeights::Line &line : lines)
      whole = std::min(whole, line.get(1));
    for (size_t part = 0; part < numParts; ++part)
      clocks[part] += member ? lines[parts.classOf[part]].get(getShare(part)) : whole;
  }
  return *llvm::max_element(clocks);
}

std::vector<std::pair<double, CutFamilies::Family>> CutFamilies::findUnequalFamilies(ArrayRef<unsigned> seeds,
                                                                                     ArrayRef<unsigned> connected,
                                                                                     ArrayRef<StringAttr> axes) const {
  CutWeights::Parts parts = weights.getParts(getNumbers(axes));
  std::vector<unsigned> ascending(connected);
  llvm::sort(ascending);
  std::vector<CutWeights::Placed> operations = weights.find(ascending, parts);
  std::vector<CutWeights::Shares> candidates = weights.getCandidates(operations, parts);
  size_t looks = 0, looksOfOne = connected.size() * parts.classOf.size();
  struct Found {
    std::pair<double, double> cost;
    Family family;
    CutWeights::Shares shares;
  };
  auto tryShares = [&](unsigned seed, const CutWeights::Shares &shares, std::optional<Found> &best) {
    looks += looksOfOne;
    std::vector<int64_t> cuts = CutWeights::getCuts(extents[seed], parts, shares);
    // Shares beyond the limit count most, then time.
    double excess = CutWeights::getExcess(cuts, parts);
    Family family = follow(seed, std::move(cuts));
    std::pair cost(excess, getCost(family, operations, parts));
    if (best && best->cost <= cost)
      return false;
    best = {cost, std::move(family), shares};
    return true;
  };
  std::vector<std::pair<Found, unsigned>> bestOf;
  for (unsigned seed : seeds) {
    std::optional<Found> best;
    for (const CutWeights::Shares &shares : candidates)
      if (!best || looks < kMaxLooks)
        tryShares(seed, shares, best);
    bestOf.push_back({std::move(*best), seed});
  }
  llvm::stable_sort(bestOf, [](const auto &a, const auto &b) { return a.first.cost < b.first.cost; });
  std::optional<Found> best = std::move(bestOf.front().first);
  for (bool isBetter = true; isBetter && looks < kMaxLooks;) {
    isBetter = false;
    for (const CutWeights::Shares &shares : CutWeights::getVariants(CutWeights::Shares(best->shares), parts))
      isBetter |= tryShares(bestOf.front().second, shares, best);
  }
  bestOf.front().first = std::move(*best);
  std::vector<std::pair<double, Family>> found;
  for (auto &[each, seed] : bestOf)
    if (each.cost.first <= bestOf.front().first.cost.first + kLittleExcess)
      found.push_back({each.cost.second, std::move(each.family)});
  return found;
}

std::optional<std::vector<int64_t>> CutFamilies::refine(DimShardingAttr sharding, int64_t extent,
                                                        ArrayRef<StringAttr> axes) const {
  ArrayRef<StringAttr> own = sharding.getAxes();
  if (own.empty() || own.size() >= axes.size() || axes.take_front(own.size()) != own)
    return std::nullopt;
  auto cuts = getCutPositions(sharding, extent);
  if (!cuts)
    return std::nullopt;
  int64_t parts = getNumParts(mesh, axes.drop_front(own.size()));
  std::vector<int64_t> refined;
  for (size_t piece = 0; piece + 1 < cuts->size(); ++piece) {
    std::vector<int64_t> within = layout::balancedCuts((*cuts)[piece + 1] - (*cuts)[piece], parts);
    for (int64_t cut : ArrayRef(within).drop_back())
      refined.push_back((*cuts)[piece] + cut);
  }
  refined.push_back(cuts->back());
  return refined;
}
