//===- KernelStep.cpp - Calls of generated kernels ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepExecutor.h"

#include "dovetail/Layout/Cuts.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// Ranges of fewer elements than this are not worth waking a thread for.
constexpr int64_t elementsPerThread = 8192;

class KernelStep : public StepExecutor {
public:
  KernelStep(SessionContext &context, const KernelCall &call) : context(context), call(call) {}

  absl::Status bind(std::byte *scratch) override;
  absl::Status run() override;

private:
  static void runPart(void *self, int part);

  SessionContext &context;
  const KernelCall &call;
  DovetailKernel kernel = nullptr;
  std::vector<void *> pointers;
  std::vector<std::vector<int64_t>> numbers; ///< For each thread that takes part.
};

layout::Interval loopRange(const SessionContext &context, const LoopInfo &loop) {
  if (!loop.dim.isSplit())
    return {0, loop.extent};
  std::vector<int> coords = context.plan.mesh.coordsOf(context.rank);
  return loop.dim.pieceAt(layout::linearCoordinate(context.plan.mesh, loop.dim.axes, coords), loop.extent).canonical();
}

/// The strides as the kernel wants them: logical dimensions, or physical ones of a blocked format.
void appendStrides(const MemoryView &view, const MemoryFormat &format, std::vector<int64_t> &numbers) {
  if (view.blockDim < 0) {
    numbers.insert(numbers.end(), view.strides.begin(), view.strides.end());
    return;
  }
  for (int dim : format.order)
    numbers.push_back(view.strides[dim]);
  numbers.push_back(1);
}

} // namespace

absl::Status KernelStep::bind(std::byte *) {
  kernel = context.program.getKernel(call.symbol);
  std::vector<int64_t> all;
  std::vector<layout::Interval> ranges;
  int64_t volume = 1;
  for (const LoopInfo &loop : call.loops) {
    ranges.push_back(loopRange(context, loop));
    all.push_back(ranges.back().lo);
    all.push_back(ranges.back().hi);
    volume *= std::max<int64_t>(1, ranges.back().size());
  }
  for (const std::vector<uint32_t> *list : {&call.reads, &call.writes})
    for (uint32_t tensor : *list) {
      const MemoryView &view = context.memory(tensor);
      pointers.push_back(view.origin());
      appendStrides(view, context.plan.bufferOf(tensor).format, all);
    }

  int64_t parts = 1;
  if (call.parallelLoop >= 0)
    parts = std::max<int64_t>(1, std::min({static_cast<int64_t>(context.threads.size()),
                                           ranges[call.parallelLoop].size(), volume / elementsPerThread}));
  numbers.assign(parts, all);
  if (parts > 1) {
    layout::Interval range = ranges[call.parallelLoop];
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
  context.threads.run(static_cast<int>(numbers.size()), runPart, this);
  return absl::OkStatus();
}

StepExecutorOr dovetail::runtime::createKernelStep(SessionContext &context, const StepInfo &step) {
  const auto &call = std::get<KernelCall>(step.action);
  for (uint32_t loop : call.skipLoops)
    if (loopRange(context, call.loops[loop]).empty())
      return nullptr;
  return std::make_unique<KernelStep>(context, call);
}
