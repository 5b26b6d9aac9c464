//===- PlanValidator.cpp - How parts of a plan must fit -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanValidator.h"

#include "StepParts.h"

#include "dovetail/Calls/AttentionForm.h"
#include "dovetail/Layout/Exchange.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

std::string shapeStr(const std::vector<int64_t> &shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

/// Behind all dimensions.
constexpr size_t noWindow = std::numeric_limits<size_t>::max();

class Validator {
public:
  explicit Validator(const Plan &plan) : plan(plan) {}

  absl::Status validate();

private:
  absl::Status checkTensor(size_t index);
  absl::Status checkBounded(const std::string &where, int32_t count, int64_t extent);
  absl::Status checkBoundedLoops(const std::string &where, const std::vector<LoopInfo> &loops);
  absl::Status checkStep(const std::string &where, const StepInfo &step, bool inPrologue);
  /// An operand of a library call.
  struct Read {
    uint32_t tensor;
    const Access &access;
    size_t firstWindow; ///< Dimensions from here on may have elements that no iteration reads.
  };
  absl::Status checkLoops(const std::string &where, const std::vector<LoopInfo> &loops, uint32_t output, size_t sums,
                          size_t taps, std::initializer_list<Read> reads);
  absl::Status checkConvolution(const std::string &where, const ConvolutionCall &call);
  absl::Status checkMatMul(const std::string &where, const MatMulCall &call);
  bool mayWriteOver(const MatMulCall &call) const;
  absl::Status checkPool(const std::string &where, const PoolCall &call);
  absl::Status checkAttention(const std::string &where, const AttentionCall &call);
  absl::Status checkTransform(const std::string &where, const TransformCall &call);
  absl::Status checkMove(const std::string &where, const MoveInfo &move);
  absl::Status checkExchange(const std::string &where, const ExchangeCall &call);
  absl::Status checkCondition(const std::string &where, uint32_t condition, bool inPrologue);
  absl::Status checkPostOps(const std::string &where, const std::vector<PostOpInfo> &ops, uint32_t output);
  absl::Status checkCounts();
  absl::Status checkFeedback(const PortInfo &input);
  absl::Status checkFedLengths();
  const std::vector<int64_t> &shape(uint32_t tensor) const { return plan.bufferOf(tensor).shape; }
  bool sameType(uint32_t a, uint32_t b) const { return plan.bufferOf(a).type == plan.bufferOf(b).type; }

  absl::Status checkRead(const std::string &where, const StepInfo &step, uint32_t tensor) const;
  void endSteps(size_t begin);

  /// What is in a buffer: nothing, something if steps have been chosen that may not be, or something.
  enum class Written { No, Chosen, Yes };

  const Plan &plan;
  std::vector<Written> written; ///< For each buffer.
  /// The same where the repeats and choices began that have not ended: there may be no iteration that writes anything.
  std::vector<std::vector<Written>> writtenBefore;
};

} // namespace

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

absl::Status Validator::checkPostOps(const std::string &where, const std::vector<PostOpInfo> &ops, uint32_t output) {
  const std::vector<int64_t> &result = shape(output);
  for (const PostOpInfo &op : ops) {
    if (!op.readsTensor())
      continue;
    const std::vector<int64_t> &operand = shape(op.tensor);
    bool fits = operand.size() <= result.size() && sameType(op.tensor, output);
    for (size_t i = 0; fits && i < operand.size(); ++i) {
      int64_t extent = operand[operand.size() - 1 - i];
      fits = extent == 1 || extent == result[result.size() - 1 - i];
    }
    if (!fits)
      return damaged(where, " has a post-op whose operand ", shapeStr(operand), " does not broadcast to ",
                     shapeStr(result));
  }
  return absl::OkStatus();
}

