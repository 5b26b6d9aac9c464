//===- MergeExchanges.cpp - Several moves in one exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes small exchanges that can begin at the same time one.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/Schedule/Passes.h"
#include "llvm/ADT/SetOperations.h"

#include <limits>

namespace dovetail {
#define GEN_PASS_DEF_MERGEEXCHANGES
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

using Buffers = llvm::SmallDenseSet<Operation *, 4>;

constexpr unsigned kNobody = std::numeric_limits<unsigned>::max();

/// A step of a block, with the buffers that it touches.
struct Step {
  plan::StepOpInterface op;  ///< Null if it has become part of a later one.
  plan::ExchangeOp exchange; ///< The same, if it is one.
  Buffers reads, writes;
  /// Of an exchange: the steps that last wrote what it reads, as far as steps of the block have; and the most bytes
  /// that a rank receives.
  llvm::SmallDenseSet<Operation *, 4> sources;
  int64_t bytes = 0;
  /// Ranks of a collective that take part with rank 0, and its steps.
  std::vector<int> members;
  int64_t steps = 0;
  /// The position of the first step that reads what ranks receive; `kNobody` if there is none.
  unsigned reader = kNobody;
  /// Its own position.
  unsigned position = 0;
};

struct MergeExchanges : dovetail::impl::MergeExchangesBase<MergeExchanges> {
  void runOnOperation() override;
};

} // namespace

/// What a step needs of two gathers at once comes in one, up to so many bytes: to copy these takes less than to begin
/// an exchange.
static constexpr int64_t kMaxPackedBytes = 1 << 20;

/// As long as so many messages it takes to begin an exchange, by the order of it.
static constexpr int64_t kMessagesOfBeginning = 8;

static Buffers getBuffers(ValueRange refs) {
  Buffers buffers;
  for (Value ref : refs)
    buffers.insert(plan::getBufferOp(ref));
  return buffers;
}

/// The most bytes that a rank receives in an exchange, which must be possible.
static FailureOr<int64_t> getReceivedBytes(plan::ExchangeOp op, const layout::Mesh &mesh) {
  // Of one move the most that a rank receives follows from pieces; of several it may be another rank's.
  bool isOne = op.getNumMoves() == 1;
  SmallVector<int64_t> received(isOne ? 1 : mesh.numRanks());
  for (auto [source, target] : llvm::zip_equal(op.getSources(), op.getTargets())) {
    RankedTensorType fromType = cast<plan::RefType>(source.getType()).getTensor(),
                     toType = cast<plan::RefType>(target.getType()).getTensor();
    layout::Sharding from = toLayout(getSharding(fromType), mesh, fromType.getRank()),
                     to = toLayout(getSharding(toType), mesh, toType.getRank());
    if (std::string why; !layout::verifyExchange(mesh, toType.getShape(), from, to, &why))
      return op.emitOpError() << "is impossible: " << why;
    int64_t elementBytes = getElementByteSize(toType.getElementType());
    if (isOne) {
      received[0] = layout::getExchangeVolume(mesh, toType.getShape(), from, to).largest * elementBytes;
      continue;
    }
    for (int rank = 0; rank < mesh.numRanks(); ++rank)
      received[rank] += layout::lowerBound(mesh, toType.getShape(), from, to, rank) * elementBytes;
  }
  return *llvm::max_element(received);
}

/// Moves the definition of a view before `op`, if it is not.
static void hoistView(Value ref, Operation *op) {
  plan::BufferOp buffer = plan::getBufferOp(ref);
  for (Operation *definition : {buffer.getOperation(), ref.getDefiningOp()})
    if (definition->getBlock() == op->getBlock() && op->isBeforeInBlock(definition))
      definition->moveBefore(op);
}

/// Finds with whom ranks carry out a collective, and in how many steps: those of a tree, down, or up and down.
static void setGroup(Step &step, const layout::Mesh &mesh) {
  layout::ExchangeKind kind = plan::toLayout(step.exchange.getKind());
  if (kind == layout::ExchangeKind::Messages)
    return;
  auto getSide = [&](Value ref) {
    RankedTensorType type = cast<plan::RefType>(ref.getType()).getTensor();
    return toLayout(getSharding(type), mesh, type.getRank());
  };
  RankedTensorType type = cast<plan::RefType>(step.exchange.getSources()[0].getType()).getTensor();
  step.members = layout::collectiveGroup(mesh, type.getShape(), getSide(step.exchange.getSources()[0]),
                                         getSide(step.exchange.getTargets()[0]), kind, /*rank=*/0)
                     .members;
  step.steps = llvm::Log2_64_Ceil(step.members.size()) * (kind == layout::ExchangeKind::AllReduce ? 2 : 1);
}

