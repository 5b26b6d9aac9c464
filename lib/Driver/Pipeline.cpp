//===- Pipeline.cpp - The compiler's phases -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says which passes each phase runs.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Pipeline.h"

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h"
#include "dovetail/Driver/Options.h"
#include "dovetail/Library/Library.h"
#include "dovetail/Schedule/Passes.h"
#include "dovetail/Sharding/Passes.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

static constexpr Phase kPhases[] = {Phase::Import,    Phase::Simplify, Phase::Legalize, Phase::Propagate,
                                    Phase::Partition, Phase::Lower,    Phase::CodeGen,  Phase::Emit};

ArrayRef<Phase> dovetail::getPhases() { return kPhases; }

StringRef dovetail::getPhaseName(Phase phase) {
  switch (phase) {
  case Phase::Import:
    return "import";
  case Phase::Simplify:
    return "simplify";
  case Phase::Legalize:
    return "legalize";
  case Phase::Propagate:
    return "propagate";
  case Phase::Partition:
    return "partition";
  case Phase::Lower:
    return "lower";
  case Phase::CodeGen:
    return "codegen";
  case Phase::Emit:
    return "emit";
  }
  llvm_unreachable("covered switch");
}

std::optional<Phase> dovetail::parsePhase(StringRef name) {
  auto phase = llvm::find_if(kPhases, [&](Phase phase) { return getPhaseName(phase) == name; });
  return phase == std::end(kPhases) ? std::nullopt : std::optional(*phase);
}

ExitCode dovetail::getPhaseExitCode(Phase phase) {
  switch (phase) {
  case Phase::Import:
  case Phase::Simplify:
  case Phase::Legalize:
    // What can fail here is that a constant index is out of range.
    return ExitCode::InvalidModel;
  case Phase::Propagate:
    // What can fail here is what the user asked for.
    return ExitCode::Usage;
  case Phase::Lower:
    return ExitCode::Unsupported;
  case Phase::Emit:
    return ExitCode::File;
  case Phase::Partition:
  case Phase::CodeGen:
    return ExitCode::Internal;
  }
  llvm_unreachable("covered switch");
}

bool dovetail::hasAlgorithms(const CompileOptions &options) {
  return options.libraries && options.target->hasAlgorithms(options.codeGen) && options.math == plan::MathMode::F32 &&
         options.mayTransform && options.objective != Objective::Memory;
}

static GraphTarget getGraphTarget(const CompileOptions &options, MLIRContext *context, ArrayRef<std::string> libraries,
                                  ArrayRef<std::string> features) {
  FailureOr<Libraries> callable = Libraries::create(UnknownLoc::get(context), libraries, features);
  return {options.libraries && options.target->hasAttention(), succeeded(callable) && callable->hasIntegerProducts(),
          succeeded(callable) && callable->hasPlainProducts(), succeeded(callable) && callable->hasTransforms(),
          succeeded(callable) && callable->hasNarrowProducts()};
}

/// The cluster for products whose factors are rounded so.
static std::shared_ptr<const Cluster> getCluster(const CompileOptions &options) {
  switch (options.math) {
  case plan::MathMode::F32:
    return hasAlgorithms(options) ? std::make_shared<const Cluster>(options.cluster->withAlgorithms())
                                  : options.cluster;
  case plan::MathMode::F32Strict:
    return options.cluster;
  case plan::MathMode::TF32:
    return std::make_shared<const Cluster>(options.cluster->roundingFactors(19));
  case plan::MathMode::BF16:
    return std::make_shared<const Cluster>(options.cluster->roundingFactors(16));
  }
  llvm_unreachable("covered switch");
}

