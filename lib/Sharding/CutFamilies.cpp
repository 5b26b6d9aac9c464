//===- CutFamilies.cpp - Cuts that follow each other ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements CutFamilies.
//
//===----------------------------------------------------------------------===//

#include "CutFamilies.h"
#include "dovetail/Cost/ExchangeCosts.h"
#include "dovetail/Cost/OpCosts.h"

#include "dovetail/Layout/Cuts.h"

#include <cmath>
#include <queue>

using namespace mlir;
using namespace dovetail;

/// Of a set of connected places, the extents at which a family is begun.
static constexpr size_t kMaxSeeds = 8;
/// Of these, those that are decided between where cuts are to be found.
static constexpr size_t kMaxOpenFamilies = 4;
/// Ways to cut one place over the same axes.
static constexpr size_t kMaxCuts = 4;

CutFamilies::CutFamilies(func::FuncOp function, const layout::Mesh &mesh, const Cluster &cluster,
                         ArrayRef<double> mostShares, ArrayRef<double> slowness, bool divides)
    : mesh(mesh), cluster(cluster), weights(mesh, cluster, mostShares, slowness), divides(divides),
      context(function.getContext()) {
  for (BlockArgument argument : function.getArguments())
    places[argument] = addPlaces(cast<RankedTensorType>(argument.getType()).getShape(), 0);
  DenseSet<Value> constants = getConstantValues(function);
  for (Operation &op : function.getBody().front())
    if (op.getNumResults() > 0 && !constants.contains(op.getResult(0)))
      addOperation(&op, constants);
}

unsigned CutFamilies::addPlaces(ArrayRef<int64_t> newExtents, double seconds) {
  unsigned first = extents.size();
  llvm::append_range(extents, newExtents);
  work.resize(extents.size(), seconds);
  linksOf.resize(extents.size());
  return first;
}

std::optional<unsigned> CutFamilies::getPlace(Value value) const {
  auto entry = places.find(value);
  return entry == places.end() ? std::nullopt : std::optional(entry->second);
}

void CutFamilies::addOperation(Operation *op, const DenseSet<Value> &constants) {
  OpRelation relation;
  double seconds = 0;
  std::optional<OpCosts> model;
  if (auto defined = dyn_cast<SplitOpInterface>(op)) {
    relation = defined.getRelation();
    model.emplace(defined, relation, constants);
    seconds = model->getSeconds(cluster.getDevice(0));
  } else if (isa<ReshardOp>(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    relation.operands.emplace_back();
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      relation.loops.push_back({extent});
      relation.operands[0].push_back(DimRelation::identity(dim));
    }
  } else {
    return;
  }
  unsigned first = addPlaces(getExtents(relation.loops), seconds);
  if (model && weights.areUnequal())
    weights.addOperation(std::move(*model), first, relation.loops.size());
  for (Value result : op->getResults())
    places[result] = first;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    std::optional<unsigned> held = getPlace(operand);
    if (!held)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
      if (entry.loop < 0)
        continue;
      LoopKind kind = relation.loops[entry.loop].kind;
      if (kind == LoopKind::Whole || kind == LoopKind::Part || kind == LoopKind::Tap)
        continue;
      addLink(type, *held, dim, first + entry.loop, entry.map);
    }
  }
}

void CutFamilies::addLink(RankedTensorType type, unsigned held, unsigned dim, unsigned loop,
                          const layout::DimMap &map) {
  double bytes = static_cast<double>(getByteSize(type)) / std::max<int64_t>(type.getDimSize(dim), 1);
  linksOf[held + dim].push_back(links.size());
  linksOf[loop].push_back(links.size());
  int64_t needed = map.need({0, extents[loop]}).size(),
          inside = map.needClipped({0, extents[loop]}, extents[held + dim]).size();
  links.push_back({held + dim, loop, map, bytes, 2 * inside >= needed, 2 * inside >= extents[held + dim]});
}

std::optional<std::vector<int64_t>> CutFamilies::follow(const Link &link, bool isHeld, ArrayRef<int64_t> cuts) const {
  if (!(isHeld ? link.leads : link.leadsBack))
    return std::nullopt;
  return isHeld ? link.map.follow(cuts, extents[link.loop]) : link.map.followBack(cuts, extents[link.held]);
}

void CutFamilies::feedBack(Value value, BlockArgument argument) {
  std::optional<unsigned> held = getPlace(value), next = getPlace(argument);
  if (!held || !next || *held == *next)
    return;
  auto type = cast<RankedTensorType>(argument.getType());
  for (unsigned dim = 0, e = type.getRank(); dim < e; ++dim)
    addLink(type, *held, dim, *next + dim, DimRelation::identity(dim).map);
}

