//===- FormLoops.cpp - Put loops one after the other ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the operations of each loop, and puts them between two that say where an iteration begins and ends.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMLOOPS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// What a loop carries, by number.
struct CarriedLoop {
  llvm::MapVector<uint64_t, IterArgOp> args;
  DenseMap<uint64_t, YieldOp> yields;
  DenseMap<uint64_t, LoopResultOp> results;

  IterArgOp getCondition() const { return args.lookup(0); }
};

/// Forms the loops of a block.
class LoopFormer {
public:
  explicit LoopFormer(Block &block) : block(block) {}

  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult verify(CarriedLoop &loop);
  /// Erases loops that give nothing, and what is of no use otherwise.
  LogicalResult eraseUnused();
  LogicalResult form(CarriedLoop &loop);
  /// All operations that depend on what loop number `number` carries, but for what leaves it. Of a loop that is among
  /// them, what it carries is, too: it begins anew in each iteration.
  DenseSet<Operation *> getInside(ArrayRef<Operation *> carries, uint64_t number);
  /// All operations that depend on what leaves a loop, and these.
  static DenseSet<Operation *> getBehind(ArrayRef<Operation *> leaves);

  Block &block;
  llvm::MapVector<uint64_t, CarriedLoop> loops;
};

struct FormLoops : dovetail::impl::FormLoopsBase<FormLoops> {
  void runOnOperation() override {
    if (!getOperation().isDeclaration() && failed(LoopFormer(getOperation().getBody().front()).run()))
      signalPassFailure();
  }
};

} // namespace

LogicalResult LoopFormer::collect() {
  auto add = [](auto &map, auto op) -> LogicalResult {
    auto &entry = map[op.getSlot()];
    if (entry)
      return op.emitOpError("is the second one of value ") << op.getSlot() << " of loop " << op.getLoop();
    entry = op;
    return success();
  };
  for (Operation &op : block) {
    LogicalResult result = success();
    if (auto carry = dyn_cast<IterArgOp>(op))
      result = add(loops[carry.getLoop()].args, carry);
    else if (auto next = dyn_cast<YieldOp>(op))
      result = add(loops[next.getLoop()].yields, next);
    else if (auto leave = dyn_cast<LoopResultOp>(op))
      result = add(loops[leave.getLoop()].results, leave);
    if (failed(result))
      return failure();
  }
  for (auto &[number, loop] : loops)
    if (failed(verify(loop)))
      return failure();
  return success();
}

LogicalResult LoopFormer::verify(CarriedLoop &loop) {
  for (auto &[slot, entry] : loop.args) {
    IterArgOp carry = entry;
    YieldOp next = loop.yields.lookup(slot);
    if (!next)
      return carry.emitOpError("has no dovetail.yield of its number");
    auto requireAlike = [&](Operation *op) -> LogicalResult {
      Type type = op->getResult(0).getType();
      if (type == carry.getType())
        return success();
      return op->emitOpError("gives ") << type << ", but the loop carries " << carry.getType()
                                       << ": values are split alike in each iteration, and after the last";
    };
    if (failed(requireAlike(next)))
      return failure();
    if (LoopResultOp leave = loop.results.lookup(slot); leave && failed(requireAlike(leave)))
      return failure();
  }
  auto requireCarried = [&](auto op) -> LogicalResult {
    if (loop.args.contains(op.getSlot()))
      return success();
    return op.emitOpError("is of value ") << op.getSlot() << ", which loop " << op.getLoop() << " does not carry";
  };
  for (auto [slot, next] : loop.yields)
    if (failed(requireCarried(next)))
      return failure();
  for (auto [slot, leave] : loop.results)
    if (failed(requireCarried(leave)))
      return failure();
  if (loop.getCondition())
    return success();
  return loop.args.front().second.emitOpError("is of a loop without a condition, value 0");
}

LogicalResult LoopFormer::eraseUnused() {
  // What reads the results of a loop may be of no use itself, another loop, too.
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    auto erase = [&](Operation *op) {
      op->erase();
      hasChanged = true;
    };
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        erase(&op);
    for (auto &[number, loop] : loops) {
      for (auto [slot, leave] :
           SmallVector<std::pair<uint64_t, LoopResultOp>>(loop.results.begin(), loop.results.end()))
        if (leave.use_empty()) {
          loop.results.erase(slot);
          erase(leave);
        }
      if (!loop.results.empty())
        continue;
      for (auto [slot, next] : loop.yields)
        erase(next);
      loop.yields.clear();
      loop.args.remove_if([&](const auto &entry) {
        IterArgOp carry = entry.second;
        if (!carry.use_empty())
          return false;
        erase(carry);
        return true;
      });
    }
  }
  loops.remove_if([](const auto &entry) { return entry.second.args.empty(); });
  for (auto &[number, loop] : loops)
    if (loop.yields.empty())
      return loop.args.front().second.emitOpError("is read after its loop, where its value is gone");
  return success();
}

