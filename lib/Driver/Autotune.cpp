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

FailureOr<std::vector<ConvolutionAlgorithm>> dovetail::measureAlgorithms(Compilation &compilation,
                                                                         Diagnostics &diagnostics) {
  int threads = compilation.getOptions().autotuneThreads;
  std::vector<ConvolutionAlgorithm> chosen;
  std::vector<std::vector<double>> seconds;
  std::vector<Convolution> convolutions;
  // Whatever is worth saying is said of the program that is chosen.
  Diagnostics::ErrorsOnly errorsOnly(diagnostics);
  for (ConvolutionAlgorithm algorithm : {ConvolutionAlgorithm::Winograd, ConvolutionAlgorithm::Library}) {
    FailureOr<Compilation> lowered = lower(compilation, algorithm, diagnostics);
    if (failed(lowered))
      return llvm::failure();
    std::vector<Convolution> found = findConvolutions(lowered->getModule());
    if (algorithm == ConvolutionAlgorithm::Winograd)
      convolutions = found;
    if (llvm::none_of(convolutions,
                      [](const Convolution &call) { return call.algorithm == ConvolutionAlgorithm::Winograd; }))
      return chosen;
    FailureOr<StepTimes> times = measureSteps(*lowered, /*inputs=*/{}, threads, kSeconds, diagnostics);
    if (failed(times))
      return llvm::failure();
    std::vector<double> &own = seconds.emplace_back();
    for (const Convolution &call : found)
      own.push_back(*llvm::max_element(times->steps[call.step]));
  }
  for (auto [call, winograd, library] : llvm::zip_equal(convolutions, seconds[0], seconds[1]))
    if (call.algorithm == ConvolutionAlgorithm::Winograd)
      chosen.push_back(winograd < library ? ConvolutionAlgorithm::Winograd : ConvolutionAlgorithm::Library);
  return chosen;
}
