//===- ChooseAlgorithms.cpp - Choose how convolutions are computed --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses for each convolution of a program between the library's algorithm and those of the runtime's own.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Calls/ConvolutionAlgorithms.h"
#include "dovetail/Cost/PlanSteps.h"
#include "dovetail/Schedule/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSEALGORITHMS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct ChooseAlgorithms : dovetail::impl::ChooseAlgorithmsBase<ChooseAlgorithms> {
  using ChooseAlgorithmsBase::ChooseAlgorithmsBase;
  ChooseAlgorithms(ChooseAlgorithmsOptions options, std::shared_ptr<const Cluster> found)
      : ChooseAlgorithmsBase(std::move(options)), found(std::move(found)) {}

  void runOnOperation() override;

  LogicalResult initialize(MLIRContext *context) override;

  std::shared_ptr<const Cluster> found;
  SmallVector<plan::ConvolutionAlgorithm> given;
};
} // namespace

std::unique_ptr<Pass> dovetail::createChooseAlgorithms(ChooseAlgorithmsOptions options,
                                                       std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<ChooseAlgorithms>(std::move(options), std::move(cluster));
}

LogicalResult ChooseAlgorithms::initialize(MLIRContext *context) {
  given.clear();
  for (const std::string &name : algorithms) {
    std::optional<plan::ConvolutionAlgorithm> algorithm = plan::symbolizeConvolutionAlgorithm(name);
    if (!algorithm)
      return emitError(UnknownLoc::get(context)) << "there is no algorithm '" << name << "' for convolutions";
    given.push_back(*algorithm);
  }
  return findCluster(found, cluster, context);
}

/// What a byte of weights more takes when a session starts, in seconds: it is computed, and memory that nobody has
/// touched is written. Measured with ResNet-50, whose 247 MB of weights took a thread 0.11 s to pack.
static constexpr double startSecondsPerByte = 0.45e-9;
/// After so many runs an algorithm is to have saved what its weights took; where it never saves much, memory is
/// worth more.
static constexpr double runsToRepay = 32;

/// The algorithms that `call` may be done by, if its weights never change.
static SmallVector<plan::ConvolutionAlgorithm> getChoices(plan::ConvolutionOp call) {
  SmallVector<plan::ConvolutionAlgorithm> choices;
  plan::BufferOp weights = plan::getBufferOp(call.getWeights());
  if (!plan::getTensor(call.getOutput()).getElementType().isF32() || !weights ||
      weights.getKind() == plan::BufferKind::Arena)
    return choices;
  calls::ConvolutionForm form = *call.getForm();
  for (const calls::AlgorithmEntry &algorithm : calls::getAlgorithms())
    if (algorithm.isChoice() && algorithm.applies(form))
      choices.push_back(plan::fromCalls(algorithm.algorithm));
  return choices;
}

void ChooseAlgorithms::runOnOperation() {
  size_t number = 0;
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
    if (!mesh) {
      program.emitOpError("is over ") << program.getMeshAttr() << ", which is not a dovetail.mesh";
      return signalPassFailure();
    }
    layout::Mesh ranks = mesh.getMesh();
    StepCounter counter(program, ranks, *found, ExchangeEngine::Threads);
    auto getWork = [&](plan::ConvolutionOp call, plan::ConvolutionAlgorithm algorithm) {
      call.setAlgorithm(algorithm);
      return counter.get(call);
    };
    // Seconds of the rank that takes longest, with its part of what is paid at the start for more than `least` reads.
    auto getSeconds = [&](const PlanStep &step, const PlanStep &least) {
      double most = 0;
      for (int rank = 0, count = ranks.numRanks(); rank < count; ++rank) {
        const StepWork &work = step.getWork(rank);
        // Both read the same but for weights.
        double more = std::max(work.readBytes - least.getWork(rank).readBytes, 0.0);
        most = std::max(most, found->getDevice(rank).getSeconds(work) + more * startSecondsPerByte / runsToRepay);
      }
      return most;
    };
    // What the prologue does runs once.
    for (auto call : llvm::to_vector(program.getBlock()->getOps<plan::ConvolutionOp>())) {
      SmallVector<plan::ConvolutionAlgorithm> choices = getChoices(call);
      if (choices.empty())
        continue;
      // What else there is: the library's way or, where that is slow, another.
      plan::ConvolutionAlgorithm best = call.getAlgorithm();
      if (!given.empty()) {
        plan::ConvolutionAlgorithm chosen = given[std::min(number++, given.size() - 1)];
        call.setAlgorithm(llvm::is_contained(choices, chosen) ? chosen : best);
        continue;
      }
      FailureOr<PlanStep> other = getWork(call, best);
      if (failed(other))
        return signalPassFailure();
      double least = getSeconds(*other, *other);
      for (plan::ConvolutionAlgorithm algorithm : choices) {
        FailureOr<PlanStep> step = getWork(call, algorithm);
        if (failed(step))
          return signalPassFailure();
        if (double seconds = getSeconds(*step, *other); seconds < least) {
          least = seconds;
          best = algorithm;
        }
      }
      call.setAlgorithm(best);
    }
  }
}