DenseSet<Operation *> LoopFormer::getInside(ArrayRef<Operation *> carries, uint64_t number) {
  llvm::SetVector<Operation *> found(carries.begin(), carries.end());
  for (size_t i = 0; i < found.size(); ++i) {
    Operation *op = found[i];
    auto carry = dyn_cast<IterArgOp>(op);
    auto next = dyn_cast<YieldOp>(op);
    if (std::optional<uint64_t> other = carry  ? std::optional(carry.getLoop())
                                        : next ? std::optional(next.getLoop())
                                               : std::nullopt;
        other && *other != number)
      for (auto &[slot, inner] : loops[*other].args)
        found.insert(inner);
    // Of a loop that has been formed, some carried values may have no other operation that says so.
    if (auto end = dyn_cast<plan::EndLoopOp>(op))
      for (Value inner : end.getCarried())
        found.insert(inner.getDefiningOp());
    for (Operation *user : op->getUsers())
      if (auto leave = dyn_cast<LoopResultOp>(user); !leave || leave.getLoop() != number)
        found.insert(user);
  }
  return DenseSet<Operation *>(found.begin(), found.end());
}

DenseSet<Operation *> LoopFormer::getBehind(ArrayRef<Operation *> leaves) {
  llvm::SetVector<Operation *> found(leaves.begin(), leaves.end());
  for (size_t i = 0; i < found.size(); ++i)
    found.insert(found[i]->user_begin(), found[i]->user_end());
  return DenseSet<Operation *>(found.begin(), found.end());
}

LogicalResult LoopFormer::form(CarriedLoop &loop) {
  SmallVector<Operation *> carries, leaves;
  SmallVector<Value> carried, next;
  for (auto &[slot, carry] : loop.args) {
    carries.push_back(carry);
    carried.push_back(carry.getResult());
    next.push_back(loop.yields.lookup(slot).getResult());
  }
  for (auto [slot, leave] : loop.results)
    leaves.push_back(leave);
  uint64_t number = loop.getCondition().getLoop();
  DenseSet<Operation *> inside = getInside(carries, number), behind = getBehind(leaves);
  Operation *first = carries.front(), *last = next.front().getDefiningOp();
  for (Operation *op : carries)
    first = op->isBeforeInBlock(first) ? op : first;
  for (Value value : next)
    last = last->isBeforeInBlock(value.getDefiningOp()) ? value.getDefiningOp() : last;
  for (Operation *op = first; op; op = op->getNextNode())
    if (inside.contains(op) && (behind.contains(op) || last->isBeforeInBlock(op)))
      return op->emitOpError("reads values that loop ") << number << " carries, after the loop, where they are gone";

  // What does not depend on the loop comes before it, and all that reads its results behind it.
  SmallVector<Operation *> before, body, after;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode()) {
    if (llvm::is_contained(carries, op))
      continue;
    (inside.contains(op) ? body : behind.contains(op) ? after : before).push_back(op);
  }
  OpBuilder builder(last->getNextNode());
  Location loc = loop.getCondition().getLoc();
  Operation *begin = plan::BeginLoopOp::create(builder, loc, loop.getCondition().getResult());
  Operation *end = plan::EndLoopOp::create(builder, loc, carried, next);
  for (ArrayRef<Operation *> part : {ArrayRef(before), ArrayRef(carries)})
    for (Operation *op : part)
      op->moveBefore(begin);
  for (Operation *op : body)
    op->moveBefore(end);
  for (Operation *op : after)
    op->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
  // What an operation of the loop computes, in memory of its own, needs no copy before it takes that place.
  for (auto [slot, nextOp] : loop.yields) {
    Value value = nextOp.getValue();
    nextOp->setOperand(0, value);
    Operation *producer = value.getDefiningOp();
    if (value.getType() != nextOp.getType() || !inside.contains(producer) || !isa<DefinitionOpInterface>(producer) ||
        isa<IterArgOp>(producer))
      continue;
    end->replaceUsesOfWith(nextOp.getResult(), value);
    if (nextOp.use_empty())
      nextOp.erase();
  }
  return success();
}

LogicalResult LoopFormer::run() {
  if (failed(collect()))
    return failure();
  if (loops.empty())
    return success();
  // What is carried lies where the next iteration, and whoever comes behind the last one, finds it.
  for (auto &[number, loop] : loops)
    for (auto [slot, leave] : loop.results) {
      Value carried = loop.args.lookup(slot).getResult();
      leave->setOperands({carried, carried});
    }
  if (failed(eraseUnused()))
    return failure();
  // What a loop is inside of gives its next values later.
  auto getLast = [](const CarriedLoop &loop) {
    Operation *last = nullptr;
    for (auto [slot, next] : loop.yields)
      last = !last || last->isBeforeInBlock(next) ? next.getOperation() : last;
    return last;
  };
  SmallVector<std::pair<Operation *, CarriedLoop *>> order;
  for (auto &[number, loop] : loops)
    order.push_back({getLast(loop), &loop});
  llvm::sort(order, [](const auto &a, const auto &b) { return a.first->isBeforeInBlock(b.first); });
  for (auto [last, loop] : order)
    if (failed(form(*loop)))
      return failure();
  return success();
}