/// For each exchange of a block, the position of the first step behind it that reads what ranks receive, if any.
static DenseMap<Operation *, unsigned> findReaders(Block &block) {
  DenseMap<Operation *, unsigned> readers, nextReads;
  SmallVector<plan::StepOpInterface> steps = llvm::to_vector(block.getOps<plan::StepOpInterface>());
  for (unsigned position = steps.size(); position-- > 0;) {
    plan::StepOpInterface step = steps[position];
    if (isa<plan::ExchangeOp>(*step))
      for (Operation *buffer : getBuffers(step.getStepWrites()))
        if (auto read = nextReads.find(buffer); read != nextReads.end()) {
          unsigned &reader = readers.try_emplace(step.getOperation(), read->second).first->second;
          reader = std::min(reader, read->second);
        }
    for (Operation *buffer : getBuffers(step.getStepReads()))
      nextReads[buffer] = position;
  }
  return readers;
}

/// Whether two exchanges may become one of packed parts.
static bool gatherTogether(Step &a, Step &b) {
  return layout::isGather(plan::toLayout(a.exchange.getKind())) &&
         layout::isGather(plan::toLayout(b.exchange.getKind())) && a.members == b.members &&
         a.members.size() >= layout::minPackedMembers;
}

/// Whether messages take no longer than beginning two exchanges, as collectives that they are.
static bool mayBeMessages(const Step &a, const Step &b) {
  int64_t further = 0;
  for (const Step *step : {&a, &b})
    if (!step->members.empty())
      further += static_cast<int64_t>(step->members.size()) - 1 - step->steps;
  return further <= kMessagesOfBeginning;
}

/// Makes `later` a part of `earlier`, which stays where it is.
static void merge(plan::ExchangeOp earlier, plan::ExchangeOp later, plan::ExchangeKind kind) {
  SmallVector<SmallVector<int64_t>> orders;
  SmallVector<StringRef> names;
  for (plan::ExchangeOp op : {earlier, later}) {
    for (size_t move : llvm::seq(op.getNumMoves()))
      orders.push_back(op.getOrder(move));
    if (std::optional<StringRef> name = op.getStepName(); name && !llvm::is_contained(names, *name))
      names.push_back(*name);
  }
  for (Value ref : later->getOperands())
    hoistView(ref, earlier);
  earlier.getSourcesMutable().append(later.getSources());
  earlier.getTargetsMutable().append(later.getTargets());
  earlier.setKind(kind);
  earlier.setOrders(orders);
  if (!names.empty())
    earlier.setStepName(llvm::join(names, ", "));
  earlier->setLoc(FusedLoc::get(earlier.getContext(), {earlier.getLoc(), later.getLoc()}));
  later.erase();
}

/// Whether one exchange takes less time than two.
static bool gainTogether(Step &other, Step &step) {
  bool gather = gatherTogether(other, step);
  int64_t limit = gather && other.reader == step.reader ? kMaxPackedBytes : layout::minScatterBytes;
  return other.bytes + step.bytes < limit && (gather || mayBeMessages(other, step));
}

/// Whether `step` has to stay behind `other`.
static bool dependsOn(const Step &step, const Step &other) {
  return llvm::set_intersects(other.writes, step.reads) || llvm::set_intersects(other.writes, step.writes) ||
         llvm::set_intersects(other.reads, step.writes);
}

/// The earlier step with which an exchange becomes one; null if there is none.
static Step *findPartner(MutableArrayRef<Step> before, Step &step) {
  bool areAdjacent = true;
  for (Step &other : llvm::reverse(before)) {
    if (!other.op)
      continue;
    if (plan::isBoundary(other.op))
      return nullptr;
    if (dependsOn(step, other))
      return nullptr;
    areAdjacent &= bool(other.exchange);
    if (!other.exchange)
      continue;
    if (gainTogether(other, step) && (areAdjacent || llvm::set_intersects(step.sources, other.sources)))
      return &other;
  }
  return nullptr;
}

namespace {
/// Merges the exchanges of a block.
class BlockMerger {
public:
  BlockMerger(Block &block, const layout::Mesh &mesh) : block(block), mesh(mesh), readers(findReaders(block)) {}

  LogicalResult run();

private:
  /// Sets what is known of `step`, which is an exchange.
  LogicalResult describe(Step &step);
  /// The earlier exchange that can as well begin with `step`, as the same step waits for both; null if there is none.
  Step *findDelayed(Step &step);
  /// Makes `step` a part of `partner`.
  void join(Step &partner, Step &step);
  /// Adds a step behind the others.
  void append(Step step);

