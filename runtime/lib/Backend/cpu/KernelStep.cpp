//===- KernelStep.cpp - Calls of generated kernels ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelStep.h"

#include "../../Session/KernelArguments.h"

#include "dovetail/Layout/Cuts.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// Ranges of fewer elements than this are not worth waking a thread for.
constexpr int64_t elementsPerThread = 8192;

class KernelStep : public StepExecutor {
public:
  KernelStep(const RankMemory &memory, const KernelCall &call, DovetailKernel kernel, ThreadPool &threads)
      : memory(memory), call(call), kernel(kernel), threads(threads) {}

  absl::Status bind(std::byte *scratch) override;
  absl::Status run() override;
  double share() const override;

private:
  /// Divides what is `current` among the threads.
  void divide();
  static void runPart(void *self, int part);

  const RankMemory &memory;
  const KernelCall &call;
  DovetailKernel kernel;
  ThreadPool &threads;
  std::vector<void *> pointers;
  std::vector<layout::Interval> ranges;  ///< All of the rank.
  std::vector<layout::Interval> current; ///< This run goes through these.
  bool hasEnds = false;
  std::vector<std::vector<int64_t>> numbers; ///< For each thread that may take part.
  int numParts = 1;
};

} // namespace

absl::Status KernelStep::bind(std::byte *) {
  KernelArguments arguments = kernelArguments(memory, call);
  pointers = std::move(arguments.pointers);
  ranges = current = std::move(arguments.ranges);
  numbers.assign(call.parallelLoop >= 0 ? threads.size() : 1, arguments.numbers);
  hasEnds =
      std::any_of(call.loops.begin(), call.loops.end(), [](const LoopInfo &loop) { return loop.end.has_value(); });
  divide();
  return absl::OkStatus();
}

void KernelStep::divide() {
  int64_t volume = 1;
  for (size_t loop = 0; loop < current.size(); ++loop)
    if (!call.loops[loop].isLookup)
      volume *= std::max<int64_t>(1, current[loop].size());
  numParts = 1;
  if (call.parallelLoop >= 0)
    numParts = static_cast<int>(
        std::max<int64_t>(1, std::min({static_cast<int64_t>(threads.size()), current[call.parallelLoop].size(),
                                       volume / elementsPerThread})));
  for (int part = 0; part < numParts; ++part)
    for (int loop = 0; loop < static_cast<int>(current.size()); ++loop) {
      layout::Interval range = current[loop];
      if (loop == call.parallelLoop)
        range = layout::balancedPiece(range, numParts, part);
      numbers[part][2 * loop] = range.lo;
      numbers[part][2 * loop + 1] = range.hi;
    }
}

void KernelStep::runPart(void *self, int part) {
  auto *step = static_cast<KernelStep *>(self);
  step->kernel(step->pointers.data(), step->numbers[part].data());
}

absl::Status KernelStep::run() {
  if (hasEnds) {
    for (size_t loop = 0; loop < ranges.size(); ++loop)
      current[loop] = memory.endAt(call.loops[loop], ranges[loop]);
    if (std::any_of(call.skipLoops.begin(), call.skipLoops.end(), [&](uint32_t loop) { return current[loop].empty(); }))
      return absl::OkStatus();
    divide();
  }
  threads.run(numParts, runPart, this);
  return absl::OkStatus();
}

double KernelStep::share() const {
  double share = 1;
  for (size_t loop = 0; hasEnds && loop < ranges.size(); ++loop)
    if (!ranges[loop].empty())
      share *= static_cast<double>(current[loop].size()) / static_cast<double>(ranges[loop].size());
  return share;
}

StepExecutorOr dovetail::runtime::createKernelStep(const RankMemory &memory, const KernelCall &call,
                                                   DovetailKernel kernel, ThreadPool &threads) {
  if (hasNothingToDo(memory, call))
    return nullptr;
  return std::make_unique<KernelStep>(memory, call, kernel, threads);
}