void dovetail::addPasses(Phase phase, const CompileOptions &options, PassManager &passes) {
  SmallVector<std::string> libraries, features;
  if (options.libraries) {
    llvm::append_range(libraries, options.target->getLibraries());
    llvm::append_range(features, options.target->getFeatures(options.codeGen));
    if (options.math == plan::MathMode::TF32 || options.math == plan::MathMode::BF16)
      features.push_back(kRoundedFactors.str());
  }
  bool isOnHost = options.target->getMemory() == plan::ProgramMemory::Host;
  ExchangeEngine engine = getExchangeEngine(options.target->getMemory());
  switch (phase) {
  case Phase::Import:
  case Phase::Emit:
    break;
  case Phase::Simplify:
    buildSimplifyPipeline(passes.nest<func::FuncOp>());
    break;
  case Phase::Legalize:
    buildLegalizePipeline(passes.nest<func::FuncOp>(),
                          getGraphTarget(options, passes.getContext(), libraries, features));
    passes.addNestedPass<func::FuncOp>(createCheckIndices({options.indexChecks}));
    if (options.generalizes)
      passes.addNestedPass<func::FuncOp>(createGeneralize());
    break;
  case Phase::Propagate:
    passes.addPass(createChooseShardings({options.objective, std::llround(options.searchMemory.value_or(0)),
                                          llvm::to_vector(options.mostShares), llvm::to_vector(options.slowness),
                                          options.searchWeightFactor, options.mayGather, /*cluster=*/"", engine,
                                          options.searchWork, options.explain, options.following, options.follow,
                                          options.comparesDepartures, options.shardingsSeed},
                                         getCluster(options)));
    break;
  case Phase::Partition:
    passes.addNestedPass<func::FuncOp>(createJoinWraps());
    passes.addPass(createPartition());
    passes.addNestedPass<func::FuncOp>(createCSEPass());
    passes.addPass(createHoistReshards({options.objective, /*cluster=*/"", engine}, getCluster(options)));
    if (options.halos != When::Never)
      passes.addPass(createWidenHalos(
          {options.objective, /*cluster=*/"", engine, options.halos == When::Always, options.shardingsSeed},
          getCluster(options)));
    passes.addPass(createMergeReshards());
    passes.addPass(createVerifyPartition());
    break;
  case Phase::Lower:
    passes.addNestedPass<func::FuncOp>(createWidenCalls({libraries, features}));
    if (options.target->keepsRows())
      passes.addNestedPass<func::FuncOp>(createExpandRows());
    passes.addNestedPass<func::FuncOp>(createMergeHeads({libraries, features}));
    // Once more for what was converted.
    passes.addPass(createVerifyPartition());
    buildLowerGraphPipeline(
        passes, libraries, features,
        {options.target->getChoiceWork(), options.target->getPackedRows(), options.gathersAhead.value_or(!isOnHost)},
        {options.target->getName().str(), options.target->getMemory(), options.math});
    passes.addPass(createMergeRows());
    if (isOnHost)
      passes.addPass(createReplaceSlowCalls({libraries, features}));
    if (hasAlgorithms(options))
      passes.addPass(createChooseAlgorithms(
          {/*cluster=*/"",
           llvm::map_to_vector(options.algorithms,
                               [](auto algorithm) { return plan::stringifyConvolutionAlgorithm(algorithm).str(); })},
          getCluster(options)));
    // Devices divide their work themselves.
    if (isOnHost)
      passes.addPass(createDivideCalls({}, getCluster(options)));
    passes.addPass(createBoundCalls({libraries, features, options.spareCallMemory}));
    passes.addPass(createChooseExchanges());
    passes.addPass(createMergeExchanges());
    // Devices compute all: a thread that has nothing to do saves no time.
    if (isOnHost)
      passes.addPass(createEndAtCounts());
    if (options.splitLaunches != When::Never)
      passes.addPass(
          createSplitLaunches({/*cluster=*/"", engine, options.splitLaunches == When::Always}, getCluster(options)));
    passes.addPass(createPlaceWaits());
    break;
  case Phase::CodeGen:
    passes.addPass(createShareKernels());
    options.target->addPasses(passes);
    // Once more for steps and buffers that were added.
    passes.addPass(createPlaceWaits());
    break;
  }
}
