//===- RunCounts.h - How much there is in a run -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the counts of a run, those that it is given and those that it computes, as all processes know them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RUNNER_RUNCOUNTS_H
#define DOVETAIL_RUNTIME_RUNNER_RUNCOUNTS_H

#include "OutputPieces.h"

#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/runtime/RankGroup.h"

namespace dovetail::runtime {

class RunCounts {
public:
  /// Before the first run they are the bounds.
  explicit RunCounts(const Plan &plan);

  /// The same before another run.
  void reset();
  bool empty() const { return values.empty(); }
  /// Whether there are counts that runs compute.
  bool areComputed() const;
  /// Of the count with this number in the plan.
  int64_t &operator[](size_t count) { return values[count]; }

  /// Sets the lengths to what inputs of these extents, which were checked, have.
  void setLengths(absl::Span<const std::vector<int64_t>> shapes);
  /// The same of what `parts` say, with `isFed` but for inputs that are fed back, the lengths of which are set. All
  /// processes of `group` call it. Errors: INVALID_ARGUMENT where extents of one of them are wrong, or not those of
  /// rank 0.
  absl::Status setLengths(PortParts &parts, bool isFed, RankGroup &group);
  /// Whether there are lengths that a run which goes on after another one takes from it.
  bool areFed() const { return !sources.empty(); }
  /// The counts are those of a run that succeeded, after which another one may go on.
  void keep() { last = values; }
  /// Errors: INVALID_ARGUMENT where an input has no room for the output, or inputs of one length would differ in it.
  absl::Status checkFed() const;
  /// Sets the lengths of inputs that are fed back to the counts of that run.
  void feed();
  /// Sets the counts that the last run has computed: rank 0 has them, results behind the outputs of which `pieces` are,
  /// and tells other processes. On the thread of `rank`; all ranks call it.
  absl::Status learn(int rank, Session &session, absl::Span<const OutputPieces> pieces, RankGroup &group);
  /// Errors: INTERNAL, naming a count that is beyond its bound.
  absl::Status check() const;

  /// What there is of an input or output.
  PortInfo portOfRun(const PortInfo &port) const;
  /// The extents of all outputs.
  std::vector<std::vector<int64_t>> outputShapes() const;

private:
  /// Where a length comes from in a run that goes on after another one.
  struct Source {
    size_t input, dim;
    int32_t length, count; ///< Without a count it is a constant extent.
  };
  static std::vector<Source> findSources(const Plan &plan);
  /// The extent of that run's output there.
  int64_t extentOf(const Source &source) const;

  const Plan &plan;
  const std::vector<Source> sources;
  std::vector<int64_t> values; ///< One for each count of the plan.
  std::vector<int64_t> last;   ///< The same of the last run that succeeded.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_RUNCOUNTS_H
