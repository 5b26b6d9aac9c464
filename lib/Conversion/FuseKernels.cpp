//===- FuseKernels.cpp - Fuse operations into kernels -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups operations that become one kernel.
//
//===----------------------------------------------------------------------===//

#include "FormatCosts.h"
#include "Groups.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Plan/IR/PackedWeights.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

#include <queue>

namespace dovetail {
#define GEN_PASS_DEF_FUSEKERNELS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::FormatAttr;

/// A kernel with more arguments gains nothing and compiles slowly.
static constexpr size_t kMaxArguments = 24;
/// For one element of a kernel's result, a fused operation is computed at no more than so many places.
static constexpr size_t kMaxPlaces = 4;

static RankedTensorType getType(Operation *op) { return cast<RankedTensorType>(op->getResult(0).getType()); }

/// True if `op` folds over elements of its one operand.
static bool isReduction(Operation *op) {
  auto partitionable = dyn_cast<DefinitionOpInterface>(op);
  return partitionable && op->getNumOperands() == 1 && partitionable.isReduction();
}

static bool isCheap(Operation *op) {
  auto element = dyn_cast<DefinitionOpInterface>(op);
  return element && element.isCheapElement();
}

static bool isUniformConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return elements && elements.isSplat();
}

/// True if every operand dimension has the coordinates of the result's dimension aligned with it, or is broadcast.
static bool isPointwise(Operation *op) {
  auto partitionable = dyn_cast<DefinitionOpInterface>(op);
  if (!partitionable || isReduction(op))
    return false;
  OpRelation relation = partitionable.getRelation();
  int64_t rank = getType(op).getRank();
  for (ArrayRef<DimRelation> dims : relation.operands)
    for (auto [dim, entry] : llvm::enumerate(dims)) {
      int64_t aligned = rank - dims.size() + dim;
      if (entry.loop >= 0 ? entry.loop != aligned || !entry.map.isIdentity()
                          : entry.map.getKind() != layout::DimMap::Kind::Point)
        return false;
    }
  return true;
}

/// True if `shape` equals `full` up to some dimension in physical order and is 1 from there on: constant along rows.
static bool isRowBroadcast(ArrayRef<int64_t> shape, ArrayRef<int64_t> full, FormatAttr format) {
  if (shape.size() != full.size())
    return false;
  bool inRow = false;
  for (int64_t dim : format.getOrder()) {
    inRow |= shape[dim] != full[dim];
    if (inRow && shape[dim] != 1)
      return false;
  }
  return true;
}

namespace {
/// Where an operation of a kernel is computed for one element of the kernel's result: hashes of the ways that indices
/// take from there. Equal ones mean the same element.
using Places = llvm::SmallSetVector<size_t, 4>;

/// An operation of a kernel. Its operands' producers ask for all of this, so it is computed once.
struct Member {
  Places places;
  bool isPointwise;
  bool hasLineOfRoot;
};
using Members = DenseMap<Operation *, Member>;

/// The operations of a block that may become kernels, and the position of each.
struct FusibleOps {
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> positions;
};

/// Producers of what a kernel reads, from the last one in the block to the first. Each comes after its users in the
/// kernel. The rest of the block is not looked at: whoever joins the kernel is read by one of its operations.
class Candidates {
public:
  explicit Candidates(const FusibleOps &fusible) : fusible(fusible) {}

  void addProducers(Operation *member) {
    for (Value operand : member->getOperands())
      if (auto entry = fusible.positions.find(operand.getDefiningOp()); entry != fusible.positions.end())
        pending.push(entry->second);
  }
  /// The next one, which is not returned again; null if there is none.
  Operation *next() {
    if (pending.empty())
      return nullptr;
    unsigned position = pending.top();
    while (!pending.empty() && pending.top() == position)
      pending.pop();
    return fusible.ops[position];
  }

private:
  const FusibleOps &fusible;
  std::priority_queue<unsigned> pending;
};

struct FuseKernels : dovetail::impl::FuseKernelsBase<FuseKernels> {
  using FuseKernelsBase::FuseKernelsBase;

  void runOnOperation() override;
};
} // namespace

