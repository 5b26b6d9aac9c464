//===- RankGroups.cpp - Many ranks in few words ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements groups of ranks.
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/RankGroups.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>
#include <utility>

using namespace dovetail;

std::string tools::formatRanks(const std::vector<int> &ranks) {
  constexpr int most = 4;
  std::string text;
  int ranges = 0;
  for (size_t i = 0; i < ranks.size();) {
    if (ranges++ == most)
      return text + ", ... (" + std::to_string(ranks.size()) + " ranks)";
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (end - i > 1)
      text += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string tools::nameRanks(const std::vector<int> &ranks) {
  return (ranks.size() > 1 ? "ranks " : "rank ") + formatRanks(ranks);
}

/// Ranks, pieces and groups of them that are listed one by one.
static constexpr size_t mostListed = 8, mostGroups = 4, mostRows = 12;

/// Pieces of a dimension as text: equal ones that follow each other are counted where there are many.
static std::string formatPieces(const std::vector<std::string> &pieces, const char *separator) {
  if (pieces.size() <= mostListed)
    return absl::StrJoin(pieces, separator);
  std::vector<std::string> groups;
  for (size_t i = 0; i < pieces.size() && groups.size() <= mostGroups;) {
    size_t end = i + 1;
    while (end < pieces.size() && pieces[end] == pieces[i])
      ++end;
    groups.push_back(end - i == 1 ? pieces[i] : absl::StrCat(end - i, " x ", pieces[i]));
    i = end;
  }
  if (groups.size() <= mostGroups)
    return absl::StrJoin(groups, " + ");
  return absl::StrCat(pieces[0], separator, pieces[1], separator, pieces[2], separator, "...", separator, pieces.back(),
                      " (", pieces.size(), " shards)");
}

std::string tools::shortenSharding(const std::string &sharding) {
  std::string result;
  for (size_t at = 0; at < sharding.size();) {
    // A colon is between axes and pieces.
    size_t begin = sharding.find(':', at);
    if (begin == std::string::npos)
      return result + sharding.substr(at);
    ++begin;
    bool areWindows = begin < sharding.size() && sharding[begin] == '[';
    size_t end = begin;
    std::vector<std::string> pieces;
    while (end < sharding.size() && (areWindows ? sharding[end] == '[' : absl::ascii_isdigit(sharding[end]))) {
      size_t last = areWindows ? sharding.find(')', end) + 1 : sharding.find_first_not_of("0123456789", end);
      last = std::min(last, sharding.size());
      pieces.push_back(sharding.substr(end, last - end));
      end = !areWindows && last < sharding.size() && sharding[last] == '+' ? last + 1 : last;
    }
    absl::StrAppend(&result, sharding.substr(at, begin - at), formatPieces(pieces, areWindows ? "" : "+"));
    at = end;
  }
  return result;
}

std::string tools::formatByRank(const std::vector<int64_t> &numbers, const char *separator,
                                const std::function<std::string(int64_t)> &format) {
  if (numbers.size() <= mostListed)
    return absl::StrJoin(numbers, separator,
                         [&](std::string *out, int64_t number) { absl::StrAppend(out, format(number)); });
  std::map<int64_t, std::vector<int>, std::greater<>> ranks;
  for (size_t rank = 0; rank < numbers.size(); ++rank)
    ranks[numbers[rank]].push_back(static_cast<int>(rank));
  std::vector<std::string> groups;
  for (const auto &[number, group] : ranks) {
    if (groups.size() == mostGroups) {
      groups.push_back(absl::StrCat(ranks.size() - mostGroups, " other numbers"));
      break;
    }
    groups.push_back(absl::StrCat(format(number), " (", formatRanks(group), ")"));
  }
  return absl::StrJoin(groups, ", ");
}

tools::RankGroups tools::groupRanks(const std::vector<std::vector<int64_t>> &numbers, size_t column) {
  std::map<std::vector<int64_t>, std::vector<int>> ranksOf;
  for (size_t rank = 0; rank < numbers.size(); ++rank)
    ranksOf[numbers[rank]].push_back(static_cast<int>(rank));
  RankGroups result;
  for (auto &[key, ranks] : ranksOf)
    result.groups.push_back({key, std::move(ranks)});
  auto hasMore = [&](const RankGroup &a, const RankGroup &b) { return a.numbers[column] > b.numbers[column]; };
  std::stable_sort(result.groups.begin(), result.groups.end(), hasMore);
  result.left = result.groups.size() - std::min(result.groups.size(), mostRows);
  result.groups.resize(result.groups.size() - result.left);
  std::sort(result.groups.begin(), result.groups.end(),
            [](const RankGroup &a, const RankGroup &b) { return a.ranks < b.ranks; });
  return result;
}