  Block &block;
  const layout::Mesh &mesh;
  DenseMap<Operation *, unsigned> readers;
  SmallVector<Step> steps;
  DenseMap<Operation *, Operation *> writers;
  /// Of buffers, the position of the last step that writes them.
  DenseMap<Operation *, unsigned> lastWrites;
  /// The last exchange, by its number in `steps`, of those that the same step reads first.
  DenseMap<unsigned, unsigned> lastOfReader;
  unsigned boundary = 0; ///< The position of the last one.
};
} // namespace

LogicalResult BlockMerger::describe(Step &step) {
  for (Operation *buffer : step.reads)
    if (Operation *writer = writers.lookup(buffer))
      step.sources.insert(writer);
  FailureOr<int64_t> bytes = getReceivedBytes(step.exchange, mesh);
  if (failed(bytes))
    return failure();
  step.bytes = *bytes;
  setGroup(step, mesh);
  if (auto reader = readers.find(step.op); reader != readers.end())
    step.reader = reader->second;
  return success();
}

Step *BlockMerger::findDelayed(Step &step) {
  auto found = step.reader == kNobody ? lastOfReader.end() : lastOfReader.find(step.reader);
  if (found == lastOfReader.end())
    return nullptr;
  Step &other = steps[found->second];
  auto isLater = [&](Operation *buffer) { return lastWrites.lookup(buffer) > other.position; };
  // Large exchanges had better begin early.
  if (!other.op || other.position < boundary || other.reader != step.reader ||
      other.bytes + step.bytes >= layout::minScatterBytes || !gainTogether(other, step) ||
      llvm::any_of(other.reads, isLater) || llvm::any_of(other.writes, isLater) || dependsOn(step, other))
    return nullptr;
  return &other;
}

void BlockMerger::join(Step &partner, Step &step) {
  bool gather = gatherTogether(partner, step);
  merge(partner.exchange, step.exchange, gather ? plan::ExchangeKind::PackedGather : plan::ExchangeKind::Messages);
  if (!gather)
    partner.members.clear();
  partner.reader = std::min(partner.reader, step.reader);
  partner.reads.insert_range(step.reads);
  partner.writes.insert_range(step.writes);
  partner.sources.insert_range(step.sources);
  partner.bytes += step.bytes;
  for (Operation *buffer : partner.writes) {
    writers[buffer] = partner.op;
    lastWrites[buffer] = partner.position;
  }
  lastOfReader[partner.reader] = &partner - steps.data();
}

void BlockMerger::append(Step step) {
  for (Operation *buffer : step.writes) {
    writers[buffer] = step.op;
    lastWrites[buffer] = step.position;
  }
  if (step.exchange)
    lastOfReader[step.reader] = steps.size();
  if (plan::isBoundary(step.op))
    boundary = step.position;
  steps.push_back(std::move(step));
}

LogicalResult BlockMerger::run() {
  unsigned position = 0;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto stepOp = dyn_cast<plan::StepOpInterface>(op);
    if (!stepOp)
      continue;
    // What is waited for already stays as it is.
    auto exchange = dyn_cast<plan::ExchangeOp>(op);
    Step step{stepOp,
              exchange && exchange.getEvent().use_empty() ? exchange : plan::ExchangeOp(),
              getBuffers(stepOp.getStepReads()),
              getBuffers(stepOp.getStepWrites()),
              /*sources=*/{},
              /*bytes=*/0,
              /*members=*/{},
              /*steps=*/0,
              /*reader=*/kNobody,
              position++};
    if (step.exchange) {
      if (failed(describe(step)))
        return failure();
      if (Step *partner = findPartner(steps, step)) {
        join(*partner, step);
        continue;
      }
      if (Step *delayed = findDelayed(step)) {
        delayed->op->moveBefore(step.op);
        Step moved = *delayed;
        delayed->op = {};
        moved.position = step.position;
        append(std::move(moved));
        join(steps.back(), step);
        continue;
      }
    }
    append(std::move(step));
  }
  return success();
}

void MergeExchanges::runOnOperation() {
  SymbolTableCollection symbols;
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    // The program's verifier has found it.
    layout::Mesh mesh = symbols.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr()).getMesh();
    for (auto prologue : program.getBlock()->getOps<plan::PrologueOp>())
      if (failed(BlockMerger(*prologue.getBlock(), mesh).run()))
        return signalPassFailure();
    if (failed(BlockMerger(*program.getBlock(), mesh).run()))
      return signalPassFailure();
  }
}
