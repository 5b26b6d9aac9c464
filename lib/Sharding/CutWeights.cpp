//===- CutWeights.cpp - How unequal pieces are ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements CutWeights.
//
//===----------------------------------------------------------------------===//

#include "CutWeights.h"

#include "dovetail/Layout/Cuts.h"

#include <cmath>
#include <map>
#include <numeric>

using namespace mlir;
using namespace dovetail;

/// Classes of slow parts that may be left without work, or whose shares are varied.
static constexpr size_t kMaxVaried = 3;
static constexpr double kVariations[] = {0.5, 0.8, 1.25};

CutWeights::CutWeights(const layout::Mesh &mesh, const Cluster &cluster, ArrayRef<double> mostShares,
                       ArrayRef<double> slowness)
    : mesh(mesh), mostShares(mostShares), slowness(slowness) {
  SmallVector<unsigned> numbers;
  for (const Device &device : cluster.getDevices()) {
    auto known = llvm::find(kinds, device.getKind());
    numbers.push_back(known - kinds.begin());
    if (known == kinds.end())
      kinds.push_back(device.getKind());
  }
  std::vector<Device> used;
  std::map<unsigned, unsigned> numberOf;
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    unsigned kind = numbers[rank % numbers.size()];
    auto [entry, isNew] = numberOf.try_emplace(kind, used.size());
    if (isNew)
      used.push_back(kinds[kind]);
    kindOf.push_back(entry->second);
  }
  kinds = std::move(used);
}

void CutWeights::addOperation(OpCosts work, unsigned first, unsigned count) {
  SmallVector<double, 4> seconds;
  for (const Device &kind : kinds)
    seconds.push_back(work.getSeconds(kind));
  for (unsigned place = first; place < first + count; ++place)
    workOf[place] = works.size();
  works.push_back({std::move(work), first, count, std::move(seconds)});
}

CutWeights::Parts CutWeights::getParts(ArrayRef<int> numbers) const {
  std::map<int64_t, Parts::Class> byPart;
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    Parts::Class &own = byPart[layout::linearCoordinate(mesh, numbers, mesh.coordsOf(rank))];
    if (!llvm::is_contained(own.kinds, kindOf[rank]))
      own.kinds.push_back(kindOf[rank]);
    if (!mostShares.empty())
      own.most = std::min(own.most, mostShares[rank]);
    own.slowness = std::max(own.slowness, slowness.empty() ? 1 : slowness[rank]);
  }
  Parts parts;
  std::map<std::tuple<std::vector<unsigned>, double, double>, unsigned> known;
  for (auto &[part, own] : byPart) {
    llvm::sort(own.kinds);
    auto [entry, isNew] = known.try_emplace(
        {std::vector<unsigned>(own.kinds.begin(), own.kinds.end()), own.most, own.slowness}, parts.classes.size());
    if (isNew)
      parts.classes.push_back(own);
    ++parts.classes[entry->second].count;
    parts.classOf.push_back(entry->second);
  }
  return parts;
}

std::vector<int64_t> CutWeights::getCuts(int64_t extent, const Parts &parts, const Shares &shares) {
  std::vector<double> speeds;
  for (unsigned number : parts.classOf)
    speeds.push_back(shares[number]);
  return layout::weightedCuts(extent, speeds);
}

double CutWeights::getExcess(ArrayRef<int64_t> cuts, const Parts &parts) {
  double excess = 0;
  for (size_t part = 0; part + 1 < cuts.size(); ++part)
    excess = std::max(excess, static_cast<double>(cuts[part + 1] - cuts[part]) /
                                      static_cast<double>(std::max<int64_t>(cuts.back(), 1)) -
                                  parts.classes[parts.classOf[part]].most);
  return excess;
}

CutWeights::Line CutWeights::getLine(unsigned number, unsigned loop, unsigned kind, size_t numParts) const {
  // Through what an even piece and half of it take, as speeds depend on sizes.
  const Work &work = works[number];
  SmallVector<int64_t> sizes(work.model.getExtents());
  auto extent = static_cast<double>(std::max<int64_t>(sizes[loop], 1));
  auto size = static_cast<int64_t>(std::ceil(extent / static_cast<double>(numParts))), half = size / 2;
  auto getSeconds = [&](int64_t some) {
    sizes[loop] = some;
    return work.model.getSeconds(kinds[kind], sizes);
  };
  double seconds = getSeconds(size), share = static_cast<double>(size) / extent;
  if (half == 0)
    return {0, seconds / share};
  double slope = std::max(seconds - getSeconds(half), 0.0) / (share - static_cast<double>(half) / extent);
  double base = std::max(seconds - slope * share, 0.0);
  return {base, (seconds - base) / share};
}

std::vector<CutWeights::Placed> CutWeights::find(ArrayRef<unsigned> places, const Parts &parts) const {
  std::vector<Placed> found;
  for (unsigned place : places) {
    auto entry = workOf.find(place);
    if (entry == workOf.end())
      continue;
    unsigned number = entry->second;
    if (found.empty() || found.back().number != number)
      found.push_back({number, {}});
    auto &[own, lines] = found.back().places.emplace_back();
    own = place;
    for (const Parts::Class &each : parts.classes) {
      Line slowest;
      for (unsigned kind : each.kinds) {
        Line line = getLine(number, place - works[number].first, kind, parts.classOf.size());
        line.base *= each.slowness;
        line.slope *= each.slowness;
        double share = 1.0 / static_cast<double>(parts.classOf.size());
        if (line.get(share) > slowest.get(share))
          slowest = line;
      }
      lines.push_back(slowest);
    }
  }
  return found;
}

