//===- ConvolutionChannels.h - Channels of a rank -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the channels that a rank has of a convolution are divided into calls of a library, on CPUs and devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONCHANNELS_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONCHANNELS_H

#include "dovetail/runtime/RankMemory.h"

#include <vector>

namespace dovetail::runtime {

/// The iterations of one part, with no reductions where nothing is summed up.
struct ConvolutionChannels {
  layout::Box loops;  ///< Of the call: of `out` in dimension 1 of the output.
  int64_t groups = 1; ///< The channels are that many whole groups, or parts of a single one.
};

/// Cuts the channels of `loops`, some of the iterations that the call's loops give a rank with at least one channel of
/// the output, into parts that are whole groups, or lie in one group each.
std::vector<ConvolutionChannels> planConvolutionChannels(const ConvolutionCall &call, layout::Box loops);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_CONVOLUTIONCHANNELS_H
