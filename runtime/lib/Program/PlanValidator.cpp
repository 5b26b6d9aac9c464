//===- PlanValidator.cpp - How parts of a plan must fit -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanValidator.h"

#include "Validator.h"

using namespace dovetail;
using namespace dovetail::runtime;

/// What has this `extent` may be bounded by that count.
absl::Status Validator::checkBounded(const std::string &where, int32_t count, int64_t extent) {
  if (count == -1)
    return absl::OkStatus();
  if (count < -1 || count >= static_cast<int64_t>(plan.counts.size()))
    return damaged(where, " is bounded by count ", count, " of ", plan.counts.size());
  if (plan.counts[count].bound != extent)
    return damaged(where, " of extent ", extent, " is bounded by count '", plan.counts[count].name, "' of bound ",
                   plan.counts[count].bound);
  return absl::OkStatus();
}

absl::Status Validator::checkBoundedLoops(const std::string &where, const std::vector<LoopInfo> &loops) {
  for (size_t loop = 0; loop < loops.size(); ++loop)
    if (absl::Status status = checkBounded(absl::StrCat(where, ", loop ", loop), loops[loop].count, loops[loop].extent);
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status Validator::checkTensor(size_t index) {
  const TensorInfo &tensor = plan.tensors[index];
  const BufferInfo &buffer = plan.buffers[tensor.buffer];
  std::string where = absl::StrCat("tensor ", index, " '", tensor.name, "'");
  if (!tensor.counts.empty() && tensor.counts.size() != buffer.shape.size())
    return damaged(where, " has counts for ", tensor.counts.size(), " of ", buffer.shape.size(), " dimensions");
  for (size_t dim = 0; dim < tensor.counts.size(); ++dim)
    if (absl::Status status =
            checkBounded(absl::StrCat(where, ", dimension ", dim), tensor.counts[dim], buffer.shape[dim]);
        !status.ok())
      return status;
  if (!buffer.sharding.contains(plan.mesh, buffer.shape, tensor.sharding))
    for (int rank = 0, ranks = plan.mesh.numRanks(); rank < ranks; ++rank)
      if (!plan.bufferBox(tensor.buffer, rank).contains(plan.tensorBox(index, rank)))
        return damaged(where, " has elements outside of its buffer on rank ", rank);
  return absl::OkStatus();
}

absl::Status Validator::checkMove(const std::string &where, const MoveInfo &move) {
  if (shape(move.source) != shape(move.target) || !sameType(move.source, move.target))
    return damaged(where, " has a target of another shape or type than its source");
  const layout::Sharding &from = plan.tensors[move.source].sharding, &to = plan.tensors[move.target].sharding;
  if (std::string why; !layout::verifyExchange(plan.mesh, shape(move.source), from, to, &why))
    return damaged(where, ": ", why);
  if (from.partialAxes != to.partialAxes && plan.tensors[move.source].buffer == plan.tensors[move.target].buffer)
    return damaged(where, " reduces a buffer into itself");
  return absl::OkStatus();
}

absl::Status Validator::checkExchange(const std::string &where, const ExchangeCall &call) {
  for (const MoveInfo &move : call.moves)
    if (absl::Status status = checkMove(where, move); !status.ok())
      return status;
  if (call.moves.size() > 1 && !layout::movesMany(call.kind))
    return damaged(where, " is one ", layout::stringifyExchangeKind(call.kind), " of ", call.moves.size(), " tensors");
  // Ranks follow what the plan says, and do not ask whether others find the same.
  for (const MoveInfo &move : call.moves)
    if (std::string why; !plan.placeOf(move).fits(call.kind, &why))
      return damaged(where, ": ", why);
  if (call.moves.size() == 1)
    return absl::OkStatus();
  auto findGroup = [&](const MoveInfo &move) {
    layout::ExchangePlace place = plan.placeOf(move);
    return layout::collectiveGroup(place.mesh, place.shape, place.from, place.to, call.kind, /*rank=*/0).members;
  };
  // All groups follow from the axes on which the ranks of one differ.
  for (const MoveInfo &move : call.moves)
    if (call.kind == layout::ExchangeKind::PackedGather && findGroup(move) != findGroup(call.moves[0]))
      return damaged(where, " gathers tensors among different groups of ranks at once");
  // Their elements go in any order.
  std::map<uint32_t, const MoveInfo *> targets;
  for (const MoveInfo &move : call.moves)
    if (!targets.try_emplace(plan.tensors[move.target].buffer, &move).second)
      return damaged(where, " moves two tensors into buffer ", plan.tensors[move.target].buffer);
  for (const MoveInfo &move : call.moves)
    if (auto target = targets.find(plan.tensors[move.source].buffer);
        target != targets.end() && target->second != &move)
      return damaged(where, " overwrites elements that it moves from buffer ", target->first);
  return absl::OkStatus();
}

absl::Status Validator::checkCondition(const std::string &where, uint32_t condition, bool inPrologue) {
  if (inPrologue)
    return damaged(where, " repeats or chooses steps, but not of a run");
  if (plan.bufferOf(condition).type != ElementType::Bool || !shape(condition).empty() ||
      plan.tensors[condition].sharding.isPartial())
    return damaged(where, " has a condition that is not a scalar of Bool");
  writtenBefore.push_back(written);
  return absl::OkStatus();
}

absl::Status Validator::checkRead(const std::string &where, const StepInfo &step, uint32_t tensor) const {
  Written state = written[plan.tensors[tensor].buffer];
  if (state == Written::No)
    return damaged(where, " reads tensor ", tensor, " '", plan.tensors[tensor].name,
                   "' before anything is written to it");
  // Kernels may choose between what one choice makes and what another does.
  if (state == Written::Chosen && !std::holds_alternative<KernelCall>(step.action))
    return damaged(where, " reads tensor ", tensor, " '", plan.tensors[tensor].name,
                   "', which is written only if a condition holds");
  return absl::OkStatus();
}

/// What may not have run has written nothing for certain: there may be no iteration, and who reads what was chosen must
/// choose, too.
void Validator::endSteps(size_t begin) {
  std::vector<Written> before = std::move(writtenBefore.back());
  writtenBefore.pop_back();
  bool isChoice = std::holds_alternative<ChooseCall>(plan.steps[begin].action);
  for (size_t i = 0; isChoice && i < before.size(); ++i)
    if (before[i] == Written::No && written[i] != Written::No)
      before[i] = Written::Chosen;
  written = std::move(before);
}

absl::Status Validator::checkStep(const std::string &where, const StepInfo &step, bool inPrologue) {
  for (uint32_t tensor : step.reads())
    if (absl::Status status = checkRead(where, step, tensor); !status.ok())
      return status;
  for (uint32_t tensor : step.writes()) {
    BufferKind kind = plan.bufferOf(tensor).kind;
    if (kind == BufferKind::Constant || (kind == BufferKind::Persistent && !inPrologue))
      return damaged(where, " writes tensor ", tensor, " '", plan.tensors[tensor].name, "', which is constant");
    written[plan.tensors[tensor].buffer] = Written::Yes;
  }
  const std::vector<LoopInfo> *loops = std::visit(
      [](const auto &action) -> const std::vector<LoopInfo> * {
        if constexpr (requires { action.loops; })
          return &action.loops;
        return nullptr;
      },
      step.action);
  if (absl::Status status = loops ? checkBoundedLoops(where, *loops) : absl::OkStatus(); !status.ok())
    return status;
  auto overlaps = [&](uint32_t a, uint32_t b) { return plan.tensors[a].buffer == plan.tensors[b].buffer; };
  auto inPlace = [&] { return damaged(where, " writes over its own operand"); };
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return overlaps(call->input, call->output) || overlaps(call->weights, call->output)
               ? inPlace()
               : checkConvolution(where, *call);
  if (const auto *call = std::get_if<MatMulCall>(&step.action)) {
    bool isInPlace = (overlaps(call->a, call->output) && !mayWriteOver(*call)) || overlaps(call->b, call->output);
    return isInPlace ? inPlace() : checkMatMul(where, *call);
  }
  if (const auto *call = std::get_if<PoolCall>(&step.action))
    return overlaps(call->input, call->output) ? inPlace() : checkPool(where, *call);
  if (const auto *call = std::get_if<AttentionCall>(&step.action))
    return checkAttention(where, *call);
  if (const auto *call = std::get_if<TransformCall>(&step.action))
    return overlaps(call->input, call->output) ? inPlace() : checkTransform(where, *call);
  if (const auto *call = std::get_if<ExchangeCall>(&step.action))
    return checkExchange(where, *call);
  if (const auto *call = std::get_if<RepeatCall>(&step.action))
    return checkCondition(where, call->condition, inPrologue);
  if (const auto *call = std::get_if<ChooseCall>(&step.action))
    return checkCondition(where, call->condition, inPrologue);
  if (const auto *call = std::get_if<EndCall>(&step.action))
    endSteps(call->begin);
  if (const auto *call = std::get_if<ReorderCall>(&step.action)) {
    if (shape(call->source) != shape(call->target) || !sameType(call->source, call->target))
      return damaged(where, " has a target of another shape or type than its source");
    if (plan.tensors[call->source].buffer == plan.tensors[call->target].buffer)
      return damaged(where, " reorders a buffer into itself");
  }
  return absl::OkStatus();
}

absl::Status Validator::validate() {
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (absl::Status status = checkTensor(i); !status.ok())
      return status;

  written.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i].kind == BufferKind::Constant)
      written[i] = Written::Yes;
  for (size_t i = 0; i < plan.prologue.size(); ++i) {
    std::string where = absl::StrCat("prologue step ", i, " '", plan.prologue[i].name, "'");
    if (absl::Status status = checkStep(where, plan.prologue[i], /*inPrologue=*/true); !status.ok())
      return status;
  }
  // The prologue's arena does not outlive it.
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i].kind == BufferKind::Arena)
      written[i] = Written::No;
  if (absl::Status status = checkCounts(); !status.ok())
    return status;
  for (const PortInfo &input : plan.getArguments()) {
    if (plan.bufferOf(input.tensor).kind != BufferKind::Arena)
      return damaged("input '", input.name, "' lies in a constant buffer");
    if (plan.tensors[input.tensor].sharding.isPartial())
      return damaged("input '", input.name, "' is partial");
    written[plan.tensors[input.tensor].buffer] = Written::Yes;
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    std::string where = absl::StrCat("step ", i, " '", plan.steps[i].name, "'");
    if (absl::Status status = checkStep(where, plan.steps[i], /*inPrologue=*/false); !status.ok())
      return status;
  }
  if (absl::Status status = checkParts(plan); !status.ok())
    return status;
  for (const PortInfo &output : plan.getResults()) {
    const layout::Sharding &sharding = plan.tensors[output.tensor].sharding;
    if (sharding.isPartial())
      return damaged("output '", output.name, "' is partial");
    if (written[plan.tensors[output.tensor].buffer] != Written::Yes)
      return damaged("no step writes output '", output.name, "'");
    if (std::string why; !layout::verifyExchange(plan.mesh, output.shape, sharding,
                                                 layout::Sharding::replicated(output.shape.size()), &why))
      return damaged("output '", output.name, "': ", why);
  }
  for (const PortInfo &input : plan.inputs)
    if (absl::Status status = checkFeedback(input); !status.ok())
      return status;
  return checkFedLengths();
}