/// The loops of a library call: the dimensions of `output`, then `sums` sums, then `taps` taps. Its operands have the
/// extents and types that it goes through.
absl::Status Validator::checkLoops(const std::string &where, const std::vector<LoopInfo> &loops, uint32_t output,
                                   size_t sums, size_t taps, std::initializer_list<Read> reads) {
  size_t rank = shape(output).size();
  std::vector<int64_t> extents;
  layout::Sharding sharding;
  for (const LoopInfo &loop : loops) {
    extents.push_back(loop.extent);
    sharding.dims.push_back(loop.dim);
  }
  if (loops.size() != rank + sums + taps || !std::equal(shape(output).begin(), shape(output).end(), extents.begin()))
    return damaged(where, " has loops of ", shapeStr(extents), ", which do not go through its result, ",
                   shapeStr(shape(output)));
  for (const Read &read : reads) {
    ElementType type = plan.bufferOf(read.tensor).type;
    bool isByte = type == ElementType::I8 || type == ElementType::U8;
    // CPUs have products of integers of 8 bits in i32.
    bool isProduct = sums > 0 && isByte && plan.bufferOf(output).type == ElementType::I32 && !plan.isForDevice();
    if (!sameType(read.tensor, output) && !isProduct)
      return damaged(where, " has operands of different types");
    if (!calls::fits(read.access, shape(read.tensor), extents, read.firstWindow))
      return damaged(where, " reads a tensor of ", shapeStr(shape(read.tensor)), " as one of other extents");
  }
  if (std::string why; !sharding.verify(plan.mesh, extents, &why))
    return damaged(where, " has loops with a wrong sharding: ", why);
  const layout::Sharding &result = plan.tensors[output].sharding;
  layout::Sharding parallel;
  parallel.dims.assign(sharding.dims.begin(), sharding.dims.begin() + static_cast<std::ptrdiff_t>(rank));
  if (!result.contains(plan.mesh, shape(output), parallel))
    for (int number = 0, ranks = plan.mesh.numRanks(); number < ranks; ++number)
      if (!plan.tensorBox(output, number).contains(parallel.boxOf(plan.mesh, shape(output), number)))
        return damaged(where, " computes elements that are outside of its result on rank ", number);
  for (size_t dim = rank + sums; dim < loops.size(); ++dim)
    if (loops[dim].dim.isSplit())
      return damaged(where, " splits loop ", dim, ", which is a tap");
  for (size_t dim = rank; dim < rank + sums; ++dim) {
    if (!loops[dim].dim.isCuts(extents[dim]))
      return damaged(where, " does not count each term of its sum once");
    for (int axis : loops[dim].dim.axes)
      if (result.partialKind != layout::ReductionKind::Sum ||
          std::find(result.partialAxes.begin(), result.partialAxes.end(), axis) == result.partialAxes.end())
        return damaged(where, " splits its sum over a mesh axis over which its result is not a partial sum");
  }
  return absl::OkStatus();
}

absl::Status Validator::checkConvolution(const std::string &where, const ConvolutionCall &call) {
  if (absl::Status status =
          checkLoops(where, call.loops, call.output, /*sums=*/1, call.form.windows.size(),
                     {{call.input, call.inputAccess, 2}, {call.weights, call.weightsAccess, noWindow}});
      !status.ok())
    return status;
  return checkPostOps(where, call.postOps, call.output);
}

/// Whether each row of the result is made of the same row of the first factor, and nothing else of it.
bool Validator::mayWriteOver(const MatMulCall &call) const {
  size_t rank = shape(call.output).size();
  if (plan.isForDevice() || call.aAccess.size() != rank || shape(call.a) != shape(call.output))
    return false;
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    if (!(call.aAccess[dim] == layout::AccessDim(layout::IndexExpr::loop(static_cast<int>(dim)))))
      return false;
  for (const PostOpInfo &op : call.postOps)
    if (op.readsTensor() && plan.tensors[op.tensor].buffer == plan.tensors[call.output].buffer)
      return false;
  return true;
}

absl::Status Validator::checkMatMul(const std::string &where, const MatMulCall &call) {
  if (absl::Status status = checkLoops(where, call.loops, call.output, /*sums=*/1, /*taps=*/0,
                                       {{call.a, call.aAccess, noWindow}, {call.b, call.bAccess, noWindow}});
      !status.ok())
    return status;
  const std::vector<int64_t> &b = shape(call.b);
  size_t rows = call.rowDims, rb = b.size();
  bool fits = rows < shape(call.output).size() && (rows == 1 || !call.form.transposesA);
  for (size_t i = 3; fits && i < rows + 2 && i <= rb; ++i)
    fits = b[rb - i] == 1;
  if (!fits)
    return damaged(where, " has rows of ", rows, " dimensions, on which the second operand ", shapeStr(b), " depends");
  return checkPostOps(where, call.postOps, call.output);
}

absl::Status Validator::checkPool(const std::string &where, const PoolCall &call) {
  return checkLoops(where, call.loops, call.output, /*sums=*/0, call.form.windows.size(),
                    {{call.input, call.inputAccess, 2}});
}

/// Whether each rank has one iteration of `parts` at most, and each iteration of `keys` belongs to one of these.
static bool isOfParts(const LoopInfo &parts, const LoopInfo &keys) {
  if (!parts.dim.isSplit())
    return parts.extent <= 1 && !keys.dim.isSplit();
  if (keys.dim.axes != parts.dim.axes || !keys.dim.isCuts(keys.extent) || !parts.dim.isCuts(parts.extent))
    return false;
  return std::equal(keys.dim.pieces.begin(), keys.dim.pieces.end(), parts.dim.pieces.begin(), parts.dim.pieces.end(),
                    [](const layout::Interval &own, const layout::Interval &part) {
                      return part.size() == 1 || (part.empty() && own.empty());
                    });
}

