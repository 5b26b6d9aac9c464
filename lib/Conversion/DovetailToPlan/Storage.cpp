//===- Storage.cpp - Share memory between values -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which values share memory: a value and its reshards where one contains the other, and what is written over an
// operand that nobody else reads.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "dovetail/Sharding/ShardingUtils.h"

using namespace mlir;
using namespace dovetail;

Value Storage::getLeader(Value value) const {
  auto parent = parents.find(value);
  if (parent == parents.end())
    return value;
  return parent->second = getLeader(parent->second);
}

ShardingAttr Storage::getHeld(Value value) const {
  auto entry = held.find(getLeader(value));
  if (entry != held.end())
    return entry->second;
  ShardingAttr own = getSharding(value);
  return own ? own.withoutPartial() : own;
}

void Storage::join(Value a, Value b) {
  Value leader = getLeader(a), other = getLeader(b);
  ShardingAttr hull = getHull(getHeld(a), getHeld(b));
  if (leader != other)
    parents[other] = leader;
  held[leader] = hull;
}

/// Whether `op` may write its result over its operand 0, which nobody else reads.
static bool canWriteOver(DefinitionOpInterface op, const Formats &formats, const DenseSet<Value> &constantValues) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  Value data = op->getOperand(0), result = op->getResult(0);
  // What a user gives, a rank received, or the prologue made, is read again.
  return data.hasOneUse() && data.getDefiningOp<DefinitionOpInterface>() && !constantValues.contains(data) &&
         data.getType() == result.getType() && formats.lookup(data) == formats.lookup(result) &&
         op.getDefinition().writes;
}

Storage::Storage(func::FuncOp function, const layout::Mesh &mesh, const Formats &formats,
                 const DenseSet<Value> &constantValues) {
  for (auto op : function.getBody().front().getOps<DefinitionOpInterface>())
    if (canWriteOver(op, formats, constantValues)) {
      inPlace.insert(op);
      join(op->getOperand(0), op->getResult(0));
    }
  for (auto op : function.getBody().front().getOps<ReshardOp>()) {
    Value source = op.getOperand(), target = op.getResult();
    auto type = cast<RankedTensorType>(source.getType());
    ShardingAttr from = getSharding(source), to = getSharding(target);
    bool reduces = from && from.isPartial() && from.getPartialAxes().size() != (to ? to.getPartialAxes().size() : 0);
    ShardingAttr fromBox = from ? from.withoutPartial() : from;
    ShardingAttr toBox = to ? to.withoutPartial() : to;
    if (reduces)
      continue;
    if (covers(fromBox, toBox, type, mesh)) {
      views.insert(op);
      // A rank needs no more of a constant than its users do.
      bool isConstant = source.getDefiningOp<ConstantOp>() != nullptr;
      if (isConstant && llvm::all_of(source.getUsers(), [](Operation *user) { return isa<ReshardOp>(user); })) {
        Value leader = getLeader(source);
        parents[target] = leader;
        auto entry = held.find(leader);
        held[leader] = entry == held.end() ? toBox : getHull(entry->second, toBox);
        continue;
      }
      join(source, target);
    } else if (covers(toBox, fromBox, type, mesh)) {
      join(source, target);
    }
  }
}
