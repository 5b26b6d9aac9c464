//===- ConvolutionGeometry.cpp - What a part of a convolution reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionGeometry.h"

#include "dovetail/Layout/Arith.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

/// Whether some iterations over dimension `dim` read nothing in `used`; with a dilated window perhaps on both sides of
/// it.
static bool someReadPaddingOnly(const layout::AccessDim &access, Box loops, int dim, Interval used) {
  for (Interval all = loops[dim]; !all.empty(); ++all.lo) {
    loops[dim] = {all.lo, all.lo + 1};
    if (!used.contains(access.need(loops)) && layout::needInside(access, loops, used, {}).inside.empty())
      return true;
  }
  return false;
}

absl::StatusOr<ConvolutionGeometry> ConvolutionGeometry::plan(const RankMemory &memory, const ConvolutionCall &call,
                                                              const ConvolutionChannels &channels) {
  const std::vector<int64_t> &input = memory.plan.bufferOf(call.input).shape;
  const Box &loops = channels.loops;
  int rank = static_cast<int>(input.size());
  ConvolutionGeometry result;
  result.outBox = std::vector<Interval>(loops.begin(), loops.begin() + rank);
  result.inBox = layout::needOf(call.inputAccess, loops);
  result.weightsBox = layout::needOf(call.weightsAccess, loops);
  result.fullBox = result.outBox;
  result.nothingToSum = loops[rank].empty();
  for (int dim = 2; dim < rank; ++dim) {
    const layout::Window &window = call.form.windows[dim - 2];
    const layout::AccessDim &access = call.inputAccess[dim];
    Interval out = result.outBox[dim], held = memory.box(call.input)[dim];
    layout::DimNeed need = layout::needInside(access, loops, {0, input[dim]}, held);
    Interval used = need.inside;
    result.padLo.push_back(need.before);
    result.padHi.push_back(need.behind);
    if (used.empty()) {
      result.nothingToSum = true;
    } else if (!window.isTransposed) {
      result.readsPaddingOnly |= someReadPaddingOnly(access, loops, dim, used);
    } else {
      Interval full = window.resultOf(used);
      if (out.lo < full.lo) {
        // The first results get nothing. One more input at the beginning makes room for them, if the rank holds it.
        Interval more = {layout::floorDiv(out.lo + window.pad, window.stride), used.hi};
        if (held.contains(more)) {
          used = more;
          full = window.resultOf(used);
        }
      }
      result.padLo.back() = out.lo - full.lo;
      result.padHi.back() = full.hi - out.hi;
      result.fullResult |= out.lo < full.lo || full.hi - out.hi <= -window.stride;
      result.fullBox[dim] = full;
    }
    result.inBox[dim] = used;
  }
  if (result.nothingToSum) {
    result.fullResult = result.readsPaddingOnly = false;
    return result;
  }
  // Libraries may be given the input with its padding written out, and the full result.
  result.paddedBox = result.inBox;
  for (int dim = 2; dim < rank && !call.form.isTransposed; ++dim)
    result.paddedBox[dim] = {result.inBox[dim].lo - result.padLo[dim - 2],
                             result.inBox[dim].hi + result.padHi[dim - 2]};
  for (const Box &box : {result.paddedBox, result.fullBox})
    if (box.volume() > layout::maxPaddedVolume)
      return absl::DataLossError(absl::StrCat("damaged plan: a convolution of ", memory.name(call.input),
                                              " takes a box of ", box.str(), " elements"));
  if (absl::Status status = memory.checkHeld(call.input, result.inBox); !status.ok())
    return status;
  if (absl::Status status = memory.checkHeld(call.weights, result.weightsBox); !status.ok())
    return status;
  return result;
}
