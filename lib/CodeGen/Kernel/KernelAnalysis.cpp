//===- KernelAnalysis.cpp - Which loops the values of a kernel depend on -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines KernelAnalysis.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"

#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"
#include "dovetail/Dialect/Dovetail/IR/JoinedLines.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

/// How many distinct uses of a value, and how many values behind a reduction, are looked at.
static constexpr unsigned maxUses = 8;
static constexpr unsigned maxVisits = 64;

/// Sorts loops by a key, those of equal keys in the order that they have.
template <typename KeyT> static void sortLoops(SmallVectorImpl<unsigned> &loops, KeyT key) {
  SmallVector<std::tuple<decltype(key(0)), size_t, unsigned>> keyed;
  for (auto [position, loop] : llvm::enumerate(loops))
    keyed.emplace_back(key(loop), position, loop);
  llvm::sort(keyed);
  for (auto [position, entry] : llvm::enumerate(keyed))
    loops[position] = std::get<2>(entry);
}

static bool isExpensive(Operation *op) {
  auto element = dyn_cast<DefinitionOpInterface>(op);
  return element && !element.isCheapElement();
}

KernelAnalysis::KernelAnalysis(plan::KernelOp kernel, bool keepsValues)
    : kernel(kernel), extents(kernel.getLoopExtents()), rank(kernel.getShape().size()), independent(rank, 0) {
  assert(extents.size() <= maxLoops && "checked before");
  auto record = [&](Value value, ArrayRef<Coordinate> index) {
    // Results of one operation are computed together.
    if (Operation *op = value.getDefiningOp())
      value = op->getResult(0);
    auto &indices = uses[value];
    if (indices.size() < maxUses && !llvm::is_contained(indices, index))
      indices.emplace_back(index);
  };
  for (Value value : kernel.getYield().getValues())
    record(value, getResultIndex());

  uint64_t worthwhile = 0;
  for (unsigned loop = 0; loop < rank; ++loop)
    if (extents[loop] > 1)
      worthwhile |= uint64_t(1) << loop;

  for (Operation &op : llvm::reverse(kernel.getBlock()->without_terminator())) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    // A copy: recording uses of operands may grow the map.
    SmallVector<SmallVector<Coordinate>> indices = uses.lookup(op.getResult(0));
    for (ArrayRef<Coordinate> index : indices) {
      SmallVector<Coordinate> loops = getLoopCoordinates(partitionable, index);
      for (unsigned operand = 0; operand < op.getNumOperands(); ++operand)
        record(op.getOperand(operand), getOperandIndex(partitionable, operand, loops));
      if (!isExpensive(&op))
        continue;
      uint64_t depends = 0;
      for (const Coordinate &coordinate : index)
        depends |= coordinate.loops;
      for (unsigned loop = 0; loop < rank; ++loop)
        if ((worthwhile & ~depends) >> loop & 1)
          ++independent[loop];
    }
  }
  if (std::optional<uint64_t> number = kernel.getInPlace())
    inPlace = plan::getInPlaceReads(*kernel.getBlock(), kernel.getArguments()[*number]);
  // What is written over at places that data say, holds nothing else.
  if (keepsValues && (inPlace || !kernel.getInPlace()))
    chooseKeptValue();
  chooseLoopOrder();
}

/// Whether `value` depends on `source` in another way than through `through`.
static bool dependsOn(Value value, Value source, Operation *through) {
  SmallVector<Value> pending = {value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (next == source)
      return true;
    Operation *op = next.getDefiningOp();
    if (op && op != through && seen.insert(next).second)
      llvm::append_range(pending, op->getOperands());
  }
  return false;
}

std::optional<KernelAnalysis::KeptValue> KernelAnalysis::getKept(Operation *op) const {
  // As many additions take longer than to write an element and to read it twice.
  constexpr double worthwhile = 8;
  auto definitionOp = dyn_cast<DefinitionOpInterface>(op);
  Value result = kernel.getYield().getValues().front();
  // In shorter types, memory would round what is kept, and code does not.
  auto type = cast<RankedTensorType>(result.getType());
  if (!definitionOp || op->getNumResults() != 1 || op->getResult(0) == result || op->getResult(0).getType() != type ||
      !(type.getElementType().isF32() || type.getElementType().isF64()) || definitionOp.isReduction())
    return std::nullopt;
  Definition definition = definitionOp.getDefinition();
  if (definition.loops.size() != definition.resultRank || !definition.lines.empty() ||
      countElement(definitionOp, definition, type.getShape()) < worthwhile)
    return std::nullopt;
  Block &body = *kernel.getBlock();
  std::optional<plan::InPlaceReads> reads = plan::getInPlaceReads(body, op->getResult(0));
  if (!reads || reads->row.empty() || reads->values.empty())
    return std::nullopt;
  if (!inPlace)
    return KeptValue{op, std::move(*reads), std::nullopt};
  Value source = kernel.getArguments()[*kernel.getInPlace()];
  std::optional<plan::InPlaceReads> before = plan::getInPlaceReads(body, op->getResult(0), source);
  auto isOfRow = [&](unsigned loop) { return llvm::is_contained(reads->row, loop); };
  if (!before || !llvm::all_of(before->row, isOfRow) || dependsOn(result, source, op))
    return std::nullopt;
  return KeptValue{op, std::move(*reads), std::move(before)};
}

