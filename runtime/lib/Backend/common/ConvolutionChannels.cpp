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

std::vector<ConvolutionChannels> dovetail::runtime::planConvolutionChannels(const ConvolutionCall &call, Box loops) {
  int64_t outGroup = call.loops[1].extent / call.form.groups;
  Interval out = loops[1], sum = loops[static_cast<int>(call.inputAccess.size())];
  int64_t first = out.lo / outGroup, last = (out.hi - 1) / outGroup + 1;
  if (out.lo % outGroup == 0 && out.hi % outGroup == 0 && sum == Interval{0, call.sumLoop().extent})
    return {{std::move(loops), last - first}};
  std::vector<ConvolutionChannels> parts;
  for (int64_t group = first; group < last; ++group) {
    parts.push_back({loops, 1});
    parts.back().loops[1] = out.intersect({group * outGroup, (group + 1) * outGroup});
  }
  return parts;
}
