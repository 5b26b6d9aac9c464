//===- LibrarySteps.cpp - Steps done by oneDNN -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"

#include "../../Memory/Alignment.h"
#include "../../Session/Backend.h"

using namespace dovetail::runtime;

absl::Status LibraryStep::prepare(const CallMemory &memory, int rank, int threads) {
  if (absl::Status status = plan(); !status.ok())
    return status;
  packed = alignedSize(memory.packedBytes(rank));
  int64_t allowed = alignedSize(memory.scratchBytes(rank, threads));
  scratch = stagingBytes() + allowed;
  CallBudget budget(packed, allowed);
  return budget.explain(create(budget));
}

static std::unique_ptr<LibraryStep> makeStep(const RankMemory &context, const StepInfo &step, bool inPrologue,
                                             ThreadPool *threads) {
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return makeConvolution(context, *call, inPrologue, threads);
  if (const auto *call = std::get_if<MatMulCall>(&step.action))
    return makeMatMul(context, *call, inPrologue);
  return makePool(context, std::get<PoolCall>(step.action));
}

StepExecutorOr dovetail::runtime::createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue,
                                                    ThreadPool &threads) {
  if (const auto *call = std::get_if<ReorderCall>(&step.action))
    return createReorder(context, *call);
  std::unique_ptr<LibraryStep> executor = makeStep(context, step, inPrologue, &threads);
  if (!executor)
    return nullptr;
  if (absl::Status status = executor->prepare(*step.memory, context.rank, threads.size()); !status.ok())
    return status;
  return executor;
}

absl::StatusOr<CallBytes> dovetail::runtime::hostCallBytes(const RankMemory &context, const StepInfo &step,
                                                           bool inPrologue, int threads) {
  if (!step.memory)
    return CallBytes();
  std::unique_ptr<LibraryStep> executor = makeStep(context, step, inPrologue, nullptr);
  if (!executor)
    return CallBytes();
  if (absl::Status status = executor->plan(); !status.ok())
    return status;
  return CallBytes{executor->stagingBytes() + alignedSize(step.memory->scratchBytes(context.rank, threads)),
                   inPrologue ? 0 : alignedSize(step.memory->packedBytes(context.rank))};
}
