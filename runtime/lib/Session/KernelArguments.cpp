//===- KernelArguments.cpp - What kernels are called with -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelArguments.h"

using namespace dovetail;
using namespace dovetail::runtime;

std::vector<layout::Interval> dovetail::runtime::kernelRanges(const RankMemory &memory, const KernelCall &call) {
  std::vector<layout::Interval> ranges;
  for (const LoopInfo &loop : call.loops)
    ranges.push_back(memory.range(loop));
  return ranges;
}

bool dovetail::runtime::hasNothingToDo(const RankMemory &memory, const KernelCall &call) {
  std::vector<layout::Interval> ranges = kernelRanges(memory, call);
  for (uint32_t loop : call.skipLoops)
    if (ranges[loop].empty())
      return true;
  return false;
}

KernelArguments dovetail::runtime::kernelArguments(const RankMemory &memory, const KernelCall &call) {
  KernelArguments result;
  result.ranges = kernelRanges(memory, call);
  for (layout::Interval range : result.ranges) {
    result.numbers.push_back(range.lo);
    result.numbers.push_back(range.hi);
  }
  for (const std::vector<uint32_t> *list : {&call.reads, &call.writes})
    for (uint32_t tensor : *list) {
      const MemoryView &view = memory.memory(tensor);
      result.pointers.push_back(view.origin());
      result.numbers.insert(result.numbers.end(), view.strides.begin(), view.strides.end());
    }
  if (!call.checks.empty())
    result.pointers.push_back(memory.records + call.firstCheck);
  result.pointers.push_back(memory.counts);
  return result;
}