absl::Status Validator::checkCounts() {
  for (size_t number = 0; number < plan.counts.size(); ++number) {
    const CountInfo &count = plan.counts[number];
    if (count.tensor >= plan.tensors.size())
      return damaged("count '", count.name, "' uses tensor ", count.tensor, " of ", plan.tensors.size());
    if (plan.bufferOf(count.tensor).type != ElementType::I64 || !shape(count.tensor).empty())
      return damaged("count '", count.name, "' is not a scalar of I64");
    bool isInput = std::any_of(plan.inputs.begin(), plan.inputs.end(), [&](const PortInfo &input) {
      const std::vector<int32_t> &bounds = plan.tensors[input.tensor].counts;
      return std::find(bounds.begin(), bounds.end(), static_cast<int32_t>(number)) != bounds.end();
    });
    if (isInput != count.isGiven)
      return damaged("count '", count.name,
                     isInput ? "' bounds inputs, but is computed" : "' is neither computed nor given by an input");
  }
  return absl::OkStatus();
}

absl::Status Validator::checkFeedback(const PortInfo &input) {
  if (input.fedBy < 0)
    return absl::OkStatus();
  if (static_cast<size_t>(input.fedBy) >= plan.outputs.size())
    return damaged("input '", input.name, "' is fed by output ", input.fedBy, " of ", plan.outputs.size());
  const PortInfo &output = plan.outputs[input.fedBy];
  const BufferInfo &next = plan.bufferOf(input.next);
  bool fits = output.type == input.type && output.shape.size() == input.shape.size() && next.type == input.type &&
              next.shape == input.shape;
  // Where the length varies, it is how much there is of the output, which may have another bound, or none.
  for (size_t dim = 0; fits && dim < input.shape.size(); ++dim) {
    bool varies = plan.getCount(output, dim) >= 0;
    fits = plan.getCount(input, dim) >= 0 ? varies || output.shape[dim] <= input.shape[dim]
                                          : !varies && output.shape[dim] == input.shape[dim];
  }
  if (!fits)
    return damaged("input '", input.name, "' is fed by output '", output.name, "', which has another type or shape");
  if (written[plan.tensors[input.next].buffer] != Written::Yes)
    return damaged("no step writes the tensor that feeds input '", input.name, "'");
  if (plan.tensors[input.next].sharding != plan.tensors[input.tensor].sharding)
    return damaged("ranks do not hold the tensor that feeds input '", input.name, "' as they hold the input");
  return absl::OkStatus();
}

absl::Status Validator::checkFedLengths() {
  // By length, whether inputs that have it are fed back.
  std::vector<std::optional<bool>> areFed(plan.counts.size());
  for (const PortInfo &input : plan.inputs)
    for (size_t dim = 0; dim < input.shape.size(); ++dim)
      if (int32_t length = plan.getCount(input, dim); length >= 0) {
        bool isFed = input.fedBy >= 0;
        if (areFed[length].value_or(isFed) != isFed)
          return damaged("of the inputs with length '", plan.counts[length].name, "' some are fed back, but '",
                         input.name, isFed ? "' is the first of these" : "' is not");
        areFed[length] = isFed;
      }
  return absl::OkStatus();
}

absl::Status dovetail::runtime::validatePlan(const Plan &plan) { return Validator(plan).validate(); }
