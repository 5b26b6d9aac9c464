//===- ProgramSession.h - A program on one rank -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ProgramSession, the only kind of session. How it is prepared and how it runs are in files of their own.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_SESSION_PROGRAMSESSION_H
#define DOVETAIL_RUNTIME_LIB_SESSION_PROGRAMSESSION_H

#include "dovetail/runtime/Session.h"

#include "../Memory/Alignment.h"
#include "../Program/StepParts.h"
#include "Backend.h"
#include "Feedback.h"
#include "MemoryPlan.h"
#include "RaceDetection.h"
#include "StepSequence.h"
#include "WaitCheck.h"
#include "WeightPacker.h"

#include "absl/strings/match.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace dovetail::runtime {

class ProgramSession : public Session {
public:
  ProgramSession(std::shared_ptr<const Program> program, Communicator &communicator, SessionOptions options)
      : program(std::move(program)), plan(this->program->getPlan()), communicator(communicator), options(options),
        memory{plan, communicator.rank()}, arguments(plan.getArguments()), results(plan.getResults()),
        sequence(communicator) {}
  ~ProgramSession() override {
    if (packer)
      packer->giveUp();
    // After an error, work may still be under way that uses what is about to be destroyed.
    if (backend)
      (void)backend->finish();
  }

  absl::Status prepare();
  /// Others may be reading what the prologue made.
  void keepStartMemory() { communicator.keep(std::move(startMemory)); }

  absl::Status run() override;
  absl::Status takeReport() override;
  absl::Status writeInput(size_t index, const MemoryView &view, absl::Span<const layout::Box> boxes,
                          bool onDevice) override {
    return ofPort("input", arguments[index], uploads[index]->run(view, boxes, onDevice));
  }
  absl::Status readOutput(size_t index, const MemoryView &view, absl::Span<const layout::Box> boxes,
                          bool onDevice) override {
    return ofPort("output", results[index], downloads[index]->run(view, boxes, onDevice));
  }
  bool canExchangeOutputs() const override { return backend->usesHostMemory(); }
  absl::Status exchangeOutput(size_t index, std::vector<layout::Transfer> sends, std::vector<layout::Transfer> receives,
                              std::vector<layout::Box> local, const MemoryView &target) override {
    ChannelMove move;
    move.source = memory.memory(results[index].tensor);
    move.target = target;
    move.sends = std::move(sends);
    move.receives = std::move(receives);
    move.local = std::move(local);
    move.format = layout::MemoryFormat::rowMajor(target.box.rank());
    return ofPort("output", results[index],
                  exchangeOnce(communicator, backend->mover(), results[index].name, std::move(move)));
  }
  absl::Status feedBack() override {
    absl::Status status = feedback.run();
    return status.ok() ? status : ofRank(memory.rank, status);
  }
  int dlpackDevice() const override { return backend->dlpackDevice(); }
  layout::Box inputBox(size_t index) const override { return memory.box(arguments[index].tensor); }
  layout::Box outputBox(size_t index) const override { return memory.box(results[index].tensor); }
  const SessionStatistics &statistics() const override { return stats; }
  const std::vector<CallReport> &calls() const override { return callReports; }
  std::chrono::steady_clock::time_point issued() const override { return issuedAll; }
  const std::vector<StepTime> &times() const override { return stepTimes; }

private:
  absl::Status prepareConstants();
  /// Makes sure that what `step` reads of constants is what was compiled, before it does: of all of them, or of those
  /// that steps of a run do not only pack.
  absl::Status checkConstants(const StepInfo &step, bool inRuns = false) const;
  absl::Status checkConstant(uint32_t tensor, const layout::Box &box) const;
  absl::Status prepareSteps(const std::vector<StepInfo> &infos, bool inPrologue, std::vector<PreparedStep> &result);
  absl::Status allocate();
  absl::StatusOr<std::byte *> allocate(int64_t bytes, std::shared_ptr<std::byte> &owner);
  absl::Status bind();
  absl::Status runPrologue();
  /// Runs the prologue and packs, but for what others do; `again`: only what they did not.
  absl::Status prepareOnce(bool again);
  /// Finds out where loops end in the run that begins.
  void readLengths();
  absl::Status runSteps();
  /// Notes what the step at `position` has added to what was recorded `before` it, which is brought up to date.
  void noteNodes(size_t position, GraphNodes &before);
  absl::Status runStep(PreparedStep &step);
  void noteWrites(const PreparedStep &step) const;
  absl::Status annotate(const StepInfo &step, const absl::Status &status) const {
    return ofStep(memory.rank, step, status);
  }
  absl::Status ofPort(const char *kind, const PortInfo &port, const absl::Status &status) const {
    if (status.ok() || absl::StartsWith(status.message(), "rank "))
      return status;
    return absl::Status(status.code(),
                        absl::StrCat("rank ", memory.rank, ", ", kind, " '", port.name, "': ", status.message()));
  }

  std::shared_ptr<const Program> program;
  const Plan &plan;
  Communicator &communicator;
  SessionOptions options;
  RankMemory memory;
  std::vector<PortInfo> arguments; ///< Inputs and lengths.
  std::vector<PortInfo> results;   ///< Outputs and counts that are computed.
  std::unique_ptr<Backend> backend;
  std::vector<PreparedStep> prologue, steps;
  StepSequence sequence;
  std::vector<ArenaItem> items; ///< One for each buffer, then those of scratch memory.
  PackingPlan packing;
  std::optional<WeightPacker> packer; ///< Since memory is allocated.
  /// Other ranks read it: kept by the communicator, too.
  struct Memory {
    std::shared_ptr<std::byte> arena, persistent, constants, packed;
  };
  std::shared_ptr<Memory> allocations = std::make_shared<Memory>();
  std::shared_ptr<std::byte> startMemory; ///< What the prologue makes and steps pack; gone when that is done.
  std::vector<std::unique_ptr<PortTransfer>> uploads, downloads;
  Feedback feedback;
  std::shared_ptr<std::byte> records; ///< The memory of `RankMemory::records`.
  std::vector<int64_t> lengths;       ///< That of `RankMemory::lengths`.
  SessionStatistics stats;
  std::vector<CallReport> callReports;
  std::vector<StepTime> stepTimes;
  std::chrono::steady_clock::time_point issuedAll;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_SESSION_PROGRAMSESSION_H
