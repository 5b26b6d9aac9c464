//===- ProcessPorts.h - Inputs and outputs of one of several processes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where a process whose ranks are part of a run takes its parts of inputs from, and leaves its parts of
// outputs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_PROCESSPORTS_H
#define DOVETAIL_TOOLS_PROCESSPORTS_H

#include "dovetail/tools/OutputFiles.h"
#include "dovetail/tools/Summary.h"

#include "dovetail/tools/InputSource.h"

#include <memory>
#include <mutex>

namespace dovetail::tools {

class ProcessPorts : public runtime::PortParts {
public:
  /// Without `files`, outputs are summarised.
  ProcessPorts(runtime::ProgramRunner &runner, std::vector<std::unique_ptr<InputSource>> sources, OutputFiles *files)
      : runner(runner), plan(runner.getProgram().getPlan()), sources(std::move(sources)), files(files),
        summaries(plan.outputs.size()) {}

  absl::StatusOr<std::vector<int64_t>> shape(size_t input) override { return sources[input]->shape(); }
  absl::Status begin(absl::Span<const std::vector<int64_t>> shapes) override;
  absl::Status read(size_t input, const layout::Box &box, std::byte *elements) override;
  absl::Status write(size_t output, const layout::Box &box, const std::byte *elements) override;
  int64_t pieceBytes(size_t output) const override;

  /// Whether runs are for nothing: inputs are as `makeWrong` makes them, part by part, and outputs go nowhere.
  void setIdle(bool value) { isIdle = value; }
  /// The summaries of whole outputs, on rank 0's process. All processes call it.
  absl::StatusOr<std::vector<Summary>> summarize() const;

private:
  runtime::ProgramRunner &runner;
  const runtime::Plan &plan;
  std::vector<std::unique_ptr<InputSource>> sources;
  OutputFiles *files;
  bool isIdle = false;
  std::mutex mutex;
  std::vector<Summary> summaries; ///< Of what this process has. With `mutex`, in runs.
};

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_PROCESSPORTS_H
