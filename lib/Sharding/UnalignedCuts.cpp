//===- UnalignedCuts.cpp - Cuts that strides do not fit -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how CutFamilies finds cuts that do not follow each other, and others near them that do.
//
//===----------------------------------------------------------------------===//

#include "CutFamilies.h"

#include <array>

using namespace mlir;
using namespace dovetail;

/// `cuts` of a dimension of `extent`, `up` farther on and rounded down to multiples of `step`. None if a rank that has
/// something would have nothing: such cuts say nothing of where to cut.
static std::optional<std::vector<int64_t>> align(ArrayRef<int64_t> cuts, int64_t extent, int64_t step, int64_t up) {
  std::vector<int64_t> aligned(cuts);
  for (int64_t &cut : aligned)
    if (cut < extent)
      cut = std::min((cut + up) / step * step, extent);
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    if (cuts[i] < cuts[i + 1] && aligned[i] == aligned[i + 1])
      return std::nullopt;
  return aligned;
}

bool CutFamilies::isUnaligned(const Link &link, ArrayRef<int64_t> held, ArrayRef<int64_t> loop) const {
  int64_t step = link.map.getNum();
  double missing = getMissing(link, held, loop);
  if (missing == 0)
    return false;
  // Windows wider than a step may lack as much wherever cuts are.
  return llvm::any_of(std::array<int64_t, 2>{0, step - 1}, [&](int64_t up) {
    std::optional<std::vector<int64_t>> aligned = align(held, extents[link.held], step, up);
    if (!aligned)
      return false;
    auto followed = follow(link, /*isHeld=*/true, *aligned);
    return followed && getMissing(link, *aligned, *followed) < missing;
  });
}

const CutFamilies::Link *CutFamilies::findUnaligned(const Family &family) const {
  auto link = llvm::find_if(links, [&](const Link &link) {
    auto held = family.find(link.held);
    if (held == family.end() || !family.contains(link.loop) || link.map.getKind() != layout::DimMap::Kind::Affine ||
        link.map.getDen() != 1 || link.map.getNum() <= 1)
      return false;
    return isUnaligned(link, held->second.cuts, family.find(link.loop)->second.cuts);
  });
  return link == links.end() ? nullptr : &*link;
}

std::vector<std::vector<int64_t>> CutFamilies::findAligned(unsigned place, ArrayRef<int64_t> cuts, int64_t step) const {
  std::vector<std::vector<int64_t>> found;
  // Strides of several layers multiply.
  for (int64_t factor : {1, 2, 3, 4, 6, 8, 9, 12, 16, 32}) {
    int64_t multiple = step * factor;
    for (int64_t up : {multiple / 2, int64_t(0), multiple - 1}) {
      std::optional<std::vector<int64_t>> aligned = align(cuts, extents[place], multiple, up);
      if (aligned && !llvm::is_contained(found, *aligned) && !findUnaligned(follow(place, *aligned)))
        found.push_back(*std::move(aligned));
    }
    if (!found.empty())
      break;
  }
  return found;
}

std::vector<CutFamilies::Unaligned> CutFamilies::findUnaligned(ArrayRef<StringAttr> axes) const {
  std::vector<Unaligned> found;
  for (const auto &[place, list] : given)
    for (auto [sharding, isStated] : list) {
      auto positions = getCutPositions(sharding, extents[place]);
      if (!isStated || sharding.getAxes() != axes || !positions)
        continue;
      std::vector<int64_t> cuts(positions->begin(), positions->end());
      if (const Link *link = findUnaligned(follow(place, cuts))) {
        int64_t step = link->map.getNum();
        std::vector<std::vector<int64_t>> aligned = findAligned(place, cuts, step);
        found.push_back({link->loop, step, std::move(cuts), std::move(aligned)});
      }
    }
  return found;
}
