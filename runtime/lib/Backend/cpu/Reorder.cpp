//===- Reorder.cpp - Steps that change memory formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"
#include "OneDnn.h"

#include "dovetail/Layout/Cuts.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// Threads divide the copy.
class ReorderStep : public StepExecutor {
public:
  ReorderStep(const RankMemory &context, const ReorderCall &call, const std::vector<layout::Box> &parts,
              ThreadPool &pool)
      : context(context), call(call), outcomes(parts.size()), pool(pool) {
    for (const layout::Box &part : parts)
      copiers.emplace_back(context.memory(call.target), context.memory(call.source), part);
  }

  absl::Status bind(std::byte *) override {
    for (Copier &copier : copiers)
      copier.bind(context.memory(call.target).data, context.memory(call.source).data);
    return absl::OkStatus();
  }
  absl::Status run() override {
    pool.run(
        static_cast<int>(copiers.size()),
        [](void *self, int part) {
          auto &step = *static_cast<ReorderStep *>(self);
          step.outcomes[part] = step.copiers[part].run();
        },
        this);
    for (const absl::Status &outcome : outcomes)
      if (!outcome.ok())
        return outcome;
    return absl::OkStatus();
  }

private:
  const RankMemory &context;
  const ReorderCall &call;
  std::vector<Copier> copiers;
  std::vector<absl::Status> outcomes; ///< Of the last run.
  ThreadPool &pool;
};

/// Parts of `box` for so many threads, along the outermost dimension of the target that has enough elements. No part
/// is so small that waking a thread takes longer.
std::vector<layout::Box> divide(const layout::Box &box, ElementType type, const MemoryFormat &format, int threads) {
  constexpr int64_t leastBytes = 16 << 10;
  int64_t count = std::min<int64_t>(threads, box.volume() * elementSize(type) / leastBytes);
  std::vector<layout::Box> parts;
  for (int dim : format.order) {
    if (count < 2 || box[dim].size() < count)
      continue;
    std::vector<int64_t> cuts = layout::balancedCuts(box[dim].size(), count);
    for (int64_t part = 0; part < count; ++part) {
      parts.push_back(box);
      parts.back()[dim] = {box[dim].lo + cuts[part], box[dim].lo + cuts[part + 1]};
    }
    return parts;
  }
  return {box};
}

} // namespace

StepExecutorOr dovetail::runtime::createReorder(const RankMemory &context, const ReorderCall &call, ThreadPool &pool) {
  layout::Box box = context.box(call.target);
  if (box.empty())
    return nullptr;
  if (absl::Status status = context.checkHeld(call.source, box); !status.ok())
    return status;
  const MemoryFormat &format = context.plan.bufferOf(call.target).format;
  std::vector<layout::Box> parts = divide(box, context.memory(call.target).type, format, pool.size());
  return std::make_unique<ReorderStep>(context, call, parts, pool);
}
