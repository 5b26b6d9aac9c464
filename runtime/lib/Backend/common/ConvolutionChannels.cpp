//===- ConvolutionChannels.cpp - Channels of a rank --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionChannels.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

std::vector<ConvolutionChannels> dovetail::runtime::planConvolutionChannels(const RankMemory &memory,
                                                                            const ConvolutionCall &call) {
  int64_t inGroup = memory.plan.bufferOf(call.input).shape[1] / call.groups;
  int64_t outGroup = memory.plan.bufferOf(call.output).shape[1] / call.groups;
  Interval out = memory.range(call.loops[1]), sum = memory.range(call.loops.back());
  int64_t first = out.lo / outGroup, last = (out.hi - 1) / outGroup + 1;
  if (out.lo % outGroup == 0 && out.hi % outGroup == 0 && sum == Interval{0, inGroup})
    return {{out, {first * inGroup, last * inGroup}, last - first}};
  std::vector<ConvolutionChannels> parts;
  for (int64_t group = first; group < last; ++group)
    parts.push_back({out.intersect({group * outGroup, (group + 1) * outGroup}), sum.shifted(group * inGroup), 1});
  return parts;
}

Box dovetail::runtime::convolutionWeightsBox(const RankMemory &memory, const ConvolutionCall &call,
                                             const ConvolutionChannels &channels) {
  Box box = Box::ofShape(memory.plan.bufferOf(call.weights).shape);
  Interval outer = call.transposed ? channels.in : channels.out, inner = call.transposed ? channels.out : channels.in;
  box[0] = outer;
  if (inner.empty())
    box[1] = inner;
  else if (channels.groups == 1)
    box[1] = inner.shifted(-(inner.lo / box[1].size()) * box[1].size());
  return box;
}
