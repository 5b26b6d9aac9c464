//===- InterchangeLoops.cpp - Folds that neighbours go through together ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines interchangeLoops.
//
//===----------------------------------------------------------------------===//

#include "InterchangeLoops.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dovetail;

/// Elements that go through a fold together: eight vectors of 256 bits of f32, which stay in registers.
static constexpr int64_t tileSize = 64;
/// Fewer are no vector.
static constexpr int64_t fewestElements = 4;

namespace {

/// A loop over neighbours, each of which goes through the same terms by loops of its own.
class Interchange {
public:
  explicit Interchange(scf::ForOp outer) : outer(outer) {}

  /// Whether the loops may be interchanged, and neighbours are so in memory, too.
  bool isPossible();
  void perform();

private:
  bool hasPerfectNest();
  /// Whether `op` reads at most, and what it reads at the loop's iterations are neighbours.
  bool readsNeighbours(Operation *op);
  bool isVariant(Value value) const { return variant.contains(value); }
  bool isVariant(Operation *op) const;
  /// Whether `index` goes up by one from one iteration of the loop to the next.
  bool isNeighbour(Value index);

  void emitTile(OpBuilder &builder, Value first, Value count);
  void emitNest(OpBuilder &builder, unsigned depth, IRMapping &mapping, Value first, Value count);
  /// `body` for each of `count` elements from `first` on.
  void forEach(OpBuilder &builder, Value first, Value count,
               function_ref<void(OpBuilder &builder, IRMapping &mapping, Value position)> body,
               const IRMapping &mapping);
  Value getAddress(OpBuilder &builder, unsigned number, Value position);

  scf::ForOp outer;
  SmallVector<Operation *> before, behind; ///< The nest, in the loop.
  SmallVector<scf::ForOp> nest;            ///< Each in the one before it.
  DenseSet<Value> variant;                 ///< What is not the same for all neighbours.
  SmallVector<Value> accumulators;         ///< The memory of those of a tile.
};

} // namespace

bool Interchange::isVariant(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), [&](Value value) { return isVariant(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool Interchange::isNeighbour(Value index) {
  if (index == outer.getInductionVar())
    return true;
  auto sum = index.getDefiningOp<arith::AddIOp>();
  return sum && ((isNeighbour(sum.getLhs()) && !isVariant(sum.getRhs())) ||
                 (isNeighbour(sum.getRhs()) && !isVariant(sum.getLhs())));
}

bool Interchange::readsNeighbours(Operation *op) {
  bool fits = true;
  op->walk([&](Operation *inner) {
    if (auto load = dyn_cast<plan::LoadOp>(inner))
      fits &= !isVariant(load.getOffset()) || isNeighbour(load.getOffset());
    else
      fits &= isa<scf::IfOp, scf::YieldOp>(inner) || (inner->getNumRegions() == 0 && isMemoryEffectFree(inner));
    // What branches compute is as what decides between them.
    if (isVariant(inner))
      variant.insert(inner->result_begin(), inner->result_end());
  });
  return fits;
}

bool Interchange::hasPerfectNest() {
  for (Operation &op : outer.getBody()->without_terminator()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && nest.empty())
      nest.push_back(loop);
    else
      (nest.empty() ? before : behind).push_back(&op);
  }
  if (nest.empty() || !outer.getInitArgs().empty() || nest.front().getInitArgs().empty())
    return false;
  while (true) {
    scf::ForOp loop = nest.back();
    auto loops = llvm::to_vector(loop.getBody()->getOps<scf::ForOp>());
    if (loops.empty())
      return true;
    scf::ForOp inner = loops.front();
    auto isPassedOn = [&](BlockArgument carried) {
      return carried.hasOneUse() && *carried.user_begin() == inner.getOperation();
    };
    if (loops.size() > 1 || inner->getNextNode() != loop.getBody()->getTerminator() ||
        !llvm::equal(inner.getInitArgs(), loop.getRegionIterArgs()) ||
        !llvm::all_of(loop.getRegionIterArgs(), isPassedOn) ||
        !llvm::equal(inner.getResults(), loop.getYieldedValues()))
      return false;
    nest.push_back(inner);
  }
}

bool Interchange::isPossible() {
  std::optional<int64_t> lo = getConstantIntValue(outer.getLowerBound()),
                         hi = getConstantIntValue(outer.getUpperBound());
  if ((lo && hi && *hi - *lo < fewestElements) || getConstantIntValue(outer.getStep()) != 1 || !hasPerfectNest())
    return false;
  variant.insert(outer.getInductionVar());
  for (Operation *op : before) {
    if (!readsNeighbours(op))
      return false;
    // It is emitted with the elements, whatever it depends on.
    variant.insert(op->result_begin(), op->result_end());
  }
  for (scf::ForOp loop : nest) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (isVariant(bound))
        return false;
    variant.insert(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    for (Operation &op : loop.getBody()->without_terminator())
      if (!isa<scf::ForOp>(op) && !readsNeighbours(&op))
        return false;
  }
  variant.insert(nest.front().result_begin(), nest.front().result_end());
  bool writes = false;
  for (Operation *op : behind) {
    auto store = dyn_cast<plan::StoreOp>(op);
    if (store ? !isNeighbour(store.getOffset()) : !readsNeighbours(op))
      return false;
    writes |= static_cast<bool>(store);
  }
  // Terms that are read across the loop are better read along the fold.
  bool readsAlong = false;
  nest.back().getBody()->walk([&](plan::LoadOp load) { readsAlong |= isVariant(load.getOffset()); });
  return writes && readsAlong && llvm::all_of(nest.front().getResultTypes(), [](Type type) {
           return isa<FloatType>(type) || (isa<IntegerType>(type) && !type.isInteger(1));
         });
}

Value Interchange::getAddress(OpBuilder &builder, unsigned number, Value position) {
  Location loc = outer.getLoc();
  Value offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), position);
  return LLVM::GEPOp::create(builder, loc, accumulators[number].getType(), nest.front().getResult(number).getType(),
                             accumulators[number], ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
}

