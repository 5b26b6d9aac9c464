//===- StepFiles.h - Files that a run in steps writes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where a run in steps writes what, what it finds there of earlier runs, and that no other run writes there.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_STEPFILES_H
#define DOVETAIL_TOOLS_STEPS_STEPFILES_H

#include "RunLock.h"
#include "RunManifest.h"
#include "dovetail/tools/Destination.h"
#include "dovetail/tools/InputSequence.h"
#include "dovetail/tools/OutputFiles.h"

#include <memory>
#include <string>
#include <vector>

namespace dovetail::tools {

class StepFiles {
public:
  /// `named`: the input whose files `namePlace` stands for, or their number if there is none.
  StepFiles(const runtime::Plan &plan, const std::vector<InputSequence> &sequences,
            const std::vector<Destination> &destinations, size_t named, int64_t total)
      : plan(plan), sequences(sequences), destinations(destinations), named(named), total(total) {}

  /// Says where everything goes. With `keepsState`, what steps are fed survives the run, in files of its own if need
  /// be. Errors: INVALID_ARGUMENT for names that steps have in common, or that are those of what is read.
  absl::Status place(const std::string &artifact, bool keepsState);

  /// In a step, counted from 0.
  std::vector<OutputFiles::File> of(int64_t step) const;
  /// What the step after this one is fed.
  std::vector<RunManifest::State> stateAfter(int64_t step) const;
  /// What names of files begin with that belong to the run, and are not its outputs.
  const std::string &getBase() const { return base; }

  /// Keeps other runs away until this is destroyed, and removes what one that was killed has left. Where the file
  /// system has no locks, a remark says so. Errors: ALREADY_EXISTS if another run writes to the same files.
  absl::Status lock(const std::string &suffix);
  /// Removes what the run of `left` has left that was not complete, and files for the state but those after `done`
  /// steps.
  void clean(const RunManifest::Left &left, int64_t done) const;

private:
  /// A file for each step.
  struct Pattern {
    std::string path;
    size_t output;
  };

  std::string nameOf(int64_t step) const;
  absl::Status checkPaths(const std::string &artifact) const;

  const runtime::Plan &plan;
  const std::vector<InputSequence> &sequences;
  const std::vector<Destination> &destinations;
  size_t named;
  int64_t total;
  std::vector<Pattern> patterns; ///< Of outputs, then those of the state alone.
  std::string base;
  std::vector<std::unique_ptr<RunLock>> locks;
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_STEPFILES_H
