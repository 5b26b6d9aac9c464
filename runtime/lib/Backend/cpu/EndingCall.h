//===- EndingCall.h - Calls that end where runs need no more ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a library call is prepared for besides all of its loops, and the step that does as much as a run needs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_ENDINGCALL_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_ENDINGCALL_H

#include "LibrarySteps.h"

#include <functional>

namespace dovetail::runtime {

/// The parts of a call whose loops have an `end`. Of these loops the outermost one in memory is cut at multiples of its
/// step, into pieces. Each piece exists several times: once for each number of steps of the other loops.
///
/// ```
///   piece 0|  1  |  2  |  3  | all |     A run that needs the rows of pieces 0 and 1, and columns up to the end of
///   piece 1|  1  |  2  |  3  | all |     step 2, does pieces 0 and 1 of width 2.
///   piece 2|  1  |  2  |  3  | all |
/// ```
///
/// A run that needs all of it does the call as a whole.
class CallPieces {
public:
  using MakePart = std::function<std::unique_ptr<LibraryStep>(const layout::Box &loops)>;

  /// The pieces of `loops`, those of the rank. `infos` describes these. The first `rank` of them are dimensions of the
  /// result, which lie in memory in this `order`. There are no pieces if no loop ends, or if they cannot be planned.
  static CallPieces plan(const RankMemory &memory, const std::vector<LoopInfo> &infos, const layout::Box &loops,
                         int rank, const std::vector<int> &order, const MakePart &makePart);

  bool empty() const { return widths.empty(); }
  /// How many there are, at most, that are done in one run.
  int count() const { return static_cast<int>(loops.front().ends.size()); }
  /// Scratch memory for copies around the pieces that `lanes` threads do at the same time.
  int64_t stagingBytes(int lanes) const;
  /// Chooses implementations, each with `scratchShare` bytes of scratch memory, that use what `first`, the whole or its
  /// first part, packs, if that is `packsWeights`. Leaves out all that is not as good as the whole.
  void create(LibraryStep &first, bool packsWeights, int64_t scratchShare);

  /// A run does these pieces, or without any the call as a whole.
  struct Choice {
    std::span<const std::unique_ptr<LibraryStep>> pieces;
    double share = 1; ///< Of the iterations. 0: there is nothing to do.
  };
  /// The choice for this run. No pieces: they are not prepared, or all of the call is needed. Allocates nothing.
  Choice choose() const;

  int64_t laneBytes(int lane, int lanes) const;
  absl::Status bind(std::byte *scratch, int lanes);

private:
  /// A loop that ends, and where the parts of what the rank has of it end.
  struct Loop {
    int number;
    const LoopInfo *info;
    layout::Interval range;
    std::vector<int64_t> ends;
  };
  /// How many parts of `loop` this run needs.
  size_t countParts(const Loop &loop, bool &isWhole) const;

  const RankMemory *memory = nullptr;
  std::vector<Loop> loops; ///< The one that is cut into pieces is the first.
  /// The pieces, for each combination of parts of the other loops, of which the last ones change fastest.
  std::vector<std::vector<std::unique_ptr<LibraryStep>>> widths;
};

/// `whole`, or as many of `pieces` as a run needs, which `lanes` threads of `pool` do.
std::unique_ptr<StepExecutor> makeEndingCall(std::unique_ptr<StepExecutor> whole, CallPieces pieces, int lanes,
                                             ThreadPool &pool);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_ENDINGCALL_H