void CutFamilies::state(unsigned place, DimShardingAttr cuts, bool isStated) {
  auto &list = given[place];
  if (llvm::none_of(list, [&](const auto &entry) { return entry.first == cuts; }))
    list.push_back({cuts, isStated});
  SmallVector<StringAttr> axes(cuts.getAxes());
  if (!llvm::is_contained(statedAxes, axes))
    statedAxes.push_back(axes);
}

void CutFamilies::stateOpen(unsigned place, ArrayRef<StringAttr> someAxes) {
  SmallVector<StringAttr> axes(someAxes);
  if (!llvm::is_contained(statedAxes, axes))
    statedAxes.push_back(axes);
  open.push_back({place, axes});
}

CutFamilies::Family CutFamilies::follow(unsigned place, std::vector<int64_t> cuts) const {
  // Of all that is connected to a place, what follows it most closely goes first: by bytes that do not lie where they
  // are read, then by when it was found.
  struct Next {
    double bytes;
    size_t order;
    unsigned place;
    Member member;
    bool operator<(const Next &other) const { return std::pair(bytes, order) > std::pair(other.bytes, other.order); }
  };
  Family family;
  std::priority_queue<Next> queue;
  size_t order = 0;
  double imbalance = getImbalance(place, cuts);
  queue.push({0, order++, place, {std::move(cuts), imbalance}});
  while (!queue.empty()) {
    Next next = queue.top();
    queue.pop();
    const std::vector<int64_t> &known = next.member.cuts;
    if (!family.try_emplace(next.place, next.member).second)
      continue;
    for (unsigned number : linksOf[next.place]) {
      const Link &link = links[number];
      bool isHeld = link.held == next.place;
      unsigned to = isHeld ? link.loop : link.held;
      if (family.contains(to))
        continue;
      auto followed = follow(link, isHeld, known);
      if (!followed)
        continue;
      double bytes = isHeld ? getMissing(link, known, *followed) : getMissing(link, *followed, known);
      double allowed = getAllowed(next.member.imbalance, to, known.size() - 1);
      queue.push({bytes, order++, to, {std::move(*followed), allowed}});
    }
  }
  return family;
}

double CutFamilies::getMissing(const Link &link, ArrayRef<int64_t> held, ArrayRef<int64_t> loop) const {
  if (link.map.isIdentity() && held == loop && loop.back() <= extents[link.held])
    return 0;
  int64_t missing = 0;
  for (size_t i = 0; i + 1 < loop.size(); ++i) {
    layout::Interval need = link.map.needClipped({loop[i], loop[i + 1]}, extents[link.held]);
    missing += need.size() - need.intersect({held[i], held[i + 1]}).size();
  }
  return static_cast<double>(missing) * link.bytes;
}

static int64_t getLargestPiece(ArrayRef<int64_t> cuts) {
  int64_t largest = 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    largest = std::max(largest, cuts[i + 1] - cuts[i]);
  return largest;
}

double CutFamilies::getImbalance(unsigned place, ArrayRef<int64_t> cuts) const {
  double parts = static_cast<double>(cuts.size() - 1);
  return static_cast<double>(getLargestPiece(cuts)) * parts / static_cast<double>(std::max<int64_t>(extents[place], 1));
}

double CutFamilies::getCost(const Family &family) const {
  double seconds = 0;
  for (const auto &[place, member] : family) {
    const std::vector<int64_t> &cuts = member.cuts;
    seconds += work[place] * getImbalance(place, cuts) / static_cast<double>(cuts.size() - 1);
    for (unsigned number : linksOf[place]) {
      const Link &link = links[number];
      if (link.loop != place)
        continue;
      auto held = family.find(link.held);
      if (held == family.end())
        continue;
      double bytes = getMissing(link, held->second.cuts, cuts);
      seconds += bytes / cluster.getLinks().front().bytes;
    }
  }
  return seconds;
}

double CutFamilies::getAllowed(double imbalance, unsigned place, size_t parts) const {
  // A few elements say nothing about what follows them.
  if (extents[place] < static_cast<int64_t>(parts))
    return imbalance;
  double share = static_cast<double>(extents[place]) / static_cast<double>(parts);
  return std::max(imbalance, std::ceil(imbalance * share) / share);
}