void KernelAnalysis::chooseKeptValue() {
  plan::FormatAttr format = kernel.getResultLayout(0).getFormat();
  auto isStatic = [&](unsigned loop) { return llvm::is_contained(kernel.getStaticLoops(), loop); };
  if (kernel.getYield().getValues().size() != 1 || !llvm::all_of(llvm::seq<unsigned>(rank, extents.size()), isStatic))
    return;
  for (Operation &op : llvm::reverse(kernel.getBlock()->without_terminator())) {
    std::optional<KeptValue> found = getKept(&op);
    if (!found)
      continue;
    // The rows lie in one piece, whole on each rank, and there are others for other threads.
    bool isInRow = true, hasOthers = false;
    for (int64_t loop : llvm::reverse(format.getOrder())) {
      if (extents[loop] == 1)
        continue;
      bool isOwn = llvm::is_contained(found->reads.row, static_cast<unsigned>(loop));
      isInRow &= isOwn;
      hasOthers |= !isOwn;
      if (isOwn && (!isInRow || !isStatic(loop)))
        return;
    }
    if (hasOthers)
      kept = std::move(found);
    return;
  }
}

SmallVector<Coordinate> KernelAnalysis::getResultIndex() const {
  SmallVector<Coordinate> index;
  for (unsigned loop = 0; loop < rank; ++loop)
    index.push_back({uint64_t(1) << loop, static_cast<int>(loop)});
  return index;
}

SmallVector<Coordinate> KernelAnalysis::getLoopCoordinates(DefinitionOpInterface op, ArrayRef<Coordinate> index) const {
  SmallVector<Coordinate> loops(index);
  unsigned first = kernel.getFirstReductionLoop(op);
  for (unsigned i = 0, e = op.getRelation().loops.size() - index.size(); i < e; ++i)
    loops.push_back({uint64_t(1) << (first + i), static_cast<int>(first + i)});
  return loops;
}

SmallVector<Coordinate> KernelAnalysis::getOperandIndex(DefinitionOpInterface op, unsigned operand,
                                                        ArrayRef<Coordinate> loops) const {
  uint64_t all = 0;
  for (Coordinate loop : loops)
    all |= loop.loops;
  OpRelation opRelation = op.getRelation();
  SmallVector<Coordinate> index;
  for (const DimRelation &relation : opRelation.operands[operand]) {
    Coordinate coordinate;
    bool isLookup = relation.loop >= 0 && opRelation.loops[relation.loop].isLookup();
    if (relation.loop >= 0 && !isLookup) {
      coordinate = loops[relation.loop];
      const DimMap &map = relation.map;
      bool unit = map.getKind() == DimMap::Kind::Affine && map.getNum() == 1 && map.getDen() == 1;
      if (!unit)
        coordinate.unit = -1;
      coordinate.shifted |= !map.isIdentity();
      // The terms of a part are read at the loop that goes through them.
      for (unsigned loop = 0; loop < opRelation.loops.size(); ++loop)
        if (opRelation.loops[loop].kind == LoopKind::Part &&
            static_cast<int>(opRelation.loops[loop].dim) == relation.loop) {
          coordinate.loops |= loops[loop].loops;
          coordinate.unit = loops[loop].unit;
        }
    } else if ((isLookup || relation.map.getKind() == DimMap::Kind::Whole) && !isExpensive(op)) {
      // Cheap operations look an element up; expensive ones walk the dimension.
      coordinate.loops = all;
    }
    index.push_back(coordinate);
  }
  return index;
}

//===----------------------------------------------------------------------===//
// Result loops
//===----------------------------------------------------------------------===//

