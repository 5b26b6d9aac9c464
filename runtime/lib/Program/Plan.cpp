//===- Plan.cpp - Queries on decoded plans --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Plan.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

template <typename... Fs> struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs> Overloaded(Fs...) -> Overloaded<Fs...>;

void addPostOps(const std::vector<PostOpInfo> &ops, std::vector<uint32_t> &reads) {
  for (const PostOpInfo &op : ops)
    if (op.readsTensor())
      reads.push_back(static_cast<uint32_t>(op.tensor));
}

} // namespace

static std::vector<PortInfo> withCounts(std::vector<PortInfo> ports, const std::vector<CountInfo> &counts,
                                        bool areGiven) {
  for (const CountInfo &count : counts)
    if (count.isGiven == areGiven)
      ports.push_back({count.name, count.tensor, ElementType::I64, {}});
  return ports;
}

std::vector<PortInfo> Plan::getArguments() const { return withCounts(inputs, counts, /*areGiven=*/true); }

std::vector<PortInfo> Plan::getResults() const { return withCounts(outputs, counts, /*areGiven=*/false); }

bool Plan::isBounded(const PortInfo &port) const {
  const std::vector<int32_t> &bounds = tensors[port.tensor].counts;
  return std::any_of(bounds.begin(), bounds.end(), [](int32_t count) { return count >= 0; });
}

bool Plan::fits(const PortInfo &port, absl::Span<const int64_t> extents) const {
  bool fit = extents.size() == port.shape.size();
  for (size_t dim = 0; fit && dim < extents.size(); ++dim)
    fit = extents[dim] == port.shape[dim] ||
          (getCount(port, dim) >= 0 && extents[dim] >= 0 && extents[dim] < port.shape[dim]);
  return fit;
}

std::vector<std::string> Plan::describeExtents(const PortInfo &port) const {
  std::vector<std::string> texts;
  for (size_t dim = 0; dim < port.shape.size(); ++dim) {
    int32_t count = getCount(port, dim);
    texts.push_back(count < 0 ? absl::StrCat(port.shape[dim])
                              : absl::StrCat(counts[count].name, "<=", port.shape[dim]));
  }
  return texts;
}

bool Plan::hasFeedback() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const PortInfo &input) { return input.fedBy >= 0; });
}

std::vector<uint32_t> StepInfo::reads() const {
  std::vector<uint32_t> result;
  std::visit(Overloaded{[&](const KernelCall &call) { result = call.reads; },
                        [&](const ConvolutionCall &call) {
                          result = {call.input, call.weights};
                          addPostOps(call.postOps, result);
                        },
                        [&](const MatMulCall &call) {
                          result = {call.a, call.b};
                          addPostOps(call.postOps, result);
                        },
                        [&](const PoolCall &call) { result = {call.input}; },
                        [&](const AttentionCall &call) {
                          for (const auto &operand : call.operands())
                            result.push_back(operand.first);
                        },
                        [&](const TransformCall &call) { result = {call.input}; },
                        [&](const ReorderCall &call) { result = {call.source}; },
                        [&](const ExchangeCall &call) {
                          for (const MoveInfo &move : call.moves)
                            result.push_back(move.source);
                        },
                        [&](const RepeatCall &call) { result = {call.condition}; },
                        [&](const ChooseCall &call) { result = {call.condition}; }, [](const WaitCall &) {},
                        [](const EndCall &) {}},
             action);
  return result;
}

std::vector<uint32_t> StepInfo::writes() const {
  return std::visit(Overloaded{[](const KernelCall &call) { return call.writes; },
                               [](const ConvolutionCall &call) { return std::vector<uint32_t>{call.output}; },
                               [](const MatMulCall &call) { return std::vector<uint32_t>{call.output}; },
                               [](const PoolCall &call) { return std::vector<uint32_t>{call.output}; },
                               [](const AttentionCall &call) { return std::vector<uint32_t>{call.output}; },
                               [](const TransformCall &call) { return std::vector<uint32_t>{call.output}; },
                               [](const ReorderCall &call) { return std::vector<uint32_t>{call.target}; },
                               [](const ExchangeCall &call) {
                                 std::vector<uint32_t> targets;
                                 for (const MoveInfo &move : call.moves)
                                   targets.push_back(move.target);
                                 return targets;
                               },
                               [](const WaitCall &) { return std::vector<uint32_t>(); },
                               [](const RepeatCall &) { return std::vector<uint32_t>(); },
                               [](const ChooseCall &) { return std::vector<uint32_t>(); },
                               [](const EndCall &) { return std::vector<uint32_t>(); }},
                    action);
}

