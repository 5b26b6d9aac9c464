//===- ConvolutionChannels.cpp - Channels of a rank -------------------------- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionChannels.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

static std::vector<ConvolutionChannels> cutChannels(const RankMemory &memory, const ConvolutionCall &call) {
  const std::vector<int64_t> &input = memory.plan.bufferOf(call.input).shape;
  const std::vector<int64_t> &output = memory.plan.bufferOf(call.output).shape;
  int64_t inGroup = input[1] / call.groups, outGroup = output[1] / call.groups;
  Interval out = memory.box(call.output)[1], in = memory.box(call.input)[1];
  Box weights = memory.box(call.weights);
  // The input channels that the rank has weights for: of all groups, or inside of each.
  Interval outerIn = call.transposed ? weights[0] : Interval{0, input[1]};
  Interval innerIn = call.transposed ? Interval{0, inGroup} : weights[1];
  in = in.intersect(outerIn);

  std::vector<ConvolutionChannels> parts;
  int64_t first = out.lo / outGroup, last = (out.hi - 1) / outGroup + 1;
  Interval needed = {first * inGroup, last * inGroup};
  bool wholeGroups = out.lo % outGroup == 0 && out.hi % outGroup == 0 && in.contains(needed) &&
                     innerIn.contains(Interval{0, inGroup}) &&
                     (!call.transposed || weights[1].contains(Interval{0, outGroup}));
  if (wholeGroups)
    return {{out, needed, last - first}};
  for (int64_t group = first; group < last; ++group)
    parts.push_back(
        {out.intersect({group * outGroup, (group + 1) * outGroup}), in.intersect(innerIn.shifted(group * inGroup)), 1});
  return parts;
}

absl::StatusOr<std::vector<ConvolutionChannels>>
dovetail::runtime::planConvolutionChannels(const RankMemory &memory, const ConvolutionCall &call) {
  std::vector<ConvolutionChannels> parts = cutChannels(memory, call);
  int64_t inGroup = memory.plan.bufferOf(call.input).shape[1] / call.groups;
  if (!memory.plan.tensors[call.output].sharding.isPartial())
    for (const ConvolutionChannels &channels : parts)
      if (channels.in.size() != inGroup * channels.groups)
        return absl::DataLossError(absl::StrCat("damaged plan: the sum is over ", inGroup * channels.groups,
                                                " channels, but this rank holds ", channels.in.size(), " of ",
                                                memory.name(call.input), " with weights for them"));
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