/// The places at which users, all of them `members` of the kernel, read `op`. A chain of n operations that each read
/// their operand directly and shifted, such as a scan by doubling, has 2^n: there it must be stored now and then.
static Places getPlaces(Operation *op, const Members &members) {
  Places places;
  for (OpOperand &use : op->getUses()) {
    const Member &user = members.find(use.getOwner())->second;
    for (size_t place : user.places) {
      places.insert(user.isPointwise
                        ? place
                        : static_cast<size_t>(llvm::hash_combine(place, use.getOwner(), use.getOperandNumber())));
      if (places.size() > kMaxPlaces)
        return places;
    }
  }
  return places;
}

/// True if each line of `op`, all of whose users are `members`, belongs to the line of the root at the same place,
/// whichever of them one follows from the one to the other. Shapes alone do not tell: a shift by slices and a
/// concatenation keeps them.
static bool hasLineOfRoot(Operation *op, const Members &members) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    const Member &member = members.find(user)->second;
    return (member.isPointwise || isReduction(user)) && member.hasLineOfRoot;
  });
}

/// True if `user` reads no element of the operand of `use` twice: it has a result for each, where it may have more of
/// others, and none is shifted onto another.
static bool readsOnce(OpOperand &use) {
  auto user = dyn_cast<DefinitionOpInterface>(use.getOwner());
  if (!user || !isCheap(user))
    return false;
  Definition definition = user.getDefinition();
  if (definition.loops.size() != definition.resultRank || !definition.lines.empty() || definition.writes)
    return false;
  unsigned reads = 0;
  for (const Access &access : definition.reads) {
    if (access.operand != use.getOperandNumber())
      continue;
    BitVector seen(definition.loops.size());
    for (const layout::AccessDim &dim : access.dims) {
      // The sum of one loop and a constant.
      std::optional<int> loop = (dim.index - layout::IndexExpr(dim.index.getConstant())).asLoop();
      if (!loop || dim.divisor != 1 || dim.border != layout::Border::None)
        return false;
      seen.set(*loop);
    }
    for (auto [number, loop] : llvm::enumerate(definition.loops))
      if (loop.extent > 1 && !seen[number])
        return false;
    ++reads;
  }
  return reads == 1;
}

/// Whether each element of `op`, whose users are all members of the kernel of `root`, is computed once there at most,
/// in the order in which it would be stored.
static bool isComputedOnce(Operation *op, Operation *root) {
  for (; op != root; op = *op->getUsers().begin()) {
    if (op->getNumResults() != 1 || !op->getResult(0).hasOneUse())
      return false;
    OpOperand &use = *op->getResult(0).use_begin();
    Operation *user = use.getOwner();
    if (!readsOnce(use) || readsWithGaps(cast<DefinitionOpInterface>(user), use.getOperandNumber(),
                                         plan::getFormat(op->getResult(0)), plan::getFormat(user->getResult(0))))
      return false;
  }
  return true;
}

/// Whether `op` does no more than to say where the elements of its operand are: it reads one for each of its own, and
/// computes nothing but, maybe, a sign.
static bool isAddress(Operation *op) {
  auto partitionable = dyn_cast<SplitOpInterface>(op);
  if (!partitionable || op->getNumOperands() != 1 || op->getNumResults() != 1 || !isCheap(op) ||
      !partitionable.isLinearIn(0u) || getType(op).getElementType() != getElementTypeOrSelf(op->getOperand(0)))
    return false;
  Definition definition = partitionable.getDefinition();
  return !definition.isFold && !definition.writes && definition.lines.empty() &&
         definition.loops.size() == definition.resultRank && definition.reads.size() == 1;
}

/// Whether `op` says where elements are that are stored in the order in which it would store them.
static bool isAddressInOrder(Operation *op) {
  return isAddress(op) && !readsWithGaps(cast<DefinitionOpInterface>(op), 0, plan::getFormat(op->getOperand(0)),
                                         plan::getFormat(op->getResult(0)));
}

/// Whether `op` gives the same everywhere: constants that become part of the code.
static bool isUniform(Operation *op) {
  return isCheap(op) && op->getNumOperands() > 0 && llvm::all_of(op->getOperands(), isUniformConstant);
}

/// Whether each element of `definition` is computed for itself.
static bool isOfElements(const Definition &definition) {
  return !definition.isFold && !definition.writes && !definition.scan && definition.lines.empty();
}

/// Whether `op` computes integers, each for itself.
static bool computesIntegers(Operation *op) {
  if (!op || !isCheap(op) || !getType(op).getElementType().isInteger())
    return false;
  Definition definition = cast<DefinitionOpInterface>(op).getDefinition();
  return isOfElements(definition) && definition.loops.size() == definition.resultRank;
}

