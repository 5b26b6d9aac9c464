//===- PlaceWaits.cpp - Which steps come after exchanges -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets steps wait for the exchanges that they must come after, as late as possible.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Dialect/Plan/IR/PlanParts.h"
#include "dovetail/Schedule/Passes.h"

#include <queue>
#include <set>

namespace dovetail {
#define GEN_PASS_DEF_PLACEWAITS
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Places the waits of one list of steps.
class WaitPlacer {
public:
  WaitPlacer(Block &block, const layout::Mesh &mesh);

  void run();

private:
  /// Whether a step at `position` may be given a buffer's memory on some rank. Where values lie depends on ranks'
  /// boxes, but how long they live does not: this must follow the rules by which sessions share the arena
  /// (`bufferLives`).
  bool isGone(plan::BufferOp buffer, unsigned position) const;
  /// Whether the step at `position` may get memory that was another buffer's.
  bool takesMemory(plan::StepOpInterface step, unsigned position) const;
  /// Whether all that ranks read of `ref` is their own part of a source of `exchange`, which leaves it as it is.
  bool readsOwn(Value ref, plan::ExchangeOp exchange) const;
  bool needsTargets(plan::StepOpInterface step, plan::ExchangeOp exchange) const;
  bool writesSources(plan::StepOpInterface step, plan::ExchangeOp exchange) const;
  /// Whether `step` writes to buffers of `refs`, which are sources or targets of `exchange`, and not only what that
  /// leaves alone on all ranks.
  bool overwrites(plan::StepOpInterface step, ValueRange refs, plan::ExchangeOp exchange) const;

  /// From now on `exchange` is one that some step may have to wait for.
  void open(plan::ExchangeOp exchange);
  /// Those that the step at `position` may have to wait for: exchanges of buffers that it reads or writes, and, if it
  /// takes memory, of those that are gone. What another step has waited for in both ways is not among them.
  std::set<unsigned> findConcerned(plan::StepOpInterface step, bool takes, unsigned position);

  Block &block;
  const layout::Mesh &mesh;
  SmallVector<plan::StepOpInterface> steps;
  /// The positions of the first and last step that touch a buffer of the arena.
  DenseMap<Operation *, std::pair<unsigned, unsigned>> lives;
  /// Exchanges so far, and the numbers of those that some step may still have to wait for: until they are complete, and
  /// until other ranks have read.
  SmallVector<plan::ExchangeOp> exchanges;
  std::set<unsigned> running, held;
  /// By buffer, the numbers of exchanges of its values. Some may not be open any more.
  DenseMap<Operation *, SmallVector<unsigned>> openOf;
  /// Positions of the last steps that touch buffers of exchanges, and the numbers of these, the first ones on top.
  using End = std::pair<unsigned, unsigned>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
};

struct PlaceWaits : dovetail::impl::PlaceWaitsBase<PlaceWaits> {
  void runOnOperation() override;
};

} // namespace

WaitPlacer::WaitPlacer(Block &block, const layout::Mesh &mesh) : block(block), mesh(mesh) {
  for (auto wait : llvm::make_early_inc_range(block.getOps<plan::WaitOp>()))
    wait.erase();
  llvm::append_range(steps, block.getOps<plan::StepOpInterface>());
  auto touch = [&](Value ref, unsigned position) {
    plan::BufferOp buffer = plan::getBufferOp(ref);
    if (!buffer || buffer.getKind() != plan::BufferKind::Arena)
      return;
    auto [life, isNew] = lives.try_emplace(buffer, position, position);
    life->second.second = position;
  };
  for (auto input : block.getOps<plan::InputOp>())
    touch(input.getRef(), 0);
  for (auto [position, step] : llvm::enumerate(steps))
    for (const SmallVector<Value> &refs : {step.getStepReads(), step.getStepWrites()})
      for (Value ref : refs)
        touch(ref, position + 1);
  for (auto output : block.getOps<plan::OutputOp>())
    touch(output.getRef(), steps.size() + 1);
}

bool WaitPlacer::isGone(plan::BufferOp buffer, unsigned position) const {
  auto life = lives.find(buffer);
  return life != lives.end() && life->second.second < position;
}

bool WaitPlacer::takesMemory(plan::StepOpInterface step, unsigned position) const {
  return step.takesScratch() || llvm::any_of(step.getStepWrites(), [&](Value ref) {
           auto life = lives.find(plan::getBufferOp(ref));
           return life != lives.end() && life->second.first == position;
         });
}

bool WaitPlacer::readsOwn(Value ref, plan::ExchangeOp exchange) const {
  RankedTensorType type = cast<plan::RefType>(ref.getType()).getTensor();
  for (auto [move, source] : llvm::enumerate(exchange.getSources())) {
    RankedTensorType own = cast<plan::RefType>(source.getType()).getTensor();
    if (exchange.keepsSource(move) && plan::getBufferOp(source) == plan::getBufferOp(ref) &&
        (own == type || covers(getSharding(own), getSharding(type), type, mesh)))
      return true;
  }
  return false;
}

