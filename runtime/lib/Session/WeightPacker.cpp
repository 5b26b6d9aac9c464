//===- WeightPacker.cpp - Weights that ranks of a process pack ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightPacker.h"

#include "RaceDetection.h"

#include <chrono>
#include <string>
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;

absl::StatusOr<std::shared_ptr<std::byte>> WeightPacker::allocate() {
  std::vector<PackedWeights::Request> requests;
  std::vector<size_t> sharing;
  int64_t own = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].executor)
      continue;
    if (std::string key = steps[i].executor->packedKey(); key.empty()) {
      own += steps[i].executor->packedUse();
    } else {
      requests.push_back({std::move(key), steps[i].executor->packedUse()});
      sharing.push_back(i);
    }
  }
  std::string packer = memory.plan.isForDevice() ? std::string() : hostPacker();
  auto entries =
      program.getPackedWeights().acquire(requests, packer, [&](int64_t bytes) { return backend.allocate(bytes); });
  if (!entries.ok())
    return entries.status();
  absl::StatusOr<std::shared_ptr<std::byte>> packed = backend.allocate(own);
  if (!packed.ok())
    return packed.status();
  std::byte *next = packed->get();
  for (size_t i = 0; i < sharing.size(); ++i) {
    shared[sharing[i]] = (*entries)[i];
    steps[sharing[i]].executor->setPackedMemory((*entries)[i]->data());
  }
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].executor && !shared[i]) {
      steps[i].executor->setPackedMemory(next);
      next += steps[i].executor->packedUse();
    }
  return packed;
}

bool WeightPacker::packs(size_t step, bool again) {
  if (!shared[step])
    return !again;
  if (!claimed[step])
    claimed[step] = shared[step]->claim();
  return claimed[step];
}

absl::Status WeightPacker::pack(const PackingPlan::Pause &pause,
                                absl::FunctionRef<absl::Status(const StepInfo &)> check,
                                absl::FunctionRef<void(uint32_t buffer)> release, bool again) {
  for (uint32_t buffer : pause.released)
    release(buffer);
  for (const auto &[index, released] : pause.packs) {
    StepExecutor *executor = steps[index].executor.get();
    if (!executor || !packs(index, again))
      continue;
    absl::Status status = check(*steps[index].info);
    if (status.ok())
      status = executor->pack();
    if (!status.ok())
      return ofStep(memory.rank, *steps[index].info, status);
    if (released)
      release(*released);
    if (!shared[index])
      continue;
    noteWrite(shared[index]->data(), executor->packedUse());
    shared[index]->finish(/*success=*/true);
    claimed[index] = false;
  }
  return absl::OkStatus();
}

void WeightPacker::giveUp() {
  for (size_t i = 0; i < claimed.size(); ++i)
    if (claimed[i])
      shared[i]->finish(/*success=*/false);
  claimed.assign(steps.size(), false);
}

absl::StatusOr<bool> WeightPacker::waitForOthers() {
  for (const std::shared_ptr<PackedWeights::Entry> &entry : shared) {
    PackedWeights::Entry::State state;
    while (entry && (state = entry->waitFor(std::chrono::milliseconds(20))) != PackedWeights::Entry::State::Packed) {
      if (absl::Status status = communicator.state(); !status.ok())
        return status;
      if (state == PackedWeights::Entry::State::Empty)
        return false;
    }
  }
  return true;
}
