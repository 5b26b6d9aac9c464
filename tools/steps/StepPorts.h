//===- StepPorts.h - Inputs and outputs of many steps -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a process takes inputs from files and writes outputs to others in step after step, and does so for the
// next step and the last one while one runs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_STEPPORTS_H
#define DOVETAIL_TOOLS_STEPS_STEPPORTS_H

#include "dovetail/tools/InputSequence.h"
#include "dovetail/tools/OutputFiles.h"
#include "dovetail/tools/Summary.h"

#include "dovetail/runtime/ProgramRunner.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace dovetail::tools {

/// Reads the parts of inputs that the ranks of this process need in the next step, as soon as they have taken those of
/// the one before. It holds those of one step, as far as they are small; of others it sees to it that the machine has
/// them in its cache of files, from where ranks read them.
class StepReader {
public:
  /// Inputs that are the same in all steps are none of its business. `ranks` are those of this process.
  StepReader(const runtime::Plan &plan, const std::vector<InputSequence> &inputs, const std::vector<int> &ranks,
             int64_t first, int64_t end);
  ~StepReader();

  /// The extents of an input in the step at hand.
  absl::StatusOr<std::vector<int64_t>> shape(size_t input);
  /// A part of what an input is in the step at hand. By several threads at once.
  absl::Status read(size_t input, const layout::Box &box, std::byte *elements);
  /// A step is over, which may have had nothing to read.
  void end(int64_t step);

private:
  struct Part {
    size_t input;
    layout::Box box;
    bool isHeld;
    layout::Box now = {}; ///< What there is of it in the step at hand.
    std::vector<std::byte> elements = {};
  };

  void work(int64_t first, int64_t end);
  absl::Status readStep(int64_t step);
  /// Reads what is not held for nothing, until somebody reads it in earnest.
  void warmUp();

  const runtime::Plan &plan;
  const std::vector<InputSequence> &inputs;
  std::vector<size_t> changing; ///< The inputs that differ from step to step, as far as this process needs them.
  std::vector<Part> parts;
  std::vector<size_t> takers; ///< For each rank's box, the part that it is.
  int64_t wanted = 0;         ///< Elements that all ranks take of the step at hand, which is that:
  int64_t at = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool isThere = false, isOver = false; ///< Of a step: all of it has been read. Nobody wants more.
  bool isRead = false;                  ///< Ranks have begun to take that.
  int64_t taken = 0;
  std::vector<std::shared_ptr<InputSource>> sources; ///< Of that step; without `mutex` where nobody else reads.
  absl::Status status;
  std::thread thread;
};

/// Writes the parts of outputs that ranks of this process have. Those of a step wait until the last one's are on disk,
/// and for each other if there are too many. Writing is to copy to the machine's cache of files; that these are on
/// disk, one waits for while the next step runs.
class StepWriter {
public:
  StepWriter() : thread([this] { work(); }) {}
  ~StepWriter();

  /// Where parts go from now on, those of `step`, counted from 0. The files live until `wait` has returned.
  void begin(int64_t step, OutputFiles &target);
  /// The step that is written now has a file for `output`.
  bool has(size_t output);
  /// How much there is of each output in this step.
  absl::Status resize(runtime::ProgramRunner &runner, absl::Span<const std::vector<int64_t>> shapes);
  /// By several threads at once. Errors: those of files, of this part or one before, with the step.
  absl::Status write(size_t output, const layout::Box &box, const std::byte *elements, int64_t bytes);
  /// There are no more parts of this step.
  void end();
  /// Returns when those of all steps that ended are on disk. Errors: as above.
  absl::Status wait();

private:
  /// A part of an output, or without elements the end of a step.
  struct Part {
    int64_t step;
    OutputFiles *files;
    size_t output;
    layout::Box box;
    std::vector<std::byte> elements;
  };

  void work();
  static absl::Status carryOut(const Part &part);

  int64_t step = 0;
  OutputFiles *files = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Part> queue;
  int64_t waiting = 0;                   ///< Bytes of parts that are not written yet.
  bool isEnding = false, isOver = false; ///< A step has ended, and is not on disk yet. Nobody writes any more.
  absl::Status status;
  std::thread thread;
};

/// Both, for a runner.
class StepPorts : public runtime::PortParts {
public:
  /// Without `writer`, outputs are summarised.
  StepPorts(runtime::ProgramRunner &runner, const std::vector<InputSequence> &inputs, StepWriter *writer)
      : runner(runner), plan(runner.getProgram().getPlan()), inputs(inputs), initial(inputs.size()), writer(writer),
        summaries(plan.outputs.size()) {}

  absl::StatusOr<std::vector<int64_t>> shape(size_t input) override;
  absl::Status begin(absl::Span<const std::vector<int64_t>> shapes) override;
  absl::Status read(size_t input, const layout::Box &box, std::byte *elements) override;
  absl::Status write(size_t output, const layout::Box &box, const std::byte *elements) override;
  int64_t pieceBytes(size_t output) const override;

  /// What an input is in the first run, in place of what it was given.
  void setInitial(size_t input, std::shared_ptr<InputSource> source) { initial[input] = std::move(source); }
  /// Who reads what differs from step to step, unless runs are for nothing.
  void setReader(StepReader &value) { reader = &value; }
  /// Whether runs are for nothing: inputs are as `makeWrong` makes those of the first step, and outputs go nowhere.
  void setIdle(bool value) { isIdle = value; }
  /// The summaries of the last run's outputs, on rank 0's process. All processes call it.
  absl::StatusOr<std::vector<Summary>> takeSummaries();

private:
  /// Whether an input is read when it is needed: it is the same in all steps, or for the first run alone.
  bool isRead(size_t input) const { return isIdle || initial[input] || !inputs[input].length(); }
  /// What such an input is.
  absl::StatusOr<std::shared_ptr<InputSource>> open(size_t input) const;

  runtime::ProgramRunner &runner;
  const runtime::Plan &plan;
  const std::vector<InputSequence> &inputs;
  std::vector<std::shared_ptr<InputSource>> initial;
  StepReader *reader = nullptr;
  StepWriter *writer;
  bool isIdle = false;
  std::mutex mutex;
  std::vector<Summary> summaries; ///< Of what this process has. With `mutex`, in runs.
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_STEPPORTS_H