/// Whether what `use` reads are integers, each computed for itself, of which are made, in the same way and for nobody
/// else, those of which an operation that writes reads each once: where updates go, or what they are.
static bool isPlace(OpOperand &use) {
  // What is made of them is short; each is looked at for all that it is made of.
  constexpr size_t most = 32;
  if (!computesIntegers(use.get().getDefiningOp()))
    return false;
  SmallVector<OpOperand *> pending = {&use};
  SmallPtrSet<Operation *, 8> seen;
  while (!pending.empty()) {
    OpOperand *next = pending.pop_back_val();
    auto user = dyn_cast<DefinitionOpInterface>(next->getOwner());
    if (!user)
      return false;
    if (user.getDefinition().writes) {
      if (next->getOperandNumber() == 0)
        return false;
      continue;
    }
    if (!seen.insert(user).second)
      continue;
    if (seen.size() > most || user->use_empty() || !computesIntegers(user))
      return false;
    for (OpOperand &later : user->getUses())
      pending.push_back(&later);
  }
  return true;
}

/// Whether `use` reads what is stored in the order in which it would be stored anew: then there is nothing to gain by
/// that, however often it reads an element. Where there are lines, or elements are written where data say, an operation
/// may do as it likes with its operands; those of products go into shared memory.
static bool readsAddress(OpOperand &use) {
  Operation *op = use.get().getDefiningOp();
  auto user = dyn_cast<DefinitionOpInterface>(use.getOwner());
  if (!user || !isCheap(op))
    return false;
  Definition definition = user.getDefinition();
  // Where an update goes is read once, and what is the same everywhere need not be in memory.
  if (isPlace(use) || (definition.writes && isUniform(op)))
    return true;
  return isAddressInOrder(op) &&
         (definition.isFold ? !definition.isProduct : definition.writes && use.getOperandNumber() > 0);
}

/// Whether `use` reads a part that is stored elsewhere, such as an end of a tensor, as one part of a larger result.
static bool joinsAddress(OpOperand &use) {
  Operation *op = use.get().getDefiningOp();
  return isAddressInOrder(op) && readsOnce(use) &&
         getType(use.getOwner()).getNumElements() > getType(op).getNumElements();
}

/// Whether `op`, all of whose users are `members` of the kernel of `root`, may join them.
static bool canAbsorb(Operation *op, Operation *root, const Members &members) {
  if (!isa<DefinitionOpInterface>(op) || op->use_empty())
    return false;
  for (OpOperand &use : op->getUses()) {
    Operation *user = use.getOwner();
    if (!members.contains(user))
      return false;
    // Whoever reads an element often should find it in memory, unless that is what is to be saved.
    if (user->hasAttr(plan::kGeneratedAttrName) && op->hasAttr(plan::kEachRunAttrName))
      continue;
    if (!isCheap(user) && !isReduction(user) && !readsAddress(use))
      return false;
  }
  RankedTensorType type = getType(op), rootType = getType(root);
  bool isRow = isRowBroadcast(type.getShape(), rootType.getShape(), plan::getFormat(root->getResult(0))) &&
               hasLineOfRoot(op, members);
  if (isReduction(op)) {
    // Rows: reduce, then go over the row again, with the result in a register.
    if (isReduction(root) || !isRow)
      return false;
    if (isPartial(op->getResult(0)))
      return false;
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    return operand.getShape() == rootType.getShape() &&
           operand.getNumElements() / std::max<int64_t>(1, type.getNumElements()) <= plan::kMaxRow;
  }
  // What costs more is not computed twice.
  if (!isCheap(op)) {
    return isOfElements(cast<DefinitionOpInterface>(op).getDefinition()) && isComputedOnce(op, root);
  }
  if (llvm::all_of(op->getUses(), readsAddress) || llvm::all_of(op->getUses(), joinsAddress))
    return true;
  // A small value that many elements share is cheaper to store than to recompute, unless it is constant along rows.
  int64_t volume = rootType.getNumElements();
  for (Operation *user : op->getUsers())
    if (isReduction(user))
      volume = std::max(volume, cast<RankedTensorType>(user->getOperand(0).getType()).getNumElements());
  return type.getNumElements() * 4 >= volume || isRow;
}