void CutFamilies::addFamily(const Family &family, ArrayRef<StringAttr> axes, Origin origin,
                            std::vector<SmallVector<Cuts, 1>> &result) const {
  CutWeights::Parts parts = weights.getParts(getNumbers(axes));
  auto add = [&](unsigned place, const Member &member) {
    // Where cuts led from another place, a rank may have too much.
    if (weights.areLimited() && !origin.isStated &&
        CutWeights::getExcess(member.cuts, parts) >
            kLittleExcess + 1.0 / static_cast<double>(std::max<int64_t>(extents[place], 1)))
      return false;
    auto sharding = DimShardingAttr::getCuts(axes, member.cuts);
    auto known = llvm::find_if(result[place], [&](const Cuts &other) { return other.sharding == sharding; });
    if (known != result[place].end()) {
      if (known->isStated && origin.isStated && !llvm::is_contained(known->origins, origin.number))
        known->origins.push_back(origin.number);
      return false;
    }
    double share = static_cast<double>(extents[place]) / static_cast<double>(member.cuts.size() - 1);
    bool mayBeUneven = origin.isStated && extents[place] > 0;
    Cuts &cuts = result[place].emplace_back();
    cuts.sharding = sharding;
    cuts.isStated = origin.isStated;
    cuts.imbalance = mayBeUneven ? std::ceil(member.imbalance * share) / share : 1;
    cuts.isOpen = origin.isOpen;
    if (origin.isStated)
      cuts.origins.push_back(origin.number);
    return true;
  };
  SmallVector<std::pair<unsigned, Member>> others;
  auto addOther = [&](unsigned place, std::optional<std::vector<int64_t>> cuts, const Member &from) {
    if (cuts)
      others.push_back({place, {*cuts, getAllowed(from.imbalance, place, cuts->size() - 1)}});
  };
  // Of all links those of the family, in the order in which they were made.
  std::vector<unsigned> own;
  for (const auto &[place, member] : family) {
    add(place, member);
    for (unsigned number : linksOf[place])
      if (links[number].held == place)
        own.push_back(number);
  }
  llvm::sort(own);
  for (unsigned number : own) {
    const Link &link = links[number];
    auto held = family.find(link.held), loop = family.find(link.loop);
    if (loop == family.end() || getMissing(link, held->second.cuts, loop->second.cuts) == 0)
      continue;
    addOther(link.held, follow(link, /*isHeld=*/false, loop->second.cuts), loop->second);
    addOther(link.loop, follow(link, /*isHeld=*/true, held->second.cuts), held->second);
  }
  while (!others.empty()) {
    auto [place, member] = others.pop_back_val();
    if (result[place].size() >= kMaxCuts || !add(place, member))
      continue;
    const std::vector<int64_t> &cuts = member.cuts;
    for (unsigned number : linksOf[place]) {
      const Link &link = links[number];
      bool isHeld = link.held == place;
      unsigned to = isHeld ? link.loop : link.held;
      auto followed = follow(link, isHeld, cuts);
      if (followed && (isHeld ? getMissing(link, cuts, *followed) : getMissing(link, *followed, cuts)) == 0)
        addOther(to, std::move(followed), member);
    }
  }
}

std::vector<int> CutFamilies::getNumbers(ArrayRef<StringAttr> axes) const {
  std::vector<int> numbers;
  for (StringAttr axis : axes)
    numbers.push_back(*mesh.axisIndex({axis.data(), axis.size()}));
  return numbers;
}

std::vector<int64_t> CutFamilies::getEvenCuts(int64_t extent, ArrayRef<StringAttr> axes) const {
  if (!weights.areUnequal())
    return layout::balancedCuts(extent, getNumParts(mesh, axes));
  CutWeights::Parts parts = weights.getParts(getNumbers(axes));
  return CutWeights::getCuts(extent, parts, weights.getOverall(parts));
}