/// How many of the loops inside of a line have accumulators that fit into the nearest cache together; at least one.
unsigned KernelAnalysis::countInner(function_ref<bool(unsigned)> isLine) const {
  constexpr int64_t mostAccumulators = 4096;
  unsigned count = 1;
  int64_t accumulators = extents[order.back()];
  for (unsigned loop : llvm::drop_begin(llvm::reverse(order))) {
    if (isLine(loop) || llvm::MulOverflow(accumulators, extents[loop], accumulators) || accumulators > mostAccumulators)
      break;
    ++count;
  }
  return count;
}

/// Moves the loop along which lines are gone through together, if there is one, to the end of the order.
void KernelAnalysis::chooseJoinedLoop() {
  int64_t lanes = countJoinedLines(getElementTypeOrSelf(lineOp->getResult(0)));
  unsigned *best = nullptr;
  for (unsigned &loop : llvm::reverse(order))
    if (extents[loop] > 1 && (!best || (extents[*best] < lanes && extents[loop] > extents[*best])))
      best = &loop;
  if (!best)
    return;
  std::rotate(best, best + 1, order.end());
  numInner = 1;
}

void KernelAnalysis::chooseLoopOrder() {
  order = llvm::to_vector_of<unsigned>(kernel.getResultLayout(0).getOrder());
  auto root = kernel.getYield().getValues().front().getDefiningOp<DefinitionOpInterface>();
  if (Definition definition = root ? root.getDefinition() : Definition(); !definition.lines.empty()) {
    lineOp = root;
    auto isLine = [&](unsigned loop) { return definition.isLine(loop); };
    if (definition.writes)
      numInner = llvm::find_if(llvm::reverse(order), isLine) - order.rbegin();
    // Where neighbours are not neighbours in memory, there is nothing to gain.
    else if (definition.scan && !isLine(order.back()) && extents[order.back()] > 1)
      numInner = countInner(isLine);
    llvm::erase_if(order, isLine);
    if (lineOp->hasTrait<JoinsLines>())
      chooseJoinedLoop();
    return;
  }
  sortLoops(order, [&](unsigned loop) { return std::pair(isOfRow(loop), independent[loop]); });
  rowDepth = rank == 0 ? 0 : rank - 1;
}

int KernelAnalysis::getParallelLoop() const {
  // Ranges shorter than this leave threads without work.
  constexpr int64_t enough = 16;
  int longest = -1;
  SmallVector<unsigned> loops = order;
  // Of a line that may be cut, a thread writes what lies in its range.
  if (lineOp) {
    Definition definition = cast<DefinitionOpInterface>(lineOp).getDefinition();
    for (unsigned loop : definition.lines)
      if (definition.loops[loop].kind == LoopKind::Parallel)
        loops.push_back(loop);
  }
  for (unsigned loop : loops) {
    // Threads that share an expensive value would each compute it.
    if (extents[loop] <= 1 || isOfRow(loop) || (independent[loop] > 0 && longest >= 0))
      continue;
    if (longest < 0 || (extents[loop] > extents[longest] && (lineOp || loop != order.back())))
      longest = loop;
    if (extents[longest] >= enough)
      break;
  }
  return longest;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void KernelAnalysis::visitReads(Value value, ArrayRef<Coordinate> index,
                                function_ref<void(BlockArgument, ArrayRef<Coordinate>)> visit, unsigned &budget) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return visit(argument, index);
  auto op = value.getDefiningOp<DefinitionOpInterface>();
  if (!op || budget == 0)
    return;
  --budget;
  SmallVector<Coordinate> loops = getLoopCoordinates(op, index);
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    visitReads(op->getOperand(operand), getOperandIndex(op, operand, loops), visit, budget);
}

int64_t KernelAnalysis::getStride(BlockArgument argument, ArrayRef<Coordinate> index, unsigned loop) const {
  constexpr int64_t unknown = int64_t(1) << 40;
  plan::LayoutAttr layout = kernel.getLayout(argument.getArgNumber());
  auto shape = cast<RankedTensorType>(argument.getType()).getShape();
  // Dynamic extents count as those of the whole tensor.
  int64_t stride = 1, found = 0;
  for (int64_t dim : llvm::reverse(layout.getOrder())) {
    if (index[dim].loops >> loop & 1) {
      if (found != 0)
        return unknown;
      // Another loop in the same coordinate does not matter; a factor does.
      found = index[dim].unit != static_cast<int>(loop) ? unknown : stride;
    }
    stride *= layout.getExtents()[dim] < 0 ? shape[dim] : layout.getExtents()[dim];
  }
  return found;
}

