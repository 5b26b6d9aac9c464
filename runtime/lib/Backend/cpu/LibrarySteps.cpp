//===- LibrarySteps.cpp - Steps done by oneDNN -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"

#include "../../Memory/Alignment.h"
#include "../../Session/Backend.h"
#include "../common/ConvolutionChannels.h"
#include "../common/ConvolutionGeometry.h"
#include "../common/ProductGeometry.h"
#include "EndingCall.h"
#include "PostOps.h"

#include "dovetail/Layout/Cuts.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

absl::Status LibraryStep::prepare(int64_t packedBytes, int64_t scratchBytes) {
  packed = packedBytes;
  scratch = stagingBytes() + scratchBytes;
  CallBudget budget(packedBytes, scratchBytes);
  absl::Status status = budget.explain(create(budget));
  used = stagingBytes() + budget.scratchUse();
  return status;
}

/// Bytes of the weights that a rank needs, as they were if nothing lay between them; -1 if that does not work out.
static int64_t weightBytes(const RankMemory &context, const ConvolutionCall &call) {
  int64_t bytes = 0;
  for (const ConvolutionChannels &channels : planConvolutionChannels(call, context.loopBox(call.loops))) {
    absl::StatusOr<ConvolutionGeometry> geometry = ConvolutionGeometry::plan(context, call, channels);
    if (!geometry.ok())
      return -1;
    bytes += alignedSize(geometry->weightsBox.volume() * elementSize(context.memory(call.weights).type));
  }
  return bytes;
}
static int64_t weightBytes(const RankMemory &context, const MatMulCall &call) {
  absl::StatusOr<ProductGeometry> geometry = ProductGeometry::plan(context, call, context.loopBox(call.loops));
  return geometry.ok() ? alignedSize(geometry->bBox.volume() * elementSize(context.memory(call.b).type)) : -1;
}

std::optional<uint32_t> dovetail::runtime::hostPackedTensor(const RankMemory &context, const StepInfo &step) {
  auto packed = [&](const auto &call, uint32_t weights) -> std::optional<uint32_t> {
    if (!step.memory || !context.isConstant(weights) || context.resultBox(call.loops, call.output).empty())
      return std::nullopt;
    std::vector<uint32_t> reads = step.reads();
    // Where the library wants nothing else, weights are copied, which the plan must have memory for.
    int64_t bytes = weightBytes(context, call);
    bool fits = bytes >= 0 && bytes <= alignedSize(step.memory->packedBytes(context.rank));
    return fits && std::count(reads.begin(), reads.end(), weights) == 1 ? std::optional(weights) : std::nullopt;
  };
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return packed(*call, call->weights);
  if (const auto *call = std::get_if<MatMulCall>(&step.action))
    return packed(*call, call->b);
  return std::nullopt;
}

/// Whether weights must be packed or copied when a session starts, as their memory is another value's afterwards.
static WeightUse weightUse(const RankMemory &context, const StepInfo &step, uint32_t weights, bool inPrologue) {
  if (inPrologue || !context.isConstant(weights))
    return WeightUse::Changing;
  bool isCopied = context.plan.bufferOf(weights).kind == BufferKind::Persistent && hostPackedTensor(context, step);
  return isCopied ? WeightUse::Copied : WeightUse::Constant;
}

namespace {

using Parts = std::vector<std::unique_ptr<LibraryStep>>;

/// The parts of a call, done by the threads of a rank, each of which does several that follow each other.
class DividedStep : public StepExecutor {
public:
  /// `planned`: the plan's bounds. Parts that were given more are given it.
  DividedStep(Parts steps, size_t lanes, ThreadPool &pool, CallBytes planned)
      : parts(std::move(steps)), outcomes(lanes), pool(pool), planned(planned) {}