void CutFamilies::findFamilies(ArrayRef<StringAttr> axes, std::vector<SmallVector<Cuts, 1>> &result) {
  result.resize(extents.size());
  int64_t parts = getNumParts(mesh, axes);
  unsigned number = 0;
  for (const auto &[place, list] : given)
    for (auto [sharding, isStated] : list) {
      // One family serves all places that already follow each other so.
      if (sharding.getAxes() != axes ||
          llvm::any_of(result[place], [&](const Cuts &known) { return known.sharding == sharding; }))
        continue;
      if (auto cuts = getCutPositions(sharding, extents[place]))
        addFamily(follow(place, std::vector<int64_t>(cuts->begin(), cuts->end())), axes,
                  {isStated, /*isOpen=*/false, number++}, result);
    }
  for (const auto &[place, list] : given)
    for (auto [sharding, isStated] : list)
      if (auto cuts = divides ? refine(sharding, extents[place], axes) : std::nullopt; cuts && isStated)
        addFamily(follow(place, std::move(*cuts)), axes, {isStated, /*isOpen=*/false, number++}, result);
  std::vector<bool> seen(extents.size());
  for (unsigned start = 0; start < extents.size(); ++start) {
    if (seen[start])
      continue;
    SmallVector<unsigned> connected = {start};
    seen[start] = true;
    for (size_t i = 0; i < connected.size(); ++i)
      for (unsigned number : linksOf[connected[i]])
        for (unsigned next : {links[number].held, links[number].loop})
          if (!seen[next]) {
            seen[next] = true;
            connected.push_back(next);
          }
    // The coarsest places first. Those of less extent than ranks leave some without work wherever they lead.
    std::map<int64_t, unsigned> seeds;
    for (unsigned place : connected)
      seeds.try_emplace(extents[place], place);
    auto begin = seeds.lower_bound(parts);
    if (begin == seeds.end())
      begin = std::prev(begin);
    SmallVector<unsigned> tried;
    for (; begin != seeds.end() && tried.size() < kMaxSeeds; ++begin)
      tried.push_back(begin->second);
    std::vector<std::pair<double, Family>> found =
        weights.areUnequal() ? findUnequalFamilies(tried, connected, axes) : findEvenFamilies(tried, connected, axes);
    llvm::stable_sort(found, llvm::less_first());
    // Where cuts are to be found, the search decides between families. Not of unequal ranks: it adds up times of each
    // operation's slowest rank, which need not be the same one.
    SmallVector<unsigned> toFind;
    for (const auto &[place, openAxes] : open)
      if (openAxes == axes && llvm::is_contained(connected, place))
        toFind.push_back(place);
    size_t most = toFind.empty() || weights.areUnequal() ? 1 : kMaxOpenFamilies;
    // Sizes that are asked for elsewhere hold here, too.
    bool isStated = llvm::any_of(toFind, [&](unsigned place) {
      return llvm::none_of(result[place], [](const Cuts &known) { return known.isStated; });
    });
    Origin origin{isStated, isStated, number++};
    for (const auto &[cost, family] : found) {
      bool isOther = llvm::any_of(toFind, [&](unsigned place) {
        auto member = family.find(place);
        return member != family.end() && llvm::none_of(result[place], [&](const Cuts &known) {
                 return known.sharding == DimShardingAttr::getCuts(axes, member->second.cuts);
               });
      });
      if (most == 0 || (&family != &found.front().second && !isOther))
        continue;
      addFamily(family, axes, origin, result);
      --most;
    }
    for (unsigned place : connected)
      if (result[place].empty())
        result[place].push_back({DimShardingAttr::getCuts(axes, getEvenCuts(extents[place], axes)), false, 1});
  }
}

CutFamilies::Followers CutFamilies::getFollowers(ArrayRef<StringAttr> axes) const {
  Followers followers;
  SmallVector<unsigned> begins;
  auto add = [&](unsigned place, std::vector<int64_t> cuts) {
    begins.push_back(place);
    if (!followers.places.contains(place))
      for (const auto &[follower, member] : follow(place, std::move(cuts)))
        followers.places.insert(follower);
  };
  for (const auto &[place, list] : given)
    for (auto [sharding, isStated] : list)
      if (isStated && sharding.getAxes() == axes)
        if (auto cuts = getCutPositions(sharding, extents[place]))
          add(place, std::vector<int64_t>(cuts->begin(), cuts->end()));
  for (const auto &[place, openAxes] : open)
    if (openAxes == axes)
      add(place, getEvenCuts(extents[place], axes));
  while (!begins.empty()) {
    unsigned place = begins.pop_back_val();
    for (unsigned number : linksOf[place])
      if (const Link &link = links[number]; link.held == place && followers.places.contains(link.loop))
        if (followers.behind.insert(link.loop).second)
          begins.push_back(link.loop);
  }
  return followers;
}

ArrayRef<CutFamilies::Cuts> CutFamilies::get(unsigned place, ArrayRef<StringAttr> axes) {
  auto key = ArrayAttr::get(context, SmallVector<Attribute>(axes.begin(), axes.end()));
  auto [entry, isNew] = families.try_emplace(key);
  if (isNew)
    findFamilies(axes, entry->second);
  return entry->second[place];
}