/// Whether two lists of values have a buffer in common.
static bool share(ValueRange some, ValueRange others) {
  return llvm::any_of(some, [&](Value a) {
    return llvm::any_of(others, [&](Value b) { return plan::getBufferOp(a) == plan::getBufferOp(b); });
  });
}

bool WaitPlacer::overwrites(plan::StepOpInterface step, ValueRange refs, plan::ExchangeOp exchange) const {
  return share(step.getStepWrites(), refs) && !plan::leavesWrites(exchange, step, mesh);
}

bool WaitPlacer::needsTargets(plan::StepOpInterface step, plan::ExchangeOp exchange) const {
  return overwrites(step, exchange.getTargets(), exchange) || llvm::any_of(step.getStepReads(), [&](Value ref) {
           return share(ref, exchange.getTargets()) && !readsOwn(ref, exchange);
         });
}

bool WaitPlacer::writesSources(plan::StepOpInterface step, plan::ExchangeOp exchange) const {
  return overwrites(step, exchange.getSources(), exchange);
}

void WaitPlacer::open(plan::ExchangeOp exchange) {
  unsigned number = exchanges.size();
  exchanges.push_back(exchange);
  running.insert(number);
  held.insert(number);
  for (Value ref : exchange->getOperands()) {
    plan::BufferOp buffer = plan::getBufferOp(ref);
    openOf[buffer].push_back(number);
    if (auto life = lives.find(buffer); life != lives.end())
      ends.push({life->second.second, number});
  }
}

std::set<unsigned> WaitPlacer::findConcerned(plan::StepOpInterface step, bool takes, unsigned position) {
  std::set<unsigned> concerned;
  auto isOpen = [&](unsigned number) { return running.contains(number) || held.contains(number); };
  for (const SmallVector<Value> &refs : {step.getStepReads(), step.getStepWrites()})
    for (Value ref : refs)
      if (auto entry = openOf.find(plan::getBufferOp(ref)); entry != openOf.end()) {
        llvm::erase_if(entry->second, [&](unsigned number) { return !isOpen(number); });
        concerned.insert(entry->second.begin(), entry->second.end());
      }
  for (; takes && !ends.empty() && ends.top().first < position; ends.pop())
    if (isOpen(ends.top().second))
      concerned.insert(ends.top().second);
  return concerned;
}

void WaitPlacer::run() {
  OpBuilder builder(block.getParentOp()->getContext());
  auto take = [&](std::set<unsigned> &from, const std::set<unsigned> &concerned, auto &&waits) {
    SmallVector<plan::ExchangeOp> taken;
    for (unsigned number : concerned)
      if (from.contains(number) && waits(exchanges[number])) {
        taken.push_back(exchanges[number]);
        from.erase(number);
      }
    return taken;
  };
  auto takeAll = [&](std::set<unsigned> &from) {
    return take(from, std::set(from), [](plan::ExchangeOp) { return true; });
  };
  auto wait = [&](ArrayRef<plan::ExchangeOp> complete, ArrayRef<plan::ExchangeOp> read) {
    if (complete.empty() && read.empty())
      return;
    auto events = [](ArrayRef<plan::ExchangeOp> exchanges) {
      return llvm::map_to_vector(exchanges, [](plan::ExchangeOp exchange) -> Value { return exchange.getEvent(); });
    };
    plan::ExchangeOp first = complete.empty() ? read.front() : complete.front();
    plan::WaitOp::create(builder, first.getLoc(), events(complete), events(read), first.getStepNameAttr());
  };
  for (auto [number, step] : llvm::enumerate(steps)) {
    unsigned position = number + 1;
    bool takes = takesMemory(step, position);
    auto isGone = [&](Value ref) { return takes && this->isGone(plan::getBufferOp(ref), position); };
    auto mayOverwrite = [&](plan::ExchangeOp exchange) {
      return writesSources(step, exchange) || llvm::any_of(exchange.getSources(), isGone);
    };
    builder.setInsertionPoint(step);
    if (plan::isBoundary(step)) {
      // An exchange belongs to one iteration.
      SmallVector<plan::ExchangeOp> complete = takeAll(running);
      wait(complete, takeAll(held));
    } else {
      std::set<unsigned> concerned = findConcerned(step, takes, position);
      SmallVector<plan::ExchangeOp> complete = take(running, concerned, [&](plan::ExchangeOp exchange) {
        return needsTargets(step, exchange) || mayOverwrite(exchange) || llvm::any_of(exchange.getTargets(), isGone);
      });
      wait(complete, take(held, concerned, mayOverwrite));
    }
    if (auto exchange = dyn_cast<plan::ExchangeOp>(*step))
      open(exchange);
  }
  // Whoever runs the program may read its outputs and write its inputs afterwards.
  builder.setInsertionPointToEnd(&block);
  SmallVector<plan::ExchangeOp> complete = takeAll(running);
  wait(complete, takeAll(held));
}

void PlaceWaits::runOnOperation() {
  SymbolTableCollection symbols;
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    // The program's verifier has found it.
    layout::Mesh mesh = symbols.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr()).getMesh();
    for (auto prologue : program.getBlock()->getOps<plan::PrologueOp>())
      WaitPlacer(*prologue.getBlock(), mesh).run();
    WaitPlacer(*program.getBlock(), mesh).run();
  }
}
