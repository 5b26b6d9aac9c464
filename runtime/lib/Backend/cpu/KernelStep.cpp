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

private:
  static void runPart(void *self, int part);

  const RankMemory &memory;
  const KernelCall &call;
  DovetailKernel kernel;
  ThreadPool &threads;
  std::vector<void *> pointers;
  std::vector<std::vector<int64_t>> numbers; ///< For each thread that takes part.
};

} // namespace

absl::Status KernelStep::bind(std::byte *) {
  KernelArguments arguments = kernelArguments(memory, call);
  pointers = std::move(arguments.pointers);
  int64_t volume = 1;
  for (size_t loop = 0; loop < arguments.ranges.size(); ++loop)
    if (!call.loops[loop].isLookup)
      volume *= std::max<int64_t>(1, arguments.ranges[loop].size());
  int64_t parts = 1;
  if (call.parallelLoop >= 0)
    parts = std::max<int64_t>(1, std::min({static_cast<int64_t>(threads.size()),
                                           arguments.ranges[call.parallelLoop].size(), volume / elementsPerThread}));
  numbers.assign(parts, arguments.numbers);
  if (parts > 1) {
    layout::Interval range = arguments.ranges[call.parallelLoop];
    std::vector<int64_t> cuts = layout::balancedCuts(range.size(), parts);
    for (int64_t part = 0; part < parts; ++part) {
      numbers[part][2 * call.parallelLoop] = range.lo + cuts[part];
      numbers[part][2 * call.parallelLoop + 1] = range.lo + cuts[part + 1];
    }
  }
  return absl::OkStatus();
}

void KernelStep::runPart(void *self, int part) {
  auto *step = static_cast<KernelStep *>(self);
  step->kernel(step->pointers.data(), step->numbers[part].data());
}

absl::Status KernelStep::run() {
  threads.run(static_cast<int>(numbers.size()), runPart, this);
  return absl::OkStatus();
}

StepExecutorOr dovetail::runtime::createKernelStep(const RankMemory &memory, const KernelCall &call,
                                                   DovetailKernel kernel, ThreadPool &threads) {
  if (hasNothingToDo(memory, call))
    return nullptr;
  return std::make_unique<KernelStep>(memory, call, kernel, threads);
}
