//===- StepSequence.cpp - The order of a run's steps ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepSequence.h"

using namespace dovetail;
using namespace dovetail::runtime;

static const uint32_t *conditionOf(const StepInfo &step) {
  if (const auto *repeat = std::get_if<RepeatCall>(&step.action))
    return &repeat->condition;
  if (const auto *choose = std::get_if<ChooseCall>(&step.action))
    return &choose->condition;
  return nullptr;
}

absl::Status StepSequence::prepare(const RankMemory &memory, Backend &backend, const std::vector<PreparedStep> &steps,
                                   bool records) {
  this->backend = &backend;
  this->steps = &steps;
  this->records = records;
  segmentOf.resize(steps.size());
  conditions.resize(steps.size());
  for (size_t position = 0; position < steps.size(); ++position) {
    const StepInfo &step = *steps[position].info;
    if (!step.isBoundary()) {
      if (segments.empty() || segments.back().end != position)
        segments.push_back({position, position, 0, nullptr});
      segmentOf[position] = segments.size() - 1;
      segments.back().end = position + 1;
      continue;
    }
    const uint32_t *tensor = conditionOf(step);
    if (!tensor || memory.rank != 0)
      continue;
    Condition &condition = conditions[position];
    condition.value = memory.memory(*tensor).data;
    if (backend.usesHostMemory())
      continue;
    auto download = backend.createDownload(memory.memory(*tensor), memory.box(*tensor));
    if (!download.ok())
      return ofStep(memory.rank, step, download.status());
    condition.download = *std::move(download);
    condition.held = std::make_unique<std::byte>();
    condition.value = condition.held.get();
    condition.boxes = {memory.box(*tensor)};
    condition.view = MemoryView::rowMajor(ElementType::Bool, condition.boxes.front(), condition.held.get());
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> StepSequence::pass(size_t position) {
  const StepInfo &step = *(*steps)[position].info;
  communicator.enterStep(step.title().c_str());
  if (const auto *end = std::get_if<EndCall>(&step.action))
    return std::holds_alternative<RepeatCall>((*steps)[end->begin].info->action) ? end->begin : position + 1;
  // Whoever does not decide waits for its own work meanwhile: the condition may depend on what that sends.
  Condition &condition = conditions[position];
  absl::Status status = condition.download
                            ? condition.download->run(condition.view, condition.boxes, /*onDevice=*/false)
                            : backend->finish();
  if (!status.ok())
    return status;
  absl::StatusOr<bool> holds = communicator.decide(condition.value && *condition.value != std::byte{0});
  if (!holds.ok())
    return holds.status();
  if (const auto *repeat = std::get_if<RepeatCall>(&step.action))
    return *holds ? position + 1 : repeat->end + 1;
  const auto &choose = std::get<ChooseCall>(step.action);
  return *holds == choose.when ? position + 1 : choose.end + 1;
}

absl::Status StepSequence::runSegment(Segment &segment, absl::FunctionRef<absl::Status(size_t)> issue) {
  auto issueAll = [&] {
    for (size_t position = segment.begin; position < segment.end; ++position)
      if (absl::Status status = issue(position); !status.ok())
        return status;
    return absl::OkStatus();
  };
  // The first time warms up what is set up when it is needed.
  if (++segment.runs == 2 && records) {
    absl::StatusOr<std::unique_ptr<Move>> recorded = communicator.record(backend->mover(), issueAll);
    if (!recorded.ok())
      return recorded.status();
    segment.recording = *std::move(recorded);
  }
  if (!segment.recording)
    return issueAll();
  communicator.enterStep("the run");
  return segment.recording->run();
}

absl::Status StepSequence::run(absl::FunctionRef<absl::Status(size_t)> issue) {
  for (size_t position = 0; position < steps->size();) {
    const PreparedStep &step = (*steps)[position];
    if (!step.info->isBoundary()) {
      Segment &segment = segments[segmentOf[position]];
      if (absl::Status status = runSegment(segment, issue); !status.ok())
        return status;
      position = segment.end;
      continue;
    }
    absl::StatusOr<size_t> next = pass(position);
    if (!next.ok())
      return communicator.state().ok() ? ofStep(communicator.rank(), *step.info, next.status()) : communicator.state();
    position = *next;
  }
  return absl::OkStatus();
}