  int64_t scratchBytes() const override { return std::max(planned.scratch, laneBytes(&LibraryStep::scratchBytes)); }
  int64_t scratchUse() const override { return laneBytes(&LibraryStep::scratchUse); }
  int64_t packedBytes() const override { return std::max(planned.packed, packedUse()); }
  int64_t excessBytes() const override { return scratchBytes() - planned.scratch + packedBytes() - planned.packed; }
  int64_t packedUse() const override {
    int64_t bytes = 0;
    for (const auto &part : parts)
      bytes += part->packedUse();
    return bytes;
  }
  /// What is packed lies part after part, and each part says of its own which weights these are, and how they are
  /// packed: so nobody else has the same key, unless it has the same bytes. Parts that use what others pack have none.
  std::string packedKey() const override {
    std::string keys;
    for (const auto &part : parts) {
      std::string key = part->packedKey();
      if (part->packedUse() > 0 && key.empty())
        return {};
      keys += key;
    }
    return keys;
  }
  std::string implementation() const override { return parts.front()->implementation(); }
  bool isReference() const override {
    return std::any_of(parts.begin(), parts.end(), [](const auto &part) { return part->isReference(); });
  }
  void setPackedMemory(std::byte *memory) override {
    for (const auto &part : parts) {
      part->setPackedMemory(memory);
      memory += part->packedUse();
    }
  }
  absl::Status bind(std::byte *scratch) override {
    for (size_t lane = 0; lane < outcomes.size(); ++lane) {
      for (size_t part = firstPart(lane); part < firstPart(lane + 1); ++part)
        if (absl::Status status = parts[part]->bind(scratch); !status.ok())
          return status;
      scratch += laneBytes(lane, &LibraryStep::scratchBytes);
    }
    return absl::OkStatus();
  }
  absl::Status pack() override {
    return runLanes([](void *self, int lane) {
      static_cast<DividedStep *>(self)->runLane(lane, [](LibraryStep &part) { return part.pack(); });
    });
  }
  absl::Status run() override {
    return runLanes([](void *self, int lane) {
      static_cast<DividedStep *>(self)->runLane(lane, [](LibraryStep &part) { return part.run(); });
    });
  }

private:
  size_t firstPart(size_t lane) const { return parts.size() * lane / outcomes.size(); }
  /// The most `bytes` of a part of a lane: these take turns.
  int64_t laneBytes(size_t lane, int64_t (LibraryStep::*bytes)() const) const {
    int64_t most = 0;
    for (size_t part = firstPart(lane); part < firstPart(lane + 1); ++part)
      most = std::max(most, ((*parts[part]).*bytes)());
    return alignedSize(most);
  }
  /// The same of all lanes.
  int64_t laneBytes(int64_t (LibraryStep::*bytes)() const) const {
    int64_t sum = 0;
    for (size_t lane = 0; lane < outcomes.size(); ++lane)
      sum += laneBytes(lane, bytes);
    return sum;
  }
  template <typename Body> void runLane(int lane, Body body) {
    outcomes[lane] = absl::OkStatus();
    for (size_t part = firstPart(lane); part < firstPart(lane + 1) && outcomes[lane].ok(); ++part)
      outcomes[lane] = body(*parts[part]);
  }
  absl::Status runLanes(ThreadPool::Body body) {
    pool.run(static_cast<int>(outcomes.size()), body, this);
    for (const absl::Status &outcome : outcomes)
      if (!outcome.ok())
        return outcome;
    return absl::OkStatus();
  }

