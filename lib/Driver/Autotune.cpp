//===- Autotune.cpp - Decisions by measurement ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements measureAlgorithms.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Autotune.h"

#include "dovetail/Driver/StepTimes.h"
#include "llvm/ADT/STLExtras.h"

using namespace dovetail;
using llvm::FailureOr;
using plan::ConvolutionAlgorithm;

/// How long a program with one of the algorithms is run, about: the least of some runs is what counts.
static constexpr double kSeconds = 1;

namespace {
/// A convolution of a program, outside of its prologue.
struct Convolution {
  size_t step;
  std::string name;
  ConvolutionAlgorithm algorithm;
};
} // namespace

static std::vector<Convolution> findConvolutions(mlir::ModuleOp module) {
  auto programs = module.getOps<plan::ProgramOp>();
  plan::ProgramOp program = *programs.begin();
  std::vector<Convolution> found;
  for (auto [number, step] : llvm::enumerate(program.getBlock()->getOps<plan::StepOpInterface>()))
    if (auto call = llvm::dyn_cast<plan::ConvolutionOp>(*step))
      found.push_back({number, call.getStepName().value_or("").str(), call.getAlgorithm()});
  return found;
}

/// Compiles the program with `algorithm` for all convolutions that it is for.
static FailureOr<Compilation> lower(Compilation &compilation, ConvolutionAlgorithm algorithm,
                                    Diagnostics &diagnostics) {
  CompileOptions options = compilation.getOptions();
  options.autotuneThreads = options.prepackThreads = 0;
  options.algorithms = {algorithm};
  Compilation copy = compilation.fork(std::move(options), diagnostics);
  if (failed(copy.runTo(Phase::Lower)))
    return llvm::failure();
  return copy;
}

llvm::SmallVector<ConvolutionAlgorithm> dovetail::listAlgorithms() {
  llvm::SmallVector<ConvolutionAlgorithm> algorithms;
  for (const calls::AlgorithmEntry &entry : calls::getAlgorithms())
    if (entry.isChoice())
      algorithms.push_back(plan::fromCalls(entry.algorithm));
  return algorithms;
}

FailureOr<std::vector<ConvolutionAlgorithm>> dovetail::measureAlgorithms(Compilation &compilation,
                                                                         Diagnostics &diagnostics) {
  int threads = compilation.getOptions().autotuneThreads;
  /// For each convolution the fastest algorithm so far, and its seconds; none if it has no choice.
  std::vector<std::optional<std::pair<ConvolutionAlgorithm, double>>> fastest;
  // Whatever is worth saying is said of the program that is chosen.
  Diagnostics::ErrorsOnly errorsOnly(diagnostics);
  llvm::SmallVector<ConvolutionAlgorithm> algorithms = listAlgorithms();
  algorithms.push_back(ConvolutionAlgorithm::Library);
  for (ConvolutionAlgorithm algorithm : algorithms) {
    bool isLibrary = algorithm == ConvolutionAlgorithm::Library;
    if (isLibrary && llvm::none_of(fastest, [](const auto &each) { return each.has_value(); }))
      break;
    FailureOr<Compilation> lowered = lower(compilation, algorithm, diagnostics);
    if (failed(lowered))
      return llvm::failure();
    std::vector<Convolution> found = findConvolutions(lowered->getModule());
    fastest.resize(found.size());
    auto isDone = [&](const Convolution &call) { return call.algorithm == algorithm; };
    if (!isLibrary && llvm::none_of(found, isDone))
      continue;
    FailureOr<StepTimes> times = measureSteps(*lowered, /*inputs=*/{}, threads, kSeconds, diagnostics);
    if (failed(times))
      return llvm::failure();
    for (auto [call, best] : llvm::zip_equal(found, fastest)) {
      double seconds = *llvm::max_element(times->steps[call.step]);
      // Whatever does a convolution that the library is slow at stands for the library.
      if (isLibrary ? best && seconds <= best->second : isDone(call) && (!best || seconds < best->second))
        best = {algorithm, seconds};
    }
  }
  std::vector<ConvolutionAlgorithm> chosen;
  for (const auto &best : fastest)
    if (best)
      chosen.push_back(best->first);
  return chosen;
}
