//===- StepParts.cpp - Steps that are parts of one ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepParts.h"

#include "PlanValidator.h"

using namespace dovetail;
using namespace dovetail::runtime;

/// The loops of a kernel or library call whose first ones are the dimensions of its results; null for other steps.
static const std::vector<LoopInfo> *resultLoopsOf(const StepInfo &step) {
  return std::visit(
      [](const auto &action) -> const std::vector<LoopInfo> * {
        using Action = std::decay_t<decltype(action)>;
        if constexpr (requires { action.loops; } && !std::is_same_v<Action, AttentionCall>)
          return &action.loops;
        return nullptr;
      },
      step.action);
}

layout::Box dovetail::runtime::writtenBox(const Plan &plan, const StepInfo &step, uint32_t tensor, int rank) {
  layout::Box held = plan.tensorBox(tensor, rank);
  const std::vector<LoopInfo> *loops = resultLoopsOf(step);
  const std::vector<int64_t> &shape = plan.bufferOf(tensor).shape;
  if (!loops || loops->size() < shape.size())
    return held;
  std::vector<layout::Interval> ranges;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if ((*loops)[dim].extent != shape[dim])
      return held;
    ranges.push_back(plan.loopRange((*loops)[dim], rank));
  }
  layout::Box box(std::move(ranges));
  return held.contains(box) ? box : held;
}

std::optional<layout::HaloMessages> dovetail::runtime::haloMessagesOf(const Plan &plan, const ExchangeCall &call,
                                                                      const MoveInfo &move) {
  const TensorInfo &source = plan.tensors[move.source], &target = plan.tensors[move.target];
  if (call.kind != layout::ExchangeKind::Messages || source.buffer != target.buffer || source.sharding.isPartial())
    return std::nullopt;
  const BufferInfo &buffer = plan.buffers[source.buffer];
  return layout::HaloMessages(plan.mesh, buffer.shape, source.sharding, target.sharding);
}

namespace {
/// Steps that do the same and write the same tensors, one after the other.
class PartList {
public:
  explicit PartList(const Plan &plan) : plan(plan) {}

  /// Whether there are such steps, of which that at `position` is one more. What is complete when it is exchanged is
  /// written anew.
  bool isContinuedBy(size_t position) const;
  void add(size_t position) { parts.push_back(position); }
  /// Takes note of an exchange behind the parts so far; false if it has nothing to do with what they write.
  bool addExchange(size_t position);
  /// Checks the parts, and begins anew.
  absl::Status finish();

private:
  const StepInfo &first() const { return plan.steps[parts.front()]; }
  std::string describe(size_t position) const {
    return absl::StrCat("step ", position, " '", plan.steps[position].name, "'");
  }
  absl::Status checkOnce() const;
  absl::Status checkExchanges() const;

  const Plan &plan;
  std::vector<size_t> parts, exchanges; ///< Positions.
};
} // namespace

bool PartList::isContinuedBy(size_t position) const {
  const StepInfo &step = plan.steps[position];
  if (parts.empty() || step.action.index() != first().action.index() || step.writes() != first().writes())
    return false;
  const auto *kernel = std::get_if<KernelCall>(&step.action);
  if (kernel && kernel->symbol != std::get<KernelCall>(first().action).symbol)
    return false;
  return exchanges.empty() || !checkOnce().ok();
}

bool PartList::addExchange(size_t position) {
  if (parts.empty())
    return false;
  for (uint32_t source : plan.steps[position].reads())
    for (uint32_t tensor : first().writes())
      if (plan.tensors[source].buffer == plan.tensors[tensor].buffer) {
        exchanges.push_back(position);
        return true;
      }
  return false;
}

absl::Status PartList::checkOnce() const {
  uint32_t output = first().writes().front();
  size_t rank = plan.bufferOf(output).shape.size();
  for (int number = 0, ranks = plan.mesh.numRanks(); number < ranks; ++number) {
    layout::Box held = plan.tensorBox(output, number);
    std::vector<layout::Box> boxes;
    for (size_t part : parts) {
      const std::vector<LoopInfo> &loops = *resultLoopsOf(plan.steps[part]);
      if (loops.size() < rank)
        return damaged(describe(parts.back()), " has fewer loops than dimensions");
      std::vector<layout::Interval> box;
      for (size_t dim = 0; dim < rank; ++dim)
        box.push_back(plan.loopRange(loops[dim], number).shifted(-held[static_cast<int>(dim)].lo));
      boxes.push_back(std::move(box));
    }
    if (std::string why; !layout::coversExactlyOnce(boxes, held.shape(), &why))
      return damaged(describe(parts.back()), " and those before it do not compute each element once on rank ", number,
                     ": ", why);
  }
  return absl::OkStatus();
}

absl::Status PartList::checkExchanges() const {
  for (size_t position : exchanges) {
    const auto &call = std::get<ExchangeCall>(plan.steps[position].action);
    for (const MoveInfo &move : call.moves) {
      std::optional<layout::HaloMessages> messages = haloMessagesOf(plan, call, move);
      for (size_t part : parts) {
        if (part < position)
          continue;
        for (uint32_t tensor : first().writes()) {
          uint32_t buffer = plan.tensors[tensor].buffer;
          if (buffer != plan.tensors[move.source].buffer && buffer != plan.tensors[move.target].buffer)
            continue;
          for (int rank = 0, ranks = plan.mesh.numRanks(); rank < ranks; ++rank)
            if (!messages || !messages->leaves(rank, writtenBox(plan, plan.steps[part], tensor, rank)))
              return damaged(describe(part), " writes elements that ", describe(position),
                             ", between it and other parts of the same step, sends or receives on rank ", rank);
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PartList::finish() {
  absl::Status status;
  if (parts.size() > 1 && !first().writes().empty() &&
      (std::holds_alternative<KernelCall>(first().action) || !exchanges.empty())) {
    status = checkOnce();
    if (status.ok())
      status = checkExchanges();
  }
  parts.clear();
  exchanges.clear();
  return status;
}

absl::Status dovetail::runtime::checkParts(const Plan &plan) {
  PartList parts(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const StepInfo &step = plan.steps[i];
    // The boundary waits for what the interior does not need.
    if (std::holds_alternative<WaitCall>(step.action))
      continue;
    if (std::holds_alternative<ExchangeCall>(step.action) && parts.addExchange(i))
      continue;
    bool mayBePart = resultLoopsOf(step) != nullptr;
    if (!mayBePart || !parts.isContinuedBy(i))
      if (absl::Status status = parts.finish(); !status.ok())
        return status;
    if (mayBePart)
      parts.add(i);
  }
  return parts.finish();
}
