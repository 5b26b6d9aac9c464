//===- Exchanges.cpp - Copies and exchanges of a program ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what copies, exchanges and waits read and write, and their verification.
//
//===----------------------------------------------------------------------===//

#include "StepChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

SmallVector<Value> ReorderOp::getStepReads() { return {getSource()}; }
SmallVector<Value> ReorderOp::getStepWrites() { return {getTarget()}; }
SmallVector<Value> ExchangeOp::getStepReads() { return SmallVector<Value>(getSources()); }
SmallVector<Value> ExchangeOp::getStepWrites() { return SmallVector<Value>(getTargets()); }

static LogicalResult verifyCopy(Operation *op, Value source, Value target) {
  if (!equalUpToSharding(getTensor(source), getTensor(target)))
    return op->emitOpError("changes shape or element type from ") << getTensor(source) << " to " << getTensor(target);
  return success();
}

LogicalResult ReorderOp::verify() {
  if (failed(verifyCopy(*this, getSource(), getTarget())))
    return failure();
  return verifyWrites(*this);
}

/// The two names of each way to exchange.
static constexpr std::pair<ExchangeKind, layout::ExchangeKind> exchangeKinds[] = {
    {ExchangeKind::Messages, layout::ExchangeKind::Messages},
    {ExchangeKind::AllReduce, layout::ExchangeKind::AllReduce},
    {ExchangeKind::ReduceScatter, layout::ExchangeKind::ReduceScatter},
    {ExchangeKind::AllGather, layout::ExchangeKind::AllGather},
    {ExchangeKind::PackedGather, layout::ExchangeKind::PackedGather},
};
static_assert(std::size(exchangeKinds) == getMaxEnumValForExchangeKind() + 1);

layout::ExchangeKind plan::toLayout(ExchangeKind kind) {
  return llvm::find_if(exchangeKinds, [&](const auto &entry) { return entry.first == kind; })->second;
}

ExchangeKind plan::fromLayout(layout::ExchangeKind kind) {
  return llvm::find_if(exchangeKinds, [&](const auto &entry) { return entry.second == kind; })->first;
}

void ExchangeOp::build(OpBuilder &builder, OperationState &state, Value source, Value target, StringAttr stepName) {
  build(builder, state, EventType::get(builder.getContext()), ValueRange(source), ValueRange(target),
        ExchangeKind::Messages, ArrayAttr(), stepName);
}

SmallVector<int64_t> ExchangeOp::getOrder(size_t move) {
  if (std::optional<ArrayAttr> orders = getOrders())
    return SmallVector<int64_t>(cast<DenseI64ArrayAttr>((*orders)[move]).asArrayRef());
  return llvm::to_vector(llvm::seq<int64_t>(getTensor(getSources()[move]).getRank()));
}

bool ExchangeOp::keepsSource(size_t move) {
  BufferOp buffer = getBufferOp(getSources()[move]);
  return layout::movesMany(toLayout(getKind())) && buffer && buffer == getBufferOp(getTargets()[move]) &&
         !isPartial(getTensor(getSources()[move]));
}

void ExchangeOp::setOrders(ArrayRef<SmallVector<int64_t>> orders) {
  if (llvm::all_of(orders, [](ArrayRef<int64_t> order) { return llvm::is_sorted(order); })) {
    removeOrdersAttr();
    return;
  }
  Builder builder(getContext());
  setOrdersAttr(builder.getArrayAttr(llvm::map_to_vector(
      orders, [&](ArrayRef<int64_t> order) -> Attribute { return builder.getDenseI64ArrayAttr(order); })));
}

/// Checks one move of an exchange; `order` is that of dimensions in its messages.
static LogicalResult verifyMove(ExchangeOp op, Value source, Value target, ArrayRef<int64_t> order) {
  auto getPartialAxes = [](Value ref) {
    ShardingAttr sharding = getSharding(getTensor(ref));
    return sharding ? sharding.getPartialAxes() : ArrayRef<StringAttr>();
  };
  ArrayRef<StringAttr> before = getPartialAxes(source), after = getPartialAxes(target);
  for (StringAttr axis : after)
    if (!llvm::is_contained(before, axis))
      return op.emitOpError("makes the value partial over mesh axis ") << axis;
  bool combines = op.getKind() == ExchangeKind::AllReduce || op.getKind() == ExchangeKind::ReduceScatter;
  if (combines && before.size() == after.size())
    return op.emitOpError("is by ") << stringifyExchangeKind(op.getKind()) << ", but combines nothing";
  if (op.getKind() == ExchangeKind::PackedGather && before.size() != after.size())
    return op.emitOpError("is by ") << stringifyExchangeKind(op.getKind()) << ", but combines contributions";
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(getTensor(source).getRank())))
    return op.emitOpError("has messages in an order that is not a permutation of its dimensions");
  return verifyCopy(op, source, target);
}

LogicalResult ExchangeOp::verify() {
  size_t count = getNumMoves();
  if (count == 0 || getTargets().size() != count)
    return emitOpError("has ") << count << " sources and " << getTargets().size() << " targets";
  if (getOrders() && getOrders()->size() != count)
    return emitOpError("has ") << getOrders()->size() << " orders of dimensions for " << count << " moves";
  if (count > 1 && !layout::movesMany(toLayout(getKind())))
    return emitOpError("is by ") << stringifyExchangeKind(getKind()) << ", but moves " << count << " tensors";
  for (auto [number, source, target] : llvm::enumerate(getSources(), getTargets()))
    if (failed(verifyMove(*this, source, target, getOrder(number))))
      return failure();
  // Their elements go in any order.
  auto areShared = [](Value a, Value b) { return a == b || (getBufferOp(a) && getBufferOp(a) == getBufferOp(b)); };
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < count; ++k)
      if (i != k && (areShared(getTargets()[i], getTargets()[k]) || areShared(getTargets()[i], getSources()[k])))
        return emitOpError("has moves ") << i << " and " << k
                                         << " of which the first writes into a buffer of the other";
  return verifyWrites(*this);
}

SmallVector<Value> WaitOp::getStepReads() { return {}; }
SmallVector<Value> WaitOp::getStepWrites() { return {}; }

LogicalResult WaitOp::verify() {
  if (getComplete().empty() && getRead().empty())
    return emitOpError("waits for nothing");
  for (Value event : getOperands())
    if (event.getParentBlock() != (*this)->getBlock())
      return emitOpError("waits for a step of another list");
  for (Value event : getRead())
    if (llvm::none_of(event.getUsers(), [&](Operation *user) {
          auto wait = dyn_cast<WaitOp>(user);
          return wait && llvm::is_contained(wait.getComplete(), event) &&
                 (wait == *this || (wait->getBlock() == (*this)->getBlock() && wait->isBeforeInBlock(*this)));
        }))
      return emitOpError("waits until others have read for an exchange that may not be complete");
  return success();
}
