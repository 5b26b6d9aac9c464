//===- ChooseAlgorithms.cpp - Choose how convolutions are computed --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses for each convolution of a program between the library's algorithm and Winograd's.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Calls/Winograd.h"
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
/// After so many runs Winograd's algorithm is to have saved what its weights took; where it never saves much, memory is
/// worth more.
static constexpr double runsToRepay = 32;

/// True if `call` may be done by Winograd's algorithm, and its weights never change.
static bool isCandidate(plan::ConvolutionOp call) {
  plan::BufferOp weights = plan::getBufferOp(call.getWeights());
  return cast<plan::RefType>(call.getOutput().getType()).getTensor().getElementType().isF32() &&
         calls::isWinogradForm(*call.getForm()) && weights && weights.getKind() != plan::BufferKind::Arena;
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
    // Whether the rank that takes longest gains by Winograd's algorithm, with its part of what is paid at the start.
    auto isFaster = [&](const PlanStep &winograd, const PlanStep &library) {
      double most = 0, before = 0;
      for (int rank = 0, count = ranks.numRanks(); rank < count; ++rank) {
        const StepWork &ours = winograd.getWork(rank), &other = library.getWork(rank);
        // The two read the same but for weights.
        double more = std::max(ours.readBytes - other.readBytes, 0.0);
        most = std::max(most, found->getDevice(rank).getSeconds(ours) + more * startSecondsPerByte / runsToRepay);
        before = std::max(before, found->getDevice(rank).getSeconds(other));
      }
      return most < before;
    };
    // What the prologue does runs once.
    for (auto call : llvm::to_vector(program.getBlock()->getOps<plan::ConvolutionOp>())) {
      if (!isCandidate(call))
        continue;
      // What else there is: the library's way or, where that is slow, another.
      plan::ConvolutionAlgorithm other = call.getAlgorithm();
      if (!given.empty()) {
        plan::ConvolutionAlgorithm chosen = given[std::min(number++, given.size() - 1)];
        call.setAlgorithm(chosen == plan::ConvolutionAlgorithm::Library ? other : chosen);
        continue;
      }
      FailureOr<PlanStep> library = getWork(call, other);
      FailureOr<PlanStep> winograd = getWork(call, plan::ConvolutionAlgorithm::Winograd);
      if (failed(library) || failed(winograd))
        return signalPassFailure();
      if (!isFaster(*winograd, *library))
        call.setAlgorithm(other);
    }
  }
}