  Parts parts;
  std::vector<absl::Status> outcomes; ///< Of the last run of each lane.
  ThreadPool &pool;
  CallBytes planned;
};

/// What divided and undivided calls look like on one rank, before the library is asked.
struct CallPlan {
  Parts whole;            ///< One, for a single thread but where kernels divide it.
  Parts divided;          ///< None where the call is not divided.
  size_t lanes = 0;       ///< How many threads do the parts.
  bool isInPlace = false; ///< Only in parts: the result of each is copied over what it has read.
  /// What each part may take in scratch memory besides its staging, and in packed weights where all have their own.
  int64_t scratchShare = 0, packedShare = 0;
  int64_t wholeScratch = 0, wholePacked = 0; ///< The same of the whole.
  CallPieces pieces;                         ///< Of a call whose loops end.
  int pieceLanes = 1;                        ///< How many threads do these,
  int64_t pieceScratch = 0;                  ///< and what each may take besides the staging.
  CallBytes bytes;                           ///< Of the step, whichever of these is done.
};

/// The iterations of each part.
std::vector<Box> divide(const Box &loops, const CallDivision &division, int threads) {
  Interval range = loops[static_cast<int>(division.loop)];
  int64_t count = std::min<int64_t>(threads, range.size() / division.grain);
  std::vector<Box> parts;
  if (count < 2)
    return parts;
  // The last step may be cut short.
  std::vector<int64_t> cuts = layout::balancedCuts((range.size() + division.step - 1) / division.step, count);
  for (int64_t part = 0; part < count; ++part) {
    parts.push_back(loops);
    parts.back()[static_cast<int>(division.loop)] = {range.lo + cuts[part] * division.step,
                                                     std::min(range.lo + cuts[part + 1] * division.step, range.hi)};
  }
  return parts;
}

/// Whether kernels of the runtime's own do the call. They divide it themselves.
bool hasOwnKernels(const StepAction &action) {
  if (std::holds_alternative<AttentionCall>(action))
    return true;
  const auto *call = std::get_if<ConvolutionCall>(&action);
  return call && call->algorithm != ConvolutionAlgorithm::Library;
}

/// Rows of a product that are computed before they are written over those of the first factor: as many as a cache near
/// the core holds.
constexpr int64_t bytesInPlace = 512 << 10;

/// Parts of a product that writes over its first factor.
std::vector<Box> divideInPlace(const RankMemory &context, const MatMulCall &call, const Box &loops) {
  // Dimensions that are the rows of one product have nothing between them as long as the first ones are divided.
  int last = loops.rank() - 2, loop = last - call.rowDims;
  while (loop < last - 1 && loops[loop].size() == 1)
    ++loop;
  int64_t bytes = elementSize(context.memory(call.output).type);
  for (int dim = 0; dim <= last; ++dim)
    bytes *= loops[dim].size();
  Interval range = loops[loop];
  int64_t count = std::clamp<int64_t>((bytes + bytesInPlace - 1) / bytesInPlace, 1, range.size());
  std::vector<Box> parts(count, loops);
  for (int64_t part = 0; part < count; ++part)
    parts[part][loop] = {range.lo + range.size() * part / count, range.lo + range.size() * (part + 1) / count};
  return parts;
}

/// Whether parts of the call may run at the same time: none reads what another writes.
template <typename Call> bool isDivisible(const RankMemory &context, const Call &call, std::vector<uint32_t> operands) {
  for (uint32_t operand : operands)
    if (context.plan.tensors[operand].buffer == context.plan.tensors[call.output].buffer)
      return false;
  if constexpr (requires { call.postOps; })
    return !PostOps::needsStaging(context, call.postOps, call.output);
  return true;
}

std::unique_ptr<LibraryStep> makePart(const RankMemory &context, const StepInfo &step, const Box &loops,
                                      bool inPrologue, ThreadPool *threads) {
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return makeConvolution(context, *call, loops, weightUse(context, step, call->weights, inPrologue), threads);
  if (const auto *call = std::get_if<MatMulCall>(&step.action))
    return makeMatMul(context, *call, loops, weightUse(context, step, call->b, inPrologue));
  if (const auto *call = std::get_if<AttentionCall>(&step.action))
    return makeAttention(context, *call, loops, threads);
  return makePool(context, std::get<PoolCall>(step.action), loops);
}

/// The loops of a call, and the part of them that a rank does.
struct CallLoops {
  const std::vector<LoopInfo> &infos;
  uint32_t output; ///< The tensor of the result.
  Box box;
  bool isDivisible;
};

/// Nothing when the rank has nothing to do.
std::optional<CallLoops> loopsOf(const RankMemory &context, const StepAction &action) {
  auto get = [&](const auto &call, std::vector<uint32_t> operands) -> std::optional<CallLoops> {
    if (context.resultBox(call.loops, call.output).empty())
      return std::nullopt;
    return CallLoops{call.loops, call.output, context.loopBox(call.loops),
                     isDivisible(context, call, std::move(operands))};
  };
  if (const auto *call = std::get_if<ConvolutionCall>(&action))
    return get(*call, {call->input, call->weights});
  if (const auto *call = std::get_if<MatMulCall>(&action))
    return get(*call, {call->a, call->b});
  if (const auto *call = std::get_if<AttentionCall>(&action))
    return get(*call, {call->query, call->key, call->value});
  const auto &call = std::get<PoolCall>(action);
  return get(call, {call.input});
}

/// Plans the pieces of a call whose loops end, and that may be divided.
void planPieces(const RankMemory &context, const StepInfo &step, const CallLoops &loops, int threads, ThreadPool *pool,
                CallPlan &plan) {
  const BufferInfo &buffer = context.plan.bufferOf(loops.output);
  plan.pieces =
      CallPieces::plan(context, loops.infos, loops.box, static_cast<int>(buffer.shape.size()), buffer.format.order,
                       [&](const Box &piece) { return makePart(context, step, piece, /*inPrologue=*/false, pool); });
  if (plan.pieces.empty())
    return;
  // Own kernels divide themselves.
  bool isDivided = step.division && !hasOwnKernels(step.action);
  plan.pieceLanes = isDivided ? std::min(threads, plan.pieces.count()) : 1;
  plan.pieceScratch =
      isDivided ? alignedSize((step.memory->scratchBytes(context.rank, plan.pieceLanes) + plan.pieceLanes - 1) /
                              plan.pieceLanes)
                : plan.wholeScratch;
  plan.bytes.scratch =
      std::max(plan.bytes.scratch, plan.pieces.stagingBytes(plan.pieceLanes) + plan.pieceLanes * plan.pieceScratch);
}

/// Whether the weights of a call are packed when the session starts.
bool packsWeights(const RankMemory &context, const StepInfo &step) {
  const auto *convolution = std::get_if<ConvolutionCall>(&step.action);
  const auto *product = std::get_if<MatMulCall>(&step.action);
  return convolution || (product && context.isConstant(product->b));
}

/// Null when the rank has nothing to do. `pool` are its `threads`, or null where it will not run. Errors: those of
/// plans of parts.
absl::StatusOr<std::unique_ptr<CallPlan>> planCall(const RankMemory &context, const StepInfo &step, bool inPrologue,
                                                   int threads, ThreadPool *pool) {
  std::optional<CallLoops> loops = loopsOf(context, step.action);
  if (!loops)
    return nullptr;
  auto result = std::make_unique<CallPlan>();
  result->whole.push_back(makePart(context, step, loops->box, inPrologue, pool));
  if (absl::Status status = result->whole[0]->plan(); !status.ok())
    return status;
  bool ownKernels = hasOwnKernels(step.action);
  result->wholeScratch = alignedSize(step.memory->scratchBytes(context.rank, ownKernels ? threads : 1));
  result->wholePacked = alignedSize(step.memory->packedBytes(context.rank));
  result->bytes = {result->whole[0]->stagingBytes() + result->wholeScratch, result->wholePacked};
  const auto *product = std::get_if<MatMulCall>(&step.action);
  result->isInPlace =
      product && context.plan.tensors[product->a].buffer == context.plan.tensors[product->output].buffer;
  if (!result->isInPlace && !inPrologue && loops->isDivisible)
    planPieces(context, step, *loops, threads, pool, *result);
  if (!result->isInPlace && (!step.division || !loops->isDivisible || ownKernels))
    return result;
  std::vector<Box> boxes =
      result->isInPlace ? divideInPlace(context, *product, loops->box) : divide(loops->box, *step.division, threads);
  int64_t largest = 0, scratch = 0;
  for (const Box &box : boxes) {
    std::unique_ptr<LibraryStep> part = makePart(context, step, box, inPrologue, pool);
    // What cannot be done in parts, may be possible as a whole.
    if (absl::Status status = part->plan(); !status.ok()) {
      result->divided.clear();
      return result->isInPlace ? absl::StatusOr<std::unique_ptr<CallPlan>>(status) : std::move(result);
    }
    largest = std::max(largest, alignedSize(part->stagingBytes()));
    scratch += alignedSize(part->stagingBytes());
    result->divided.push_back(std::move(part));
  }
  if (boxes.empty())
    return result;
  int64_t count = static_cast<int64_t>(boxes.size());
  if (result->isInPlace) {
    count = std::min<int64_t>(count, threads);
    scratch = count * largest;
    result->bytes = {};
  }
  result->lanes = static_cast<size_t>(count);
  int parts = static_cast<int>(count);
  result->scratchShare = alignedSize((step.memory->scratchBytes(context.rank, parts) + count - 1) / count);
  int64_t packed = alignedSize(step.memory->packedBytes(context.rank, parts));
  result->packedShare = packed / count / bufferAlignment * bufferAlignment;
  // What is done does not depend on memory alone: one of them must fit in any case.
  result->bytes.scratch = std::max(result->bytes.scratch, scratch + count * result->scratchShare);
  result->bytes.packed = std::max(result->bytes.packed, packed);
  return result;
}

/// Chooses implementations for all parts. Errors: those of the first for which there is none.
absl::Status createParts(CallPlan &plan, int64_t packedBytes) {
  Parts &parts = plan.divided;
  bool shares = true;
  for (size_t i = 1; i < parts.size(); ++i)
    shares &= parts[i]->sharesWeights(*parts[0]);
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t packed = !shares ? plan.packedShare : i == 0 ? packedBytes : 0;
    if (absl::Status status = parts[i]->prepare(packed, plan.scratchShare); !status.ok())
      return status;
    if (parts[i]->isSlow() && !plan.isInPlace)
      return absl::UnimplementedError("the library is slow with a part");
  }
  return absl::OkStatus();
}