const char *StepInfo::kind() const {
  return std::visit(
      Overloaded{[](const KernelCall &) { return "kernel"; },
                 [](const ConvolutionCall &call) {
                   const calls::AlgorithmEntry *algorithm = calls::findAlgorithm(call.algorithm);
                   return call.form.isTransposed               ? "deconvolution"
                          : algorithm && algorithm->isChoice() ? algorithm->name
                                                               : "convolution";
                 },
                 [](const MatMulCall &) { return "matmul"; }, [](const PoolCall &) { return "pool"; },
                 [](const AttentionCall &) { return "attention"; }, [](const TransformCall &) { return "transform"; },
                 [](const ReorderCall &) { return "reorder"; }, [](const ExchangeCall &) { return "exchange"; },
                 [](const WaitCall &) { return "wait"; }, [](const RepeatCall &) { return "repeat"; },
                 [](const ChooseCall &) { return "choose"; }, [](const EndCall &) { return "end"; }},
      action);
}

const char *dovetail::runtime::mathModeName(MathMode mode) {
  switch (mode) {
  case MathMode::F32:
    return "f32";
  case MathMode::F32Strict:
    return "f32-strict";
  case MathMode::TF32:
    return "tf32";
  case MathMode::BF16:
    return "bf16";
  }
  return "";
}

std::string IndexCheck::describe(int64_t index, const StepInfo &step, bool hasCounts) const {
  // A kernel has the operations of several nodes, and the name of one of them.
  std::string who = node == step.name ? absl::StrCat("node '", step.title(), "'")
                    : step.source.empty()
                        ? absl::StrCat("node '", node, "'")
                        : absl::StrCat("node '", node, "', which is computed with '", step.source, "'");
  if (extent == 0)
    return absl::StrCat(who, ": extents of its inputs vary from run to run and must be equal, but differ by ", index,
                        " in this run; pass inputs with other lengths");
  if (extent < 0)
    return absl::StrCat(who, ": an extent that follows from lengths of inputs is too small by ", index,
                        " in this run; pass inputs with other lengths");
  std::string given = isUnsigned ? absl::StrCat(static_cast<uint64_t>(index)) : absl::StrCat(index);
  return absl::StrCat(who, ": index ", given, " is out of range for dimension ", dim, " of extent ", extent,
                      "; pass indices from ", isUnsigned ? 0 : -extent, " to ", extent - 1,
                      hasCounts && index == extent
                          ? "; where the extent varies from run to run, pass indices of elements that exist"
                          : "");
}

int64_t BlockShape::blockCount(absl::Span<const layout::Interval> ranges, int64_t most) const {
  // No more tiles than this make a difference, and products of larger numbers overflow.
  int64_t count = 1, enough = most > (int64_t(1) << 62) / tilesPerBlock ? int64_t(1) << 62 : most * tilesPerBlock;
  for (const TileLoop &tile : tiles) {
    int64_t steps = (std::max<int64_t>(0, ranges[tile.loop].size()) + tile.step - 1) / tile.step;
    if (steps == 0)
      return 1;
    count = count > enough / steps ? enough : count * steps;
  }
  return std::clamp<int64_t>((count + tilesPerBlock - 1) / tilesPerBlock, 1, most);
}

layout::Box Plan::bufferBox(uint32_t buffer, int rank) const {
  return buffers[buffer].sharding.boxOf(mesh, buffers[buffer].shape, rank);
}

layout::Box Plan::tensorBox(uint32_t tensor, int rank) const {
  return tensors[tensor].sharding.boxOf(mesh, bufferOf(tensor).shape, rank);
}

layout::ExchangePlace Plan::placeOf(const MoveInfo &move) const {
  auto memoryOf = [&](uint32_t tensor) {
    const BufferInfo &buffer = bufferOf(tensor);
    // A mapped constant lies there whole.
    return layout::TensorMemory{isMapped(buffer) ? layout::Sharding::replicated(static_cast<int>(buffer.shape.size()))
                                                 : buffer.sharding,
                                buffer.format};
  };
  return {mesh,
          bufferOf(move.source).shape,
          tensors[move.source].sharding,
          tensors[move.target].sharding,
          memoryOf(move.source),
          memoryOf(move.target)};
}

int64_t LoopEnd::evaluate(const int64_t *counts) const {
  int64_t sum = added;
  for (size_t i = 0; i < factors.size(); ++i)
    if (factors[i] != 0)
      sum += factors[i] * counts[i];
  return (std::max(std::max<int64_t>(sum, 0) / divisor, least) + step - 1) / step * step + beyond;
}

layout::Interval Plan::loopRange(const LoopInfo &loop, int rank) const {
  if (!loop.dim.isSplit())
    return {0, loop.extent};
  int coordinate = layout::linearCoordinate(mesh, loop.dim.axes, mesh.coordsOf(rank));
  return loop.dim.pieceAt(coordinate, loop.extent).canonical();
}