SmallVector<KernelAnalysis::Read> KernelAnalysis::getReads(Operation *op) const {
  SmallVector<Read> reads;
  auto partitionable = cast<DefinitionOpInterface>(op);
  SmallVector<SmallVector<Coordinate>> indices = uses.lookup(op->getResult(0));
  if (indices.empty())
    return reads;
  SmallVector<Coordinate> loops = getLoopCoordinates(partitionable, indices.front());
  unsigned budget = maxVisits;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    visitReads(
        op->getOperand(operand), getOperandIndex(partitionable, operand, loops),
        [&](BlockArgument argument, ArrayRef<Coordinate> at) { reads.push_back({argument, llvm::to_vector(at)}); },
        budget);
  return reads;
}

SmallVector<KernelAnalysis::Read> KernelAnalysis::getReads(Value value, ArrayRef<Coordinate> index) const {
  SmallVector<Read> reads;
  unsigned budget = maxVisits;
  visitReads(
      value, index,
      [&](BlockArgument argument, ArrayRef<Coordinate> at) { reads.push_back({argument, llvm::to_vector(at)}); },
      budget);
  return reads;
}

int64_t KernelAnalysis::countJumps(ArrayRef<Read> reads, unsigned loop) const {
  return llvm::count_if(reads, [&](const Read &read) { return getStride(read.first, read.second, loop) > 1; });
}

const KernelAnalysis::FoldOrder &KernelAnalysis::getFoldOrder(Operation *op) {
  auto [entry, isNew] = foldOrders.try_emplace(op);
  if (isNew)
    entry->second = computeFoldOrder(op);
  return entry->second;
}

KernelAnalysis::FoldOrder KernelAnalysis::computeFoldOrder(Operation *op) const {
  auto partitionable = cast<DefinitionOpInterface>(op);
  FoldOrder fold;
  unsigned first = kernel.getFirstReductionLoop(op);
  unsigned resultRank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  for (unsigned i = 0, e = partitionable.getRelation().loops.size() - resultRank; i < e; ++i)
    fold.loops.push_back(first + i);

  // Long strides outside, short ones inside.
  SmallVector<Read> reads = getReads(op);
  sortLoops(fold.loops, [&](unsigned loop) {
    int64_t longest = 0;
    for (auto &[argument, index] : reads)
      longest = std::max(longest, getStride(argument, index, loop));
    return -longest;
  });

  // Of the loops that may be innermost, the one with the fewest reads that jump. Short reductions gain nothing from it.
  constexpr int64_t shortest = 8;
  int64_t inFold = INT64_MAX;
  unsigned *best = nullptr;
  for (unsigned &loop : fold.loops)
    if (extents[loop] >= shortest && countJumps(reads, loop) <= inFold) {
      inFold = countJumps(reads, loop);
      best = &loop;
    }
  if (best)
    std::rotate(best, best + 1, fold.loops.end());
  if (order.empty())
    return fold;
  unsigned row = order[rowDepth];
  auto isOfParts = [&](const Loop &loop) { return loop.kind == LoopKind::Part && loop.dim == row; };
  if (extents[row] > 1 && independent[row] == 0 && llvm::none_of(partitionable.getRelation().loops, isOfParts))
    fold.byRows = countJumps(reads, row) <= inFold;
  // What is read of other rows of the result, too, does not stream.
  bool isOnlyRow = llvm::all_of(order, [&](unsigned loop) { return loop == row || extents[loop] == 1; });
  fold.readsRowsOnce = fold.byRows && !fold.loops.empty() && llvm::all_of(reads, [&](const Read &read) {
                         int64_t stride = getStride(read.first, read.second, row);
                         return (stride == 0 && isOnlyRow) ||
                                (stride == 1 && getStride(read.first, read.second, fold.loops.back()) != 0);
                       });
  return fold;
}

bool KernelAnalysis::isOuter(Operation *op) const {
  SmallVector<SmallVector<Coordinate>> indices = uses.lookup(op->getResult(0));
  if (indices.size() != 1 || cast<RankedTensorType>(op->getResult(0).getType()).getShape() != kernel.getShape())
    return false;
  for (auto [loop, coordinate] : llvm::enumerate(getResultIndex()))
    if (extents[loop] != 1 && indices[0][loop] != coordinate)
      return false;
  return true;
}

SmallVector<Operation *> KernelAnalysis::getOuterReductions() const {
  SmallVector<Operation *> outer;
  for (Operation &op : *kernel.getBlock())
    if (auto each = dyn_cast<DefinitionOpInterface>(op))
      if (each.isReduction() && isOuter(&op))
        outer.push_back(&op);
  return outer;
}
