//===- JobLoops.cpp - Parts of loops that a job can take ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JobLoops.h"

#include <algorithm>

using namespace dovetail::runtime::device;

/// Kernels count the rounds of a job in 32 bits.
static constexpr int64_t maxRounds = int64_t(1) << 31;

/// The product of the counts from `begin` on, or more than `maxRounds`.
static int64_t countRounds(const std::vector<int64_t> &counts, size_t begin) {
  if (std::count(counts.begin() + begin, counts.end(), 0) > 0)
    return 0;
  int64_t rounds = 1;
  for (size_t i = begin; i < counts.size(); ++i)
    rounds = rounds > maxRounds || counts[i] > maxRounds ? maxRounds + 1 : rounds * counts[i];
  return rounds;
}

int64_t LoopPart::rounds() const { return countRounds(count, 0); }

static void split(LoopPart part, size_t mostLoops, std::vector<LoopPart> &parts) {
  // With too many loops, the shortest one makes the fewest parts; with too many rounds, the outermost one the largest.
  size_t loops = 0, outermost = part.count.size(), shortest = outermost;
  for (size_t i = part.count.size(); i-- > 0;) {
    if (part.count[i] <= 1)
      continue;
    ++loops;
    outermost = i;
    if (shortest == part.count.size() || part.count[i] < part.count[shortest])
      shortest = i;
  }
  bool isDeep = loops > mostLoops;
  if (!isDeep && part.rounds() <= maxRounds) {
    parts.push_back(std::move(part));
    return;
  }
  size_t loop = isDeep ? shortest : outermost;
  int64_t rounds = isDeep ? 1 : std::max<int64_t>(1, maxRounds / countRounds(part.count, loop + 1));
  for (int64_t begin = part.first[loop], end = begin + part.count[loop]; begin < end; begin += rounds) {
    part.first[loop] = begin;
    part.count[loop] = std::min(rounds, end - begin);
    split(part, mostLoops, parts);
  }
}

std::vector<LoopPart> dovetail::runtime::device::splitLoops(const std::vector<int64_t> &counts, size_t mostLoops) {
  std::vector<LoopPart> parts;
  split({std::vector<int64_t>(counts.size()), counts}, mostLoops, parts);
  return parts;
}
