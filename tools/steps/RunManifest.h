//===- RunManifest.h - How far a run of many steps has come -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the file that says how many steps of a run are complete, and what the next one needs of them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_RUNMANIFEST_H
#define DOVETAIL_TOOLS_STEPS_RUNMANIFEST_H

#include "dovetail/tools/InputSequence.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace dovetail::tools {

/// A number that other texts hardly have, on any machine.
uint64_t hashTexts(const std::vector<std::string> &texts);

/// What a run of many steps reads and writes. That of rank 0 writes the file, after each step; all others have no use
/// for it.
class RunManifest {
public:
  /// A file that an input is fed from in the step after the one that wrote it.
  struct State {
    size_t input;
    std::string path;
    bool isOwn; ///< It is there for this alone, and goes when that of the next step is there.
  };

  /// `specs` are those of inputs and `outputs` those of outputs, as the command line has them.
  RunManifest(std::string path, std::string artifact, const runtime::Program &program,
              const std::vector<std::string> &specs, const std::vector<std::string> &outputs,
              const std::vector<InputSequence> &inputs);
  ~RunManifest();

  /// What an earlier run left.
  struct Left {
    int64_t done = 0;
    std::string suffix;               ///< Of names of files that were not complete.
    std::vector<std::string> outputs; ///< What these names are otherwise, with the places of Destination.h.
  };
  /// Nothing if there was none. Errors: OUT_OF_RANGE for a file that is something else.
  absl::StatusOr<std::optional<Left>> read();
  /// That what was read is of a run like this one, whose inputs and `state` after `done` steps are still there.
  /// Errors: INVALID_ARGUMENT, which name what differs.
  absl::Status checkFits(const std::vector<State> &state, int64_t done);

  /// Says that so many steps are complete, on disk. Errors: those of files.
  absl::Status write(int64_t done, const std::string &suffix, const std::vector<State> &state);

  const std::string &getPath() const { return path; }
  /// Removes what a run that ended at any time has left under names that are not its files'.
  void removeTemporaries() const;

private:
  absl::Status misfit(const std::string &what) const;
  /// What is known of the files of an input in the first `done` steps.
  std::string digest(size_t input, int64_t done);

  std::string path, artifact;
  const runtime::Plan &plan;
  const std::vector<InputSequence> &inputs;
  std::unique_ptr<nlohmann::json> content; ///< But for what changes from step to step.
  std::unique_ptr<nlohmann::json> left;    ///< What was read.
  /// Of each input, of so many steps.
  struct Digest {
    uint64_t value = 0;
    int64_t steps = 0;
  };
  std::vector<Digest> digests;
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_RUNMANIFEST_H