/// Chooses implementations for the parts of a call, or for the whole. `room`: bytes that each may take beyond the
/// plan's bounds, of scratch memory and of packed weights. Null when the rank has nothing to do. Errors:
/// RESOURCE_EXHAUSTED when all implementations need more, and those of plans and calls.
StepExecutorOr createCall(const RankMemory &context, const StepInfo &step, bool inPrologue, ThreadPool &pool,
                          int64_t room) {
  auto plan = planCall(context, step, inPrologue, pool.size(), &pool);
  if (!plan.ok())
    return plan.status();
  if (!*plan)
    return nullptr;
  CallPlan &call = **plan;
  for (int64_t *bytes : {&call.wholeScratch, &call.wholePacked, &call.scratchShare, &call.packedShare})
    *bytes += room;
  // Parts for which the library has nothing fast, or nothing that keeps to the memory, are not worth it.
  absl::Status divided = call.divided.empty() ? absl::NotFoundError("") : createParts(call, call.bytes.packed + room);
  if (call.isInPlace && !divided.ok())
    return divided;
  if (!divided.ok()) {
    call.lanes = 1;
    if (absl::Status status = call.whole[0]->prepare(call.wholePacked, call.wholeScratch); !status.ok())
      return status;
  }
  Parts &parts = divided.ok() ? call.divided : call.whole;
  if (!call.pieces.empty())
    call.pieces.create(*parts.front(), packsWeights(context, step), call.pieceScratch);
  auto executor = std::make_unique<DividedStep>(std::move(parts), call.lanes, pool, call.bytes);
  if (call.pieces.empty())
    return executor;
  return makeEndingCall(std::move(executor), std::move(call.pieces), call.pieceLanes, pool);
}

/// Where to stop looking for an implementation that needs more memory than planned, in bytes.
constexpr int64_t mostRoom = int64_t(1) << 40;

} // namespace

StepExecutorOr dovetail::runtime::createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue,
                                                    ThreadPool &pool) {
  if (const auto *call = std::get_if<ReorderCall>(&step.action))
    return createReorder(context, *call, pool);
  StepExecutorOr executor = createCall(context, step, inPrologue, pool, /*room=*/0);
  // A program that takes more memory than planned, and says so, is better than none.
  for (int64_t room = bufferAlignment; room <= mostRoom && absl::IsResourceExhausted(executor.status()); room *= 2)
    executor = createCall(context, step, inPrologue, pool, room);
  return executor;
}

absl::StatusOr<CallBytes> dovetail::runtime::hostCallBytes(const RankMemory &context, const StepInfo &step,
                                                           bool inPrologue, int threads) {
  if (!step.memory)
    return CallBytes();
  auto plan = planCall(context, step, inPrologue, threads, /*pool=*/nullptr);
  if (!plan.ok())
    return plan.status();
  if (!*plan)
    return CallBytes();
  CallBytes bytes = (*plan)->bytes;
  if (inPrologue)
    bytes.packed = 0;
  return bytes;
}
