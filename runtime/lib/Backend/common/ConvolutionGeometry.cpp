//===- ConvolutionGeometry.cpp - What a part of a convolution reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionGeometry.h"
#include "WindowGeometry.h"

#include "dovetail/Layout/Arith.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

/// Checks that the rank holds `box` of a tensor.
static absl::Status checkHeld(const RankMemory &memory, uint32_t tensor, const Box &box) {
  if (memory.box(tensor).contains(box))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("damaged plan: it needs ", box.str(), " of ", memory.name(tensor),
                                          ", but this rank holds ", memory.box(tensor).str()));
}

absl::StatusOr<ConvolutionGeometry> ConvolutionGeometry::plan(const RankMemory &memory, const ConvolutionCall &call,
                                                              const ConvolutionChannels &channels) {
  const std::vector<int64_t> &input = memory.plan.bufferOf(call.input).shape;
  const std::vector<int64_t> &weights = memory.plan.bufferOf(call.weights).shape;
  ConvolutionGeometry result;
  result.outBox = memory.resultBox(call.loops, call.output);
  result.outBox[1] = channels.out;
  result.inBox = result.outBox;
  result.inBox[1] = channels.in;
  result.weightsBox = convolutionWeightsBox(memory, call, channels);
  result.nothingToSum = channels.in.empty();
  for (size_t i = 0; i < call.strides.size(); ++i) {
    int dim = 2 + static_cast<int>(i);
    Window window{weights[dim], call.strides[i], call.dilations[i], call.pads[i]};
    Interval out = result.outBox[dim], held = memory.box(call.input)[dim];
    WindowNeed need =
        call.transposed ? transposedNeedOf(window, out, input[dim], held) : needOf(window, out, input[dim], held);
    if (need.used.empty()) {
      result.nothingToSum = true;
    } else if (call.transposed && need.padLo < 0) {
      // The first results get nothing. One more input at the beginning makes room for them, if the rank holds it.
      Interval more = {layout::floorDiv(out.lo + window.pad, window.stride), need.used.hi};
      if (held.contains(more))
        need = {more, out.lo - transposedReach(window, more).lo, need.padHi};
    }
    if (call.transposed)
      result.fullResult |= need.padLo < 0 || need.padHi <= -window.stride;
    else
      result.readsPaddingOnly |= someReadPaddingOnly(window, out, need.used);
    result.inBox[dim] = need.used;
    result.padLo.push_back(need.padLo);
    result.padHi.push_back(need.padHi);
  }
  if (result.nothingToSum) {
    result.fullResult = result.readsPaddingOnly = false;
    return result;
  }
  if (absl::Status status = checkHeld(memory, call.input, result.inBox); !status.ok())
    return status;
  if (absl::Status status = checkHeld(memory, call.weights, result.weightsBox); !status.ok())
    return status;
  return result;
}