/// What a kernel of `ops` reads, in order of use. Uniform constants become part of its code.
static GroupInputs getInputs(ArrayRef<Operation *> ops, const Members &members) {
  GroupInputs inputs;
  DenseMap<Value, unsigned> numbers;
  for (Operation *op : ops)
    for (OpOperand &operand : op->getOpOperands()) {
      if (members.contains(operand.get().getDefiningOp()) || isUniformConstant(operand.get()))
        continue;
      auto [number, isNew] = numbers.try_emplace(operand.get(), inputs.values.size());
      if (isNew)
        inputs.add(operand);
      else
        inputs.numbers[&operand] = number->second;
    }
  return inputs;
}

/// Makes a copy of `op` for the users among `members`, so that each kernel that reads it has its own and nobody stores
/// it, if all other users may do the same: they are in no group yet. Null if that is not so.
static Operation *copyAddress(Operation *op, const Members &members) {
  // What is read with gaps is brought into order once, for all.
  FormatAttr format = isAddress(op) ? plan::getFormat(op->getOperand(0)) : FormatAttr();
  if (!format || readsWithGaps(cast<DefinitionOpInterface>(op), 0, format, plan::getFormat(op->getResult(0))))
    return nullptr;
  auto isMember = [&](Operation *user) { return members.contains(user); };
  auto mayAbsorb = [&](Operation *user) {
    return isMember(user) || (user->hasAttr(plan::kFormatsAttrName) && isCheap(user));
  };
  if (llvm::none_of(op->getUsers(), isMember) || llvm::all_of(op->getUsers(), isMember) ||
      !llvm::all_of(op->getUsers(), mayAbsorb))
    return nullptr;
  Operation *copy = OpBuilder(op).clone(*op);
  op->getResult(0).replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) { return isMember(use.getOwner()); });
  return copy;
}

/// Whether `op` reads indices from data, which are reported where they are out of range.
static bool readsIndices(Operation *op) {
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  return defined && !defined.getDefinition().getDataIndices().empty();
}

/// Makes a kernel of `root` and what it absorbs, of the same loop: what comes before one is not computed in each
/// iteration. What looks up indices stays in its choice, as these may be nowhere if it is not done.
static void formKernel(Operation *root, const FusibleOps &fusible, const DenseMap<Operation *, Operation *> &loops,
                       const DenseMap<Operation *, Operation *> &regions) {
  Members members;
  Candidates candidates(fusible);
  SmallVector<Operation *> ops;
  llvm::SmallSetVector<Value, 16> arguments;
  auto add = [&](Operation *op, Places places, bool hasLine) {
    members[op] = {std::move(places), isPointwise(op), hasLine};
    ops.push_back(op);
    for (Value result : op->getResults())
      arguments.remove(result);
    arguments.insert(op->operand_begin(), op->operand_end());
    candidates.addProducers(op);
  };
  Places once;
  once.insert(0);
  add(root, std::move(once), /*hasLine=*/true);
  while (Operation *op = arguments.size() < kMaxArguments ? candidates.next() : nullptr) {
    if (loops.lookup(op) != loops.lookup(root))
      continue;
    // The copy is before the original, which is for other kernels.
    Operation *original = op;
    if (Operation *copy = copyAddress(op, members))
      op = copy;
    bool mayLeave = regions.lookup(original) == regions.lookup(root) || !readsIndices(original);
    Places places;
    if (mayLeave && canAbsorb(op, root, members) && (places = getPlaces(op, members)).size() <= kMaxPlaces) {
      add(op, std::move(places), hasLineOfRoot(op, members));
    } else if (op != original) {
      op->replaceAllUsesWith(original);
      op->erase();
    }
  }
  std::reverse(ops.begin(), ops.end());
  formGroup(ops, getInputs(ops, members), /*library=*/{});
}

void FuseKernels::runOnOperation() {
  if (getOperation().isDeclaration())
    return;
  Block &block = getOperation().getBody().front();
  DenseMap<Operation *, Operation *> loops = findLoops(block), regions = findRegions(block);
  FusibleOps fusible;
  for (auto op : block.getOps<DefinitionOpInterface>()) {
    if (!op->hasAttr(plan::kFormatsAttrName)) {
      op.emitOpError("has no memory formats; dovetail-choose-formats chooses them");
      return signalPassFailure();
    }
    fusible.positions[op] = fusible.ops.size();
    fusible.ops.push_back(op);
  }
  for (Operation *op : llvm::reverse(fusible.ops))
    if (op->getBlock() == &block) // Others are in kernels by now.
      formKernel(op, fusible, loops, regions);
}
