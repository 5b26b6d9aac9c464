//===- RankMemory.cpp - Where the values of a rank lie --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/RankMemory.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

std::string RankMemory::name(uint32_t tensor) const {
  const std::string &name = plan.tensors[tensor].name;
  return name.empty() ? absl::StrCat("tensor ", tensor) : absl::StrCat("tensor '", name, "'");
}

layout::Box RankMemory::resultBox(const std::vector<LoopInfo> &loops, uint32_t output) const {
  return loopBox(std::span(loops).first(plan.bufferOf(output).shape.size()));
}

layout::Interval RankMemory::endAt(const LoopInfo &loop, layout::Interval range) const {
  if (loop.end && lengths)
    range.hi = std::clamp(loop.end->evaluate(lengths), range.lo, std::max(range.lo, range.hi));
  return range;
}

layout::Box RankMemory::loopBox(std::span<const LoopInfo> loops) const {
  std::vector<layout::Interval> ranges;
  for (const LoopInfo &loop : loops)
    ranges.push_back(range(loop));
  return ranges;
}

absl::Status RankMemory::checkHeld(uint32_t tensor, const layout::Box &needed) const {
  if (box(tensor).contains(needed))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("damaged plan: it needs ", needed.str(), " of ", name(tensor),
                                          ", but this rank holds ", box(tensor).str()));
}
