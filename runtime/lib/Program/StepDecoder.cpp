//===- StepDecoder.cpp - Steps of plans, from FlatBuffers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanDecoder.h"

#include "dovetail/Text/SourceName.h"

#include <algorithm>
#include <array>

using namespace dovetail;
using namespace dovetail::runtime;

/// Of all indices of an operand.
static constexpr int maxTerms = 1000;
/// Of one library call, for one thread or all of them.
static constexpr int64_t maxCallBytes = int64_t(1) << 40;
/// More than any device has, for a block of threads.
static constexpr int64_t maxBlockThreads = 1024;
static constexpr int64_t maxSharedBytes = 1 << 20;

absl::Status Decoder::tensorIndex(const std::string &where, uint32_t index) {
  if (index >= plan.tensors.size())
    return damaged(where, " uses tensor ", index, " of ", plan.tensors.size());
  return absl::OkStatus();
}

absl::Status Decoder::checkEnd(const std::string &where, const LoopEnd &end) {
  auto isIn = [](int64_t number, int64_t least) { return number >= least && number <= maxExtent; };
  bool isPossible = isIn(end.divisor, 1) && isIn(end.step, 1) && isIn(end.least, 0) && isIn(end.beyond, 0) &&
                    isIn(end.added, -maxExtent) && end.factors.size() <= plan.counts.size();
  // No sum of these is too large for an integer.
  int64_t room = int64_t(1) << 62;
  for (size_t i = 0; isPossible && i < end.factors.size(); ++i) {
    int64_t factor = end.factors[i], bound = std::max<int64_t>(plan.counts[i].bound, 1);
    isPossible = factor == 0 || (plan.counts[i].isGiven && factor > 0 && factor <= room / bound);
    room -= isPossible ? factor * bound : 0;
  }
  return isPossible ? absl::OkStatus() : damaged(where, " has an impossible end");
}

