//===- ShareStorage.cpp - Share memory between values -*- C++ -*-===//
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

#include "Groups.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Library/Library.h"
#include "llvm/ADT/MapVector.h"

namespace dovetail {
#define GEN_PASS_DEF_SHARESTORAGE
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::BufferKind;

namespace {

/// Decides for the values of one function.
class StorageSharer {
public:
  StorageSharer(func::FuncOp function, const layout::Mesh &mesh, bool kernelsInPlace, const Libraries &libraries)
      : block(function.getBody().front()), mesh(mesh), kernelsInPlace(kernelsInPlace), libraries(libraries),
        unit(UnitAttr::get(function.getContext())) {}

  LogicalResult run();

private:
  void shareInPlace(plan::GroupOp group);
  bool mayShareInPlace(plan::GroupOp group, unsigned number);
  /// What is alike for kernels and calls: whether `group` reads operand `number` as the last one, and once.
  bool mayWriteOver(plan::GroupOp group, unsigned number);
  /// Whether nothing else that `group` reads lies where operand `number` does.
  bool liesAlone(plan::GroupOp group, unsigned number);
  /// Whether no other rank's elements of `result` come to lie around this one's.
  bool hasNoHalo(Value result);
  /// Whether the library can write the result of a call over operand `number` of the group.
  bool callWritesOver(plan::GroupOp group, unsigned number);
  /// Whether a kernel can.
  bool kernelWritesOver(plan::GroupOp group, unsigned number);
  /// Has what is computed for the next iteration written over what it takes the place of.
  void shareCarried(plan::EndLoopOp end);
  bool mayShareCarried(plan::EndLoopOp end, plan::GroupOp group, unsigned number);
  /// Whether nobody reads `data` after `group`, nor other ranks at any time.
  static bool isLastRead(Value data, plan::GroupOp group);
  void shareReshard(ReshardOp op);
  /// Says what lies in each buffer, at the end of the function.
  LogicalResult emit();

  /// The value that stands for the memory of `value`.
  Value getLeader(Value value);
  /// What each rank holds of the memory of `value`: the hull of the values in it.
  ShardingAttr getHeld(Value value);
  void join(Value a, Value b);

  Block &block;
  const layout::Mesh &mesh;
  bool kernelsInPlace;
  const Libraries &libraries;
  UnitAttr unit;
  DenseMap<Value, Value> parents;
  DenseMap<Value, ShardingAttr> held;
  /// As `findLoops` gives it.
  DenseMap<Operation *, Operation *> loopOf;
};

struct ShareStorage : dovetail::impl::ShareStorageBase<ShareStorage> {
  using ShareStorageBase::ShareStorageBase;

