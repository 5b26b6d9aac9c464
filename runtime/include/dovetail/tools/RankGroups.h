//===- RankGroups.h - Many ranks in few words -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how texts and pages for people speak of many ranks: in groups, so that no text grows with the mesh.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_RANKGROUPS_H
#define DOVETAIL_TOOLS_RANKGROUPS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dovetail::tools {

/// `0-3, 6`: ranks, in order. Of many ranges the first, and how many ranks there are.
std::string formatRanks(const std::vector<int> &ranks);
/// `rank 3` or `ranks 0-3, 6`.
std::string nameRanks(const std::vector<int> &ranks);

/// A sharding as `dovetail inspect --json` has it, with long lists of pieces made short: equal ones that follow each
/// other are counted.
std::string shortenSharding(const std::string &sharding);

/// A number for each rank: the numbers where there are few, else each with the ranks that have it. `format` makes the
/// text of a number.
std::string formatByRank(const std::vector<int64_t> &numbers, const char *separator,
                         const std::function<std::string(int64_t)> &format);

/// Ranks with the same numbers.
struct RankGroup {
  std::vector<int64_t> numbers;
  std::vector<int> ranks;
};
/// Groups of ranks, in order of the first rank of each.
struct RankGroups {
  std::vector<RankGroup> groups;
  /// How many more there are, of which each has no more of the number that counts.
  size_t left = 0;
};
/// Groups ranks by their numbers, which are in the order of ranks. Of many groups, those that have most at `column`.
RankGroups groupRanks(const std::vector<std::vector<int64_t>> &numbers, size_t column);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_RANKGROUPS_H