absl::Status Decoder::decodeLoops(const std::string &where,
                                  const flatbuffers::Vector<flatbuffers::Offset<artifact::Loop>> &loops,
                                  std::vector<LoopInfo> &result) {
  for (const artifact::Loop *loop : loops) {
    LoopInfo info{loop->extent(), {}, loop->lookup(), loop->count()};
    RETURN_IF_ERROR(decodeDim(where, *loop->dim(), info.dim));
    if (info.extent < 0 || info.extent > maxExtent)
      return damaged(where, " has a loop of extent ", info.extent);
    if (const artifact::LoopEnd *end = loop->end()) {
      info.end = LoopEnd{{}, end->added(), end->divisor(), end->least(), end->step(), end->beyond()};
      if (end->factors())
        info.end->factors.assign(end->factors()->begin(), end->factors()->end());
      RETURN_IF_ERROR(checkEnd(absl::StrCat(where, ", loop ", result.size()), *info.end));
    }
    // A loop is checked as a tensor of one dimension would be.
    layout::Sharding sharding;
    sharding.dims.push_back(info.dim);
    if (std::string why; !sharding.verify(plan.mesh, std::array<int64_t, 1>{info.extent}, &why))
      return damaged(where, ", loop ", result.size(), ": ", why);
    result.push_back(std::move(info));
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeIndex(const std::string &where, const artifact::IndexExpr &source, size_t loops, int &terms,
                                  layout::IndexExpr &result) {
  auto isLarge = [](int64_t value) { return value < -maxExtent || value > maxExtent; };
  if (isLarge(source.constant()))
    return damaged(where, " reads at an impossible index ", source.constant());
  result = source.constant();
  if (!source.terms())
    return absl::OkStatus();
  for (const artifact::IndexTerm *term : *source.terms()) {
    if (++terms > maxTerms)
      return damaged(where, " reads at an index of more than ", maxTerms, " terms");
    if (isLarge(term->factor()) || term->divisor() < 1 || term->divisor() > maxExtent)
      return damaged(where, " reads at an index with an impossible factor ", term->factor(), " or divisor ",
                     term->divisor());
    layout::IndexExpr value;
    if (term->kind() == artifact::IndexTermKind::Loop) {
      if (term->loop() >= loops)
        return damaged(where, " reads at an index of loop ", term->loop(), " of ", loops);
      value = layout::IndexExpr::loop(static_cast<int>(term->loop()));
    } else {
      bool isQuotient = term->kind() == artifact::IndexTermKind::Quotient;
      if ((!isQuotient && term->kind() != artifact::IndexTermKind::Remainder) || !term->operand())
        return damaged(where, " reads at an index with an unknown term");
      RETURN_IF_ERROR(decodeIndex(where, *term->operand(), loops, terms, value));
      value = isQuotient ? value.floorDiv(term->divisor()) : value.mod(term->divisor());
    }
    result = result + value * term->factor();
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeAccess(const std::string &where, const artifact::Access &source,
                                   const std::vector<LoopInfo> &loops, Access &result) {
  int terms = 0;
  for (const artifact::AccessDim *dim : *source.dims()) {
    layout::AccessDim access;
    access.divisor = dim->divisor();
    if (access.divisor < 1 || access.divisor > maxExtent || result.size() == 64)
      return damaged(where, " reads at an index with an impossible divisor ", access.divisor);
    RETURN_IF_ERROR(decodeIndex(where, *dim->index(), loops.size(), terms, access.index));
    result.push_back(std::move(access));
  }
  return absl::OkStatus();
}

static std::vector<int64_t> extentsOf(const std::vector<LoopInfo> &loops) {
  std::vector<int64_t> extents;
  for (const LoopInfo &loop : loops)
    extents.push_back(loop.extent);
  return extents;
}

static absl::Status checkWindows(const std::string &where, const std::vector<layout::Window> &windows) {
  if (windows.size() > layout::maxWindows)
    return damaged(where, " has windows in ", windows.size(), " dimensions, but libraries have at most ",
                   layout::maxWindows);
  for (const layout::Window &window : windows)
    if (window.stride > layout::maxWindowStep || window.dilation > layout::maxWindowStep ||
        window.pad < -layout::maxWindowStep || window.pad > layout::maxWindowStep)
      return damaged(where, " has windows of an impossible stride ", window.stride, ", dilation ", window.dilation,
                     " or padding ", window.pad);
  return absl::OkStatus();
}

absl::Status Decoder::decodeKernel(const std::string &where, const artifact::KernelStep &step, KernelCall &call) {
  call.symbol = str(step.symbol());
  auto tensors = [&](const flatbuffers::Vector<uint32_t> *source, std::vector<uint32_t> &result) -> absl::Status {
    if (source)
      for (uint32_t tensor : *source) {
        RETURN_IF_ERROR(tensorIndex(where, tensor));
        result.push_back(tensor);
      }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(tensors(step.reads(), call.reads));
  RETURN_IF_ERROR(tensors(step.writes(), call.writes));
  if (step.loops())
    RETURN_IF_ERROR(decodeLoops(where, *step.loops(), call.loops));
  call.parallelLoop = step.parallel_loop();
  if (call.parallelLoop < -1 || call.parallelLoop >= static_cast<int64_t>(call.loops.size()))
    return damaged(where, " divides loop ", call.parallelLoop, " of ", call.loops.size());
  if (step.skip_loops())
    for (uint32_t loop : *step.skip_loops()) {
      if (loop >= call.loops.size())
        return damaged(where, " looks at loop ", loop, " of ", call.loops.size());
      call.skipLoops.push_back(loop);
    }
  call.firstCheck = plan.numChecks;
  if (step.checks())
    for (const artifact::IndexCheck *check : *step.checks()) {
      if (check->extent() < -1 || check->extent() > maxExtent)
        return damaged(where, " checks indices of a dimension of extent ", check->extent());
      if (check->tensor() >= 0)
        RETURN_IF_ERROR(tensorIndex(where, static_cast<uint32_t>(check->tensor())));
      call.checks.push_back({str(check->node()), check->extent(), check->dim(), check->is_unsigned(), check->tensor()});
    }
  plan.numChecks += call.checks.size();
  if (const artifact::Blocks *blocks = step.blocks())
    RETURN_IF_ERROR(decodeBlocks(where, *blocks, call));
  if (call.blocks.has_value() != plan.isForDevice())
    return damaged(where,
                   plan.isForDevice() ? " does not say how it is launched on target '" : " has blocks on target '",
                   plan.target, "'");
  return absl::OkStatus();
}

absl::Status Decoder::decodeBlocks(const std::string &where, const artifact::Blocks &blocks, KernelCall &call) {
  BlockShape shape;
  if (blocks.threads() < 1 || blocks.threads() > maxBlockThreads)
    return damaged(where, " has blocks of ", blocks.threads(), " threads");
  if (blocks.tiles_per_block() < 1 || blocks.tiles_per_block() > maxExtent)
    return damaged(where, " has blocks of ", blocks.tiles_per_block(), " tiles");
  if (blocks.shared_bytes() < 0 || blocks.shared_bytes() > maxSharedBytes)
    return damaged(where, " has blocks with ", blocks.shared_bytes(), " bytes of shared memory");
  shape.threads = blocks.threads();
  shape.tilesPerBlock = blocks.tiles_per_block();
  shape.sharedBytes = blocks.shared_bytes();
  std::vector<bool> seen(call.loops.size());
  if (blocks.tiles())
    for (const artifact::TileLoop *tile : *blocks.tiles()) {
      if (tile->loop() >= call.loops.size() || seen[tile->loop()])
        return damaged(where, " counts tiles over loop ", tile->loop(), " of ", call.loops.size(),
                       tile->loop() < call.loops.size() ? " twice" : "");
      if (tile->step() < 1 || tile->step() > maxExtent)
        return damaged(where, " counts tiles in steps of ", tile->step());
      seen[tile->loop()] = true;
      shape.tiles.push_back({tile->loop(), tile->step()});
    }
  call.blocks = std::move(shape);
  return absl::OkStatus();
}

absl::Status Decoder::decodePostOps(const std::string &where,
                                    const flatbuffers::Vector<flatbuffers::Offset<artifact::PostOp>> *ops,
                                    std::vector<PostOpInfo> &result) {
  if (!ops)
    return absl::OkStatus();
  for (const artifact::PostOp *op : *ops) {
    std::optional<PostOpKind> kind = fromSchema(op->kind());
    if (!kind)
      return damaged(where, " has an unknown post-op");
    PostOpInfo info{*kind, op->tensor(), op->alpha(), op->beta()};
    if (info.readsTensor()) {
      if (info.tensor < 0)
        return damaged(where, " has a post-op without its tensor");
      RETURN_IF_ERROR(tensorIndex(where, static_cast<uint32_t>(info.tensor)));
    }
    result.push_back(info);
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeLibrary(const std::string &where, const artifact::LibraryStep &step, StepAction &action) {
  auto check = [&](std::initializer_list<uint32_t> tensors) -> absl::Status {
    for (uint32_t tensor : tensors)
      RETURN_IF_ERROR(tensorIndex(where, tensor));
    return absl::OkStatus();
  };
  auto isNone = [&](const char *what) { return damaged(where, " reads its operands as no ", what, " does"); };
  if (const artifact::Convolution *source = step.call_as_Convolution()) {
    ConvolutionCall call{source->input(), source->weights(), source->output(), {}, {}, {}, {}, {}};
    RETURN_IF_ERROR(check({call.input, call.weights, call.output}));
    RETURN_IF_ERROR(decodePostOps(where, source->post_ops(), call.postOps));
    RETURN_IF_ERROR(decodeLoops(where, *source->loops(), call.loops));
    RETURN_IF_ERROR(decodeAccess(where, *source->input_access(), call.loops, call.inputAccess));
    RETURN_IF_ERROR(decodeAccess(where, *source->weights_access(), call.loops, call.weightsAccess));
    auto form = calls::ConvolutionForm::find(call.inputAccess, call.weightsAccess, extentsOf(call.loops));
    if (!form)
      return isNone("convolution");
    call.form = *std::move(form);
    RETURN_IF_ERROR(checkWindows(where, call.form.windows));
    std::optional<ConvolutionAlgorithm> algorithm = fromSchema(source->algorithm());
    if (!algorithm)
      return damaged(where, " has algorithm number ", static_cast<int>(source->algorithm()), ", which does not exist");
    const calls::AlgorithmEntry *entry = calls::findAlgorithm(*algorithm);
    if (entry && !entry->applies(call.form))
      return damaged(where, " is by algorithm '", entry->name, "', but no convolution ", entry->condition);
    call.algorithm = *algorithm;
    action = std::move(call);
  } else if (const artifact::MatMul *source = step.call_as_MatMul()) {
    MatMulCall call{source->a(), source->b(), source->output(), {}, {}, {}, {}, {}};
    if (source->row_dims() < 1 || source->row_dims() > 64)
      return damaged(where, " has rows of ", source->row_dims(), " dimensions");
    call.rowDims = static_cast<int>(source->row_dims());
    RETURN_IF_ERROR(check({call.a, call.b, call.output}));
    RETURN_IF_ERROR(decodePostOps(where, source->post_ops(), call.postOps));
    RETURN_IF_ERROR(decodeLoops(where, *source->loops(), call.loops));
    RETURN_IF_ERROR(decodeAccess(where, *source->a_access(), call.loops, call.aAccess));
    RETURN_IF_ERROR(decodeAccess(where, *source->b_access(), call.loops, call.bAccess));
    auto form = calls::ProductForm::find(call.aAccess, call.bAccess, extentsOf(call.loops));
    if (!form)
      return isNone("matrix product");
    if (std::max(call.aAccess.size(), call.bAccess.size()) > layout::maxProductDims)
      return damaged(where, " is a product of more than ", layout::maxProductDims,
                     " dimensions, which libraries do not have");
    call.form = *form;
    action = std::move(call);
  } else if (const artifact::Pool *source = step.call_as_Pool()) {
    std::optional<PoolKind> kind = fromSchema(source->kind());
    if (!kind)
      return damaged(where, " has an unknown kind of pooling");
    PoolCall call{*kind, source->input(), source->output(), {}, {}, {}};
    RETURN_IF_ERROR(check({call.input, call.output}));
    RETURN_IF_ERROR(decodeLoops(where, *source->loops(), call.loops));
    RETURN_IF_ERROR(decodeAccess(where, *source->input_access(), call.loops, call.inputAccess));
    auto form = calls::PoolForm::find(call.inputAccess, extentsOf(call.loops));
    if (!form)
      return isNone("pool");
    call.form = *std::move(form);
    RETURN_IF_ERROR(checkWindows(where, call.form.windows));
    action = std::move(call);
  } else if (const artifact::Attention *source = step.call_as_Attention()) {
    AttentionCall call{
        source->query(), source->key(), source->value(), source->output(), source->mask(), {}, {}, {}, {}, {}};
    RETURN_IF_ERROR(check({call.query, call.key, call.value, call.output}));
    RETURN_IF_ERROR(decodeLoops(where, *source->loops(), call.loops));
    RETURN_IF_ERROR(decodeAccess(where, *source->query_access(), call.loops, call.queryAccess));
    RETURN_IF_ERROR(decodeAccess(where, *source->key_access(), call.loops, call.keyAccess));
    RETURN_IF_ERROR(decodeAccess(where, *source->value_access(), call.loops, call.valueAccess));
    if (call.mask >= 0) {
      RETURN_IF_ERROR(tensorIndex(where, static_cast<uint32_t>(call.mask)));
      if (!source->mask_access())
        return damaged(where, " has a mask, but does not say where it is read");
      RETURN_IF_ERROR(decodeAccess(where, *source->mask_access(), call.loops, call.maskAccess));
    }
    std::vector<calls::AccessDims> accesses;
    for (const auto &operand : call.operands())
      accesses.emplace_back(*operand.second);
    if (!calls::isAttention(accesses, extentsOf(call.loops)))
      return isNone("attention");
    call.scale = source->scale();
    call.fill = source->fill();
    call.isOfParts = source->parts();
    action = std::move(call);
  } else if (const artifact::Transform *source = step.call_as_Transform()) {
    TransformCall call{source->input(), source->output(), {}, {}, {}, source->inverse()};
    RETURN_IF_ERROR(check({call.input, call.output}));
    RETURN_IF_ERROR(decodeLoops(where, *source->loops(), call.loops));
    RETURN_IF_ERROR(decodeAccess(where, *source->input_access(), call.loops, call.inputAccess));
    auto form = calls::TransformForm::find(call.inputAccess, extentsOf(call.loops));
    if (!form)
      return isNone("transform");
    call.form = *form;
    action = std::move(call);
  } else if (const artifact::Reorder *source = step.call_as_Reorder()) {
    ReorderCall call{source->source(), source->target()};
    RETURN_IF_ERROR(check({call.source, call.target}));
    action = call;
  } else {
    return damaged(where, " is an unknown library call");
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeExchange(const std::string &where, const artifact::ExchangeStep &step, StepAction &action) {
  std::optional<layout::ExchangeKind> kind = fromSchema(step.kind());
  if (!kind)
    return damaged(where, " is an exchange of an unknown kind ", static_cast<int>(step.kind()));
  ExchangeCall call{{}, *kind};
  for (const artifact::Move *source : *step.moves()) {
    MoveInfo move{source->source(), source->target(), {}};
    RETURN_IF_ERROR(tensorIndex(where, move.source));
    RETURN_IF_ERROR(tensorIndex(where, move.target));
    RETURN_IF_ERROR(decodeOrder(absl::StrCat(where, " has messages in an order"), *source->order(),
                                plan.bufferOf(move.source).shape.size(), move.order));
    call.moves.push_back(std::move(move));
  }
  if (call.moves.empty())
    return damaged(where, " is an exchange that moves nothing");
  action = std::move(call);
  return absl::OkStatus();
}

absl::Status Decoder::decodeWait(const std::string &where, const artifact::WaitStep &step,
                                 const std::vector<StepInfo> &before, Waited &waited, WaitCall &call) {
  auto decode = [&](const flatbuffers::Vector<uint32_t> *source, std::vector<bool> &seen,
                    std::vector<uint32_t> &result) -> absl::Status {
    if (!source)
      return absl::OkStatus();
    seen.resize(before.size());
    for (uint32_t position : *source) {
      if (position >= before.size() || !std::holds_alternative<ExchangeCall>(before[position].action))
        return damaged(where, " waits for step ", position, ", which is not an exchange before it");
      if (std::any_of(before.begin() + position, before.end(),
                      [](const StepInfo &other) { return other.isBoundary(); }))
        return damaged(where, " waits for step ", position, " of another iteration");
      // Channels are joined and fenced once for each run.
      if (seen[position])
        return damaged(where, " waits for step ", position, " a second time");
      seen[position] = true;
      result.push_back(position);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(decode(step.complete(), waited.complete, call.complete));
  RETURN_IF_ERROR(decode(step.read(), waited.read, call.read));
  if (call.complete.empty() && call.read.empty())
    return damaged(where, " waits for nothing");
  return absl::OkStatus();
}

absl::Status Decoder::decodeMemory(const std::string &where, const artifact::CallMemory &memory, CallMemory &result) {
  auto decode = [&](const flatbuffers::Vector<int64_t> &source, std::vector<int64_t> &bytes) -> absl::Status {
    if (source.size() != 1 && static_cast<int64_t>(source.size()) != plan.mesh.numRanks())
      return damaged(where, " has bounds of its memory for ", source.size(), " ranks");
    if (!isAligned(&source))
      return damaged(where, " has bounds of its memory that are misaligned");
    for (int64_t value : source) {
      if (value < 0 || value > maxCallBytes)
        return damaged(where, " bounds its memory by an impossible number of bytes, ", value);
      bytes.push_back(value);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(decode(*memory.packed(), result.packed));
  RETURN_IF_ERROR(decode(*memory.scratch(), result.scratch));
  RETURN_IF_ERROR(decode(*memory.thread_scratch(), result.threadScratch));
  return decode(*memory.thread_packed(), result.threadPacked);
}

absl::Status Decoder::decodeDivision(const std::string &where, const artifact::Division &division, const StepInfo &step,
                                     CallDivision &result) {
  result = {division.loop(), division.step(), division.grain()};
  if (result.step < 1 || result.grain < result.step || result.grain > maxExtent)
    return damaged(where, " is divided into parts of ", result.grain, " iterations at multiples of ", result.step);
  if (step.writes().empty() || result.loop >= plan.bufferOf(step.writes()[0]).shape.size())
    return damaged(where, " divides loop ", result.loop, ", which is not a dimension of its output");
  return absl::OkStatus();
}

absl::Status Decoder::decodeSteps(const char *list,
                                  const flatbuffers::Vector<flatbuffers::Offset<artifact::Step>> &steps,
                                  std::vector<StepInfo> &result) {
  Waited waited;
  std::vector<uint32_t> open; // Repeats and choices that have not ended.
  for (const artifact::Step *step : steps) {
    StepInfo info;
    info.name = str(step->name());
    info.source = text::clean(str(step->source()), text::maxSourceName);
    std::string where = absl::StrCat(list, " ", result.size(), " '", info.name, "'");
    if (const artifact::KernelStep *kernel = step->action_as_KernelStep()) {
      KernelCall call;
      RETURN_IF_ERROR(decodeKernel(where, *kernel, call));
      info.action = std::move(call);
    } else if (const artifact::LibraryStep *library = step->action_as_LibraryStep()) {
      RETURN_IF_ERROR(decodeLibrary(where, *library, info.action));
      if (library->memory())
        RETURN_IF_ERROR(decodeMemory(where, *library->memory(), info.memory.emplace()));
      if (library->division())
        RETURN_IF_ERROR(decodeDivision(where, *library->division(), info, info.division.emplace()));
      if (!info.memory && !std::holds_alternative<ReorderCall>(info.action))
        return damaged(where, " does not bound its memory");
    } else if (const artifact::ExchangeStep *exchange = step->action_as_ExchangeStep()) {
      RETURN_IF_ERROR(decodeExchange(where, *exchange, info.action));
    } else if (const artifact::WaitStep *wait = step->action_as_WaitStep()) {
      WaitCall call;
      RETURN_IF_ERROR(decodeWait(where, *wait, result, waited, call));
      info.action = std::move(call);
    } else if (const artifact::RepeatStep *repeat = step->action_as_RepeatStep()) {
      RETURN_IF_ERROR(tensorIndex(where, repeat->condition()));
      open.push_back(static_cast<uint32_t>(result.size()));
      info.action = RepeatCall{repeat->condition(), 0};
    } else if (const artifact::ChooseStep *choose = step->action_as_ChooseStep()) {
      RETURN_IF_ERROR(tensorIndex(where, choose->condition()));
      open.push_back(static_cast<uint32_t>(result.size()));
      info.action = ChooseCall{choose->condition(), choose->when(), 0};
    } else if (step->action_as_EndStep()) {
      if (open.empty())
        return damaged(where, " ends no steps that are repeated or chosen");
      auto end = static_cast<uint32_t>(result.size());
      if (auto *repeat = std::get_if<RepeatCall>(&result[open.back()].action))
        repeat->end = end;
      else
        std::get<ChooseCall>(result[open.back()].action).end = end;
      info.action = EndCall{open.back()};
      open.pop_back();
    } else {
      return damaged(where, " is of an unknown kind");
    }
    result.push_back(std::move(info));
  }
  if (!open.empty())
    return damaged(list, " ", open.back(), " '", result[open.back()].name, "' repeats or chooses steps without an end");
  return absl::OkStatus();
}