  void runOnOperation() override;
};

} // namespace

Value StorageSharer::getLeader(Value value) {
  auto parent = parents.find(value);
  if (parent == parents.end())
    return value;
  return parent->second = getLeader(parent->second);
}

ShardingAttr StorageSharer::getHeld(Value value) {
  auto entry = held.find(getLeader(value));
  if (entry != held.end())
    return entry->second;
  return getBoxSharding(value);
}

void StorageSharer::join(Value a, Value b) {
  Value leader = getLeader(a), other = getLeader(b);
  ShardingAttr hull = getHull(getHeld(a), getHeld(b));
  if (leader != other)
    parents[other] = leader;
  held[leader] = hull;
}

bool StorageSharer::isLastRead(Value data, plan::GroupOp group) {
  return llvm::all_of(data.getUsers(), [&](Operation *user) {
    return user == group || (isa<plan::GroupOp, plan::ConvertFormatOp>(user) && user->isBeforeInBlock(group));
  });
}

bool StorageSharer::mayWriteOver(plan::GroupOp group, unsigned number) {
  Value data = group.getInputs()[number], result = group.getOutputs().front();
  // In a loop, the next iteration reads what comes from outside once more.
  return data.getType() == result.getType() && plan::getFormat(data) == plan::getFormat(result) &&
         isLastRead(data, group) && loopOf.lookup(data.getDefiningOp()) == loopOf.lookup(group) &&
         liesAlone(group, number);
}

bool StorageSharer::liesAlone(plan::GroupOp group, unsigned number) {
  Value leader = getLeader(group.getInputs()[number]);
  return llvm::count_if(group.getInputs(), [&](Value input) { return getLeader(input) == leader; }) == 1;
}

bool StorageSharer::hasNoHalo(Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  return llvm::all_of(result.getUsers(), [&](Operation *user) {
    return !isa<ReshardOp>(user) || covers(getBoxSharding(result), getBoxSharding(user->getResult(0)), type, mesh);
  });
}

bool StorageSharer::callWritesOver(plan::GroupOp group, unsigned number) {
  Value data = group.getInputs()[number];
  // What a rank received, or the prologue made, is read again.
  Operation *producer = data.getDefiningOp();
  if (producer && (!isa<plan::GroupOp>(producer) || producer->hasAttr(plan::kPrologueAttrName)))
    return false;
  const Library *library = libraries.get(*group.getLibrary());
  BlockArgument argument = group.getBlock()->getArgument(number);
  if (!library || !argument.hasOneUse() || argument.use_begin()->getOwner() != group.getCall())
    return false;
  std::optional<CallShape> call = CallShape::find(group.getCall());
  return call && library->writesOver(*call, argument.use_begin()->getOperandNumber()) && mayWriteOver(group, number) &&
         hasNoHalo(group.getOutputs().front());
}

bool StorageSharer::mayShareInPlace(plan::GroupOp group, unsigned number) {
  if (group.getLibrary())
    return callWritesOver(group, number);
  // What a user gives, a rank received, or the prologue made, is read again.
  auto producer = group.getInputs()[number].getDefiningOp<plan::GroupOp>();
  if (!producer || producer->hasAttr(plan::kPrologueAttrName) || !mayWriteOver(group, number))
    return false;
  return kernelWritesOver(group, number);
}

bool StorageSharer::kernelWritesOver(plan::GroupOp group, unsigned number) {
  Value result = group.getOutputs().front();
  Block &body = *group.getBlock();
  BlockArgument argument = body.getArgument(number);
  if (cast<DefinitionOpInterface>(group.getRoot()).getDefinition().writes)
    return plan::mayWriteOver(body, argument);
  std::optional<plan::InPlaceReads> reads = kernelsInPlace ? plan::getInPlaceReads(body, argument) : std::nullopt;
  if (!reads)
    return false;
  // Threads divide rows among them.
  auto type = cast<RankedTensorType>(result.getType());
  bool hasRows = reads->row.empty() || llvm::any_of(llvm::seq(type.getRank()), [&](int64_t dim) {
                   return type.getDimSize(dim) > 1 && !llvm::is_contained(reads->row, dim);
                 });
  // Around a halo, what makes the operand would write to memory with gaps.
  return hasRows && hasNoHalo(result);
}

void StorageSharer::shareInPlace(plan::GroupOp group) {
  if (group->hasAttr(plan::kPrologueAttrName) || group->getNumResults() != 1 || group.getInPlace())
    return;
  for (unsigned number = 0; number < group.getInputs().size(); ++number) {
    if (!mayShareInPlace(group, number))
      continue;
    group.setInPlace(number);
    return join(group.getInputs()[number], group.getOutputs().front());
  }
}

bool StorageSharer::mayShareCarried(plan::EndLoopOp end, plan::GroupOp group, unsigned number) {
  Value carried = group.getInputs()[number], next = group.getOutputs().front();
  // Whoever comes behind the loop finds the last one there.
  auto isElsewhere = [&](Operation *user) {
    return user == group || isa<plan::BeginLoopOp, plan::EndLoopOp>(user) ||
           (isa<plan::GroupOp, plan::ConvertFormatOp>(user) &&
            (user->isBeforeInBlock(group) || end->isBeforeInBlock(user)));
  };
  return carried.getType() == next.getType() && plan::getFormat(carried) == plan::getFormat(next) &&
         llvm::all_of(carried.getUsers(), isElsewhere) && liesAlone(group, number) && kernelWritesOver(group, number);
}

void StorageSharer::shareCarried(plan::EndLoopOp end) {
  for (auto [carried, next] : llvm::zip_equal(end.getCarried(), end.getNext())) {
    auto group = next.getDefiningOp<plan::GroupOp>();
    // In an inner loop it is computed several times.
    if (!group || group.getLibrary() || group->getNumResults() != 1 || loopOf.lookup(group) != loopOf.lookup(end))
      continue;
    auto place = llvm::find(group.getInputs(), carried);
    unsigned number = std::distance(group.getInputs().begin(), place);
    if (place == group.getInputs().end() || group.getInPlace() || !mayShareCarried(end, group, number))
      continue;
    group.setInPlace(number);
    join(carried, next);
  }
}

void StorageSharer::shareReshard(ReshardOp op) {
  Value source = op.getOperand(), target = op.getResult();
  if (op.isReduction())
    return;
  auto type = cast<RankedTensorType>(source.getType());
  ShardingAttr from = getBoxSharding(source), to = getBoxSharding(target);
  if (!covers(from, to, type, mesh)) {
    // What is gathered is there for a while, what ranks store of it all the time.
    if (!isGather(op) && covers(to, from, type, mesh))
      join(source, target);
    return;
  }
  op->setAttr(plan::kViewAttrName, unit);
  // A rank needs no more of a constant than its users do.
  bool isConstant = source.getDefiningOp<ConstantOp>() != nullptr;
  if (!isConstant || !llvm::all_of(source.getUsers(), llvm::IsaPred<ReshardOp>))
    return join(source, target);
  Value leader = getLeader(source);
  parents[target] = leader;
  auto entry = held.find(leader);
  held[leader] = entry == held.end() ? to : getHull(entry->second, to);
}

LogicalResult StorageSharer::emit() {
  llvm::MapVector<Value, SmallVector<Value>> storages;
  for (BlockArgument argument : block.getArguments())
    storages[getLeader(argument)].push_back(argument);
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults())
      // Constants without users are in the code of kernels.
      if (!isa<ConstantOp>(op) || !result.use_empty())
        storages[getLeader(result)].push_back(result);
  OpBuilder builder(block.getTerminator());
  for (auto &[leader, values] : storages) {
    plan::FormatAttr format = plan::getFormat(leader);
    if (!format)
      return emitError(leader.getLoc()) << "value of type " << leader.getType()
                                        << " has no memory format; dovetail-choose-formats chooses one";
    BufferKind kind = BufferKind::Arena;
    if (Operation *producer = leader.getDefiningOp())
      kind = isa<ConstantOp>(producer)                    ? BufferKind::Constant
             : producer->hasAttr(plan::kPrologueAttrName) ? BufferKind::Persistent
                                                          : BufferKind::Arena;
    auto type = withSharding(cast<RankedTensorType>(leader.getType()), getHeld(leader));
    plan::StorageOp::create(builder, leader.getLoc(), values, kind, type, format);
  }
  return success();
}

LogicalResult StorageSharer::run() {
  loopOf = findLoops(block);
  for (auto end : block.getOps<plan::EndLoopOp>())
    shareCarried(end);
  for (auto group : block.getOps<plan::GroupOp>())
    shareInPlace(group);
  for (auto op : block.getOps<ReshardOp>())
    shareReshard(op);
  return emit();
}

void ShareStorage::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<MeshOp> mesh = requireModuleMesh(module);
  if (failed(mesh))
    return signalPassFailure();
  FailureOr<Libraries> callable = Libraries::create(module.getLoc(), libraries, features);
  if (failed(callable))
    return signalPassFailure();
  layout::Mesh ranks = mesh->getMesh();
  for (func::FuncOp function : getGraphs(module))
    if (failed(StorageSharer(function, ranks, kernelsInPlace, *callable).run()))
      return signalPassFailure();
}