absl::Status Validator::checkAttention(const std::string &where, const AttentionCall &call) {
  std::vector<LoopInfo> loops = call.loops;
  if (call.isOfParts) {
    if (loops.size() < 5)
      return damaged(where, " gives parts, but has no loop over them");
    LoopInfo &keys = loops[loops.size() - 2];
    if (std::string why; !layout::Sharding{{keys.dim}, {}}.verify(plan.mesh, std::array{keys.extent}, &why))
      return damaged(where, " has parts with wrong keys: ", why);
    if (!isOfParts(loops.front(), keys))
      return damaged(where, " does not have each key in one part");
    keys.dim = {};
  }
  if (absl::Status status = checkLoops(where, loops, call.output, /*sums=*/0, /*taps=*/2, {}); !status.ok())
    return status;
  std::vector<int64_t> extents;
  for (const LoopInfo &loop : call.loops)
    extents.push_back(loop.extent);
  std::vector<calls::AccessDims> accesses;
  for (const auto &operand : call.operands())
    accesses.emplace_back(*operand.second);
  if (call.isOfParts) {
    int64_t &columns = extents[extents.size() - 3];
    if (columns <= calls::attentionPartColumns || loops[extents.size() - 3].dim.isSplit())
      return damaged(where, " gives parts without whole columns of values, scores and sums");
    if (calls::AttentionForm::find(accesses, extents)->columns != columns)
      return damaged(where, " gives parts of several heads in its columns");
    columns -= calls::attentionPartColumns;
  }
  for (const auto &[tensor, access] : call.operands()) {
    // Operands may be more than what is read of them.
    if (!calls::staysInside(*access, shape(tensor), extents))
      return damaged(where, " reads a tensor of ", shapeStr(shape(tensor)), " as one of other extents");
    if (static_cast<int64_t>(tensor) != call.mask && !sameType(tensor, call.output))
      return damaged(where, " has operands of different types");
  }
  for (const auto &[tensor, access] : call.operands())
    if (plan.tensors[tensor].buffer == plan.tensors[call.output].buffer &&
        (access != &call.queryAccess || !calls::mayWriteOverQueries(accesses, extents)))
      return damaged(where, " writes over its own operand");
  if (plan.isForDevice())
    return damaged(where, " is for CPUs only");
  if (plan.bufferOf(call.output).type != ElementType::F32)
    return damaged(where, " is not in f32");
  for (uint32_t tensor : {call.query, call.key, call.value, call.output})
    if (plan.bufferOf(tensor).format.isBlocked())
      return damaged(where, " has an operand or result in blocks");
  if (call.mask < 0)
    return absl::OkStatus();
  auto mask = static_cast<uint32_t>(call.mask);
  const BufferInfo &buffer = plan.bufferOf(mask);
  if (buffer.type != ElementType::F32 && buffer.type != ElementType::Bool)
    return damaged(where, " has a mask that is neither f32 nor of booleans");
  if (buffer.format.isBlocked())
    return damaged(where, " has a mask in blocks");
  return absl::OkStatus();
}

absl::Status Validator::checkTransform(const std::string &where, const TransformCall &call) {
  if (absl::Status status = checkLoops(where, call.loops, call.output, /*sums=*/2, /*taps=*/0,
                                       {{call.input, call.inputAccess, noWindow}});
      !status.ok())
    return status;
  if (!plan.isForDevice())
    return damaged(where, " is for devices only");
  ElementType type = plan.bufferOf(call.output).type;
  if (type != ElementType::F32 && type != ElementType::F64)
    return damaged(where, " is in neither f32 nor f64");
  if (call.isInverse ? call.form.readsReal : call.form.writesReal)
    return damaged(where,
                   call.isInverse ? " is inverse, but reads real numbers" : " writes real numbers, but is not inverse");
  size_t rank = shape(call.output).size();
  for (size_t loop = 0; loop < call.loops.size(); ++loop)
    if (call.loops[loop].dim.isSplit() && (loop == call.form.axis || loop + 1 >= rank))
      return damaged(where, " splits loop ", loop, ", which it transforms");
  for (uint32_t tensor : {call.input, call.output})
    if (plan.bufferOf(tensor).format.isBlocked())
      return damaged(where, " has an operand or result in blocks");
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
  if (!plan.bufferOf(move.source).format.hasBlocksOf(plan.bufferOf(move.target).format))
    return damaged(where, " is between memories of different blocks");
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
    // Devices copy, and do not write the zeros after the last element.
    if (const MemoryFormat &format = plan.bufferOf(call->target).format;
        plan.isForDevice() && format.isBlocked() && !format.hasBlocksOf(plan.bufferOf(call->source).format))
      return damaged(where, " copies into blocks on a device");
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
    if (plan.bufferOf(input.tensor).format.isBlocked())
      return damaged("input '", input.name, "' lies in blocks");
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
