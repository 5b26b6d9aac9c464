//===- SessionRun.cpp - A run of a program on one rank --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how a session runs its steps.
//
//===----------------------------------------------------------------------===//

#include "ProgramSession.h"

using namespace dovetail;
using namespace dovetail::runtime;

void ProgramSession::noteWrites(const PreparedStep &step) const {
  // Exchanges are our own code.
  if (!step.executor || step.exchange)
    return;
  for (uint32_t tensor : step.info->writes())
    noteWrite(memory.memory(tensor), writtenBox(plan, *step.info, tensor, memory.rank));
  const ArenaItem &scratch = items[step.scratchItem];
  noteWrite(allocations->arena.get() + scratch.offset, scratch.bytes);
}

absl::Status ProgramSession::runStep(PreparedStep &step) {
  communicator.enterStep(step.info->title().c_str());
  if (options.isGivenUp && options.isGivenUp->load(std::memory_order_relaxed))
    return communicator.state();
  if (detectRaces && backend->usesHostMemory())
    noteWrites(step);
  return step.executor ? step.executor->run() : absl::OkStatus();
}

void ProgramSession::readLengths() {
  for (size_t i = 0; i < lengths.size(); ++i)
    if (const CountInfo &count = plan.counts[i]; count.isGiven) {
      std::memcpy(&lengths[i], memory.memory(count.tensor).data, sizeof(int64_t));
      lengths[i] = std::clamp<int64_t>(lengths[i], 0, count.bound);
    }
}

absl::Status ProgramSession::runSteps() {
  readLengths();
  // What does not run takes no time.
  auto begun = std::chrono::steady_clock::now();
  std::fill(stepTimes.begin(), stepTimes.end(), StepTime{begun, begun, 1});
  size_t next = 0;
  GraphNodes recorded;
  return sequence.run([&](size_t position) {
    PreparedStep &step = steps[position];
    // Another segment has a graph of its own.
    if (position != std::exchange(next, position + 1))
      recorded = {};
    if (options.trace)
      stepTimes[position].begin = std::chrono::steady_clock::now();
    absl::Status status = runStep(step);
    if (status.ok() && options.explain)
      noteNodes(position, recorded);
    if (options.trace) {
      // On CPUs a step takes as long as it keeps the rank's thread: what goes on besides, waits show.
      if (status.ok() && step.exchange && !backend->mover().doesAtOnce())
        status = step.exchange->join();
      if (status.ok())
        status = backend->finish();
      stepTimes[position].end = std::chrono::steady_clock::now();
      stepTimes[position].share = step.executor ? step.executor->share() : 1;
    }
    if (status.ok())
      return status;
    return communicator.state().ok() ? annotate(*step.info, status) : communicator.state();
  });
}

absl::Status ProgramSession::run() {
  if (absl::Status status = communicator.state(); !status.ok())
    return status;
  absl::Status status = runSteps();
  issuedAll = std::chrono::steady_clock::now();
  if (status.ok())
    status = backend->finish();
  // Work that waits for a rank which is lost may just have been given up.
  if (status.ok())
    status = communicator.state();
  if (status.ok())
    return status;
  // Of what is replayed nobody knows which step it was.
  return communicator.abort(ofRank(memory.rank, status));
}