void Interchange::forEach(OpBuilder &builder, Value first, Value count,
                          function_ref<void(OpBuilder &builder, IRMapping &mapping, Value position)> body,
                          const IRMapping &mapping) {
  Location loc = outer.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  IRMapping own(mapping);
  Value position = loop.getInductionVar();
  own.map(outer.getInductionVar(),
          arith::AddIOp::create(builder, loc, first, position, arith::IntegerOverflowFlags::nsw).getResult());
  for (Operation *op : before)
    builder.clone(*op, own);
  body(builder, own, position);
}

void Interchange::emitNest(OpBuilder &builder, unsigned depth, IRMapping &mapping, Value first, Value count) {
  scf::ForOp loop = nest[depth];
  Location loc = outer.getLoc();
  auto at = [&](Value value) { return mapping.lookupOrDefault(value); };
  auto created =
      scf::ForOp::create(builder, loc, at(loop.getLowerBound()), at(loop.getUpperBound()), at(loop.getStep()));
  mapping.map(loop.getInductionVar(), created.getInductionVar());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(created.getBody());
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isa<scf::ForOp>(op) && !isVariant(&op))
      builder.clone(op, mapping);
  if (depth + 1 < nest.size())
    return emitNest(builder, depth + 1, mapping, first, count);
  forEach(
      builder, first, count,
      [&](OpBuilder &builder, IRMapping &own, Value position) {
        for (auto [number, carried] : llvm::enumerate(loop.getRegionIterArgs()))
          own.map(
              carried,
              LLVM::LoadOp::create(builder, loc, carried.getType(), getAddress(builder, number, position)).getResult());
        for (scf::ForOp each : nest)
          for (Operation &op : each.getBody()->without_terminator())
            if (!isa<scf::ForOp>(op) && isVariant(&op))
              builder.clone(op, own);
        SmallVector<Value> next =
            llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) { return own.lookupOrDefault(value); });
        for (auto [number, value] : llvm::enumerate(next))
          LLVM::StoreOp::create(builder, loc, value, getAddress(builder, number, position));
      },
      mapping);
}

void Interchange::emitTile(OpBuilder &builder, Value first, Value count) {
  Location loc = outer.getLoc();
  scf::ForOp fold = nest.front();
  forEach(
      builder, first, count,
      [&](OpBuilder &builder, IRMapping &own, Value position) {
        for (auto [number, init] : llvm::enumerate(fold.getInitArgs()))
          LLVM::StoreOp::create(builder, loc, own.lookupOrDefault(init), getAddress(builder, number, position));
      },
      IRMapping());
  IRMapping mapping;
  emitNest(builder, 0, mapping, first, count);
  forEach(
      builder, first, count,
      [&](OpBuilder &builder, IRMapping &own, Value position) {
        for (auto [number, result] : llvm::enumerate(fold.getResults()))
          own.map(
              result,
              LLVM::LoadOp::create(builder, loc, result.getType(), getAddress(builder, number, position)).getResult());
        for (Operation *op : behind)
          builder.clone(*op, own);
      },
      IRMapping());
}

void Interchange::perform() {
  Location loc = outer.getLoc();
  std::optional<int64_t> lo = getConstantIntValue(outer.getLowerBound()),
                         hi = getConstantIntValue(outer.getUpperBound());
  int64_t size = lo && hi ? std::min(tileSize, *hi - *lo) : tileSize;
  {
    OpBuilder builder = OpBuilder::atBlockBegin(&outer->getParentOfType<func::FuncOp>().getBody().front());
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Value elements = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(size));
    for (Type type : nest.front().getResultTypes())
      accumulators.push_back(LLVM::AllocaOp::create(builder, loc, pointer, type, elements, /*alignment=*/64));
  }
  OpBuilder builder(outer);
  Value width = arith::ConstantIndexOp::create(builder, loc, size);
  auto tiles = scf::ForOp::create(builder, loc, outer.getLowerBound(), outer.getUpperBound(), width);
  builder.setInsertionPointToStart(tiles.getBody());
  Value first = tiles.getInductionVar();
  if (lo && hi && (*hi - *lo) % size == 0) {
    emitTile(builder, first, width);
  } else {
    // Full tiles have a constant width, so that their accumulators stay in registers.
    Value end = arith::AddIOp::create(builder, loc, first, width, arith::IntegerOverflowFlags::nsw);
    Value isFull = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, end, outer.getUpperBound());
    auto branch = scf::IfOp::create(builder, loc, isFull, /*withElseRegion=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    emitTile(then, first, width);
    emitTile(otherwise, first,
             arith::SubIOp::create(otherwise, loc, outer.getUpperBound(), first, arith::IntegerOverflowFlags::nsw));
  }
  outer.erase();
}

bool dovetail::interchangeLoops(Operation *code) {
  SmallVector<scf::ForOp> loops;
  code->walk([&](scf::ForOp loop) { loops.push_back(loop); });
  bool changes = false;
  for (scf::ForOp loop : loops) {
    Interchange interchange(loop);
    if (!interchange.isPossible())
      continue;
    interchange.perform();
    changes = true;
  }
  return changes;
}