CutWeights::Shares CutWeights::limit(Shares shares, const Parts &parts) {
  double all = 0, most = 0;
  for (auto [share, each] : llvm::zip_equal(shares, parts.classes)) {
    all += each.count * share;
    most += each.count * each.most;
  }
  for (double &share : shares)
    share /= all;
  // Where nobody may have as much as there is, it is too much for all alike.
  if (most <= 1) {
    for (auto [share, each] : llvm::zip_equal(shares, parts.classes))
      share = std::max(each.most, 1e-9);
    return shares;
  }
  // The others have the rest; each round, one class more has its most.
  std::vector<bool> isFull(shares.size());
  for (size_t round = 0; round < shares.size(); ++round) {
    double rest = 1, free = 0;
    for (auto [number, each] : llvm::enumerate(parts.classes)) {
      rest -= isFull[number] ? each.count * each.most : 0;
      free += isFull[number] ? 0 : each.count * shares[number];
    }
    bool isAny = false;
    for (auto [number, each] : llvm::enumerate(parts.classes)) {
      // Classes without work take it where the others are full.
      if (free <= 0 && !isFull[number] && shares[number] == 0)
        shares[number] = each.most, isAny = true;
      if (free > 0 && !isFull[number] && shares[number] * rest / free > each.most)
        isFull[number] = true, isAny = true;
    }
    if (!isAny) {
      for (auto [number, each] : llvm::enumerate(parts.classes))
        shares[number] = isFull[number] ? each.most : free > 0 ? shares[number] * rest / free : 0;
      break;
    }
  }
  return shares;
}

CutWeights::Shares CutWeights::level(ArrayRef<Line> work, const Parts &parts, ArrayRef<bool> isLeftOut) {
  auto getShare = [&](size_t number, double seconds) {
    const Line &line = work[number];
    if (isLeftOut[number] || line.slope <= 0)
      return isLeftOut[number] ? 0.0 : 1.0;
    return std::clamp((seconds - line.base) / line.slope, 0.0, 1.0);
  };
  auto getAll = [&](double seconds) {
    double all = 0;
    for (auto [number, each] : llvm::enumerate(parts.classes))
      all += each.count * getShare(number, seconds);
    return all;
  };
  double low = 0, high = 1e-9;
  while (getAll(high) < 1)
    high *= 2;
  for (int i = 0; i < 60; ++i) {
    double middle = (low + high) / 2;
    (getAll(middle) < 1 ? low : high) = middle;
  }
  Shares shares;
  for (size_t number = 0; number < work.size(); ++number)
    shares.push_back(getShare(number, high));
  return shares;
}

std::vector<CutWeights::Shares> CutWeights::getCandidates(ArrayRef<Placed> operations, const Parts &parts) const {
  size_t numClasses = parts.classes.size();
  std::vector<Line> products(numClasses), elements(numClasses), all(numClasses);
  for (const Placed &operation : operations) {
    std::vector<Line> &own = works[operation.number].model.isProduct() ? products : elements;
    for (auto [number, line] : llvm::enumerate(operation.places.front().second)) {
      own[number] += line;
      all[number] += line;
    }
  }
  std::vector<Shares> candidates;
  auto add = [&](Shares shares) {
    shares = limit(std::move(shares), parts);
    if (!llvm::is_contained(candidates, shares))
      candidates.push_back(std::move(shares));
  };
  auto hasWork = [](ArrayRef<Line> lines) {
    return llvm::all_of(lines, [](const Line &line) { return line.slope > 0; });
  };
  if (!hasWork(all))
    return {limit(Shares(numClasses, 1), parts)};
  SmallVector<bool> isLeftOut(numClasses, false);
  add(level(all, parts, isLeftOut));
  for (const std::vector<Line> *some : {&products, &elements})
    if (hasWork(*some))
      add(level(*some, parts, isLeftOut));
  std::vector<size_t> slowestFirst(numClasses);
  std::iota(slowestFirst.begin(), slowestFirst.end(), 0);
  double share = 1.0 / static_cast<double>(parts.classOf.size());
  llvm::stable_sort(slowestFirst, [&](size_t a, size_t b) { return all[a].get(share) > all[b].get(share); });
  for (size_t i = 0; i + 1 < numClasses && i < kMaxVaried; ++i) {
    isLeftOut[slowestFirst[i]] = true;
    add(level(all, parts, isLeftOut));
  }
  return candidates;
}

CutWeights::Shares CutWeights::getOverall(const Parts &parts) const {
  std::vector<Line> all(parts.classes.size());
  for (auto [line, each] : llvm::zip_equal(all, parts.classes))
    for (unsigned kind : each.kinds) {
      double seconds = 0;
      for (const Work &work : works)
        seconds += each.slowness * work.seconds[kind];
      line.slope = std::max(line.slope, seconds);
    }
  bool hasWork = llvm::all_of(all, [](const Line &line) { return line.slope > 0; });
  return limit(hasWork ? level(all, parts, SmallVector<bool>(all.size(), false)) : Shares(all.size(), 1), parts);
}

std::vector<CutWeights::Shares> CutWeights::getVariants(const Shares &shares, const Parts &parts) {
  std::vector<Shares> variants;
  std::vector<size_t> leastFirst(shares.size());
  std::iota(leastFirst.begin(), leastFirst.end(), 0);
  llvm::stable_sort(leastFirst, [&](size_t a, size_t b) { return shares[a] < shares[b]; });
  // The largest shares follow from the others.
  leastFirst.resize(std::min(shares.size() - 1, kMaxVaried));
  for (size_t number : leastFirst)
    for (double factor : kVariations) {
      Shares variant = shares;
      variant[number] *= factor;
      variants.push_back(limit(std::move(variant), parts));
    }
  return variants;
}
