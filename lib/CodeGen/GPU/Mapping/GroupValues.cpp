//===- GroupValues.cpp - Values that threads compute together -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the reductions of a group: folds divided among its threads, shuffles and shared memory.
//
//===----------------------------------------------------------------------===//

#include "GroupMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// What a tile shares
//===----------------------------------------------------------------------===//

bool GroupMapping::hoist() {
  Block *block = builder.getInsertionBlock();
  while (block != tileBlock) {
    Operation *parent = block->getParentOp();
    // What a condition guards must not be computed without it.
    if (!isa<scf::ForOp>(parent))
      return false;
    builder.setInsertionPoint(parent);
    block = parent->getBlock();
  }
  return true;
}

Value GroupMapping::rematerialize(Value value) {
  if (isVisible(value, tileBlock))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 0 || !isPure(op))
    return {};
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value again = rematerialize(operand);
    if (!again)
      return {};
    mapping.map(operand, again);
  }
  return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}

const KernelBody::Values *GroupMapping::emitShared(DefinitionOpInterface op, ArrayRef<Value> index,
                                                   std::optional<Part> of) {
  OpBuilder::InsertionGuard guard(builder);
  if (!hoist())
    return nullptr;
  SmallVector<Value> foldIndex;
  std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(op.getOperation())};
  for (Value coordinate : index) {
    Value again = rematerialize(coordinate);
    if (!again)
      return nullptr;
    foldIndex.push_back(again);
    key.push_back(getNumber(again));
  }
  if (of) {
    of->number = rematerialize(of->number);
    if (!of->number)
      return nullptr;
    key.push_back(getNumber(of->number));
  }
  if (auto known = tileValues.find(key); known != tileValues.end())
    return &known->second;
  part = of;
  setPartRanges(op, foldIndex);
  SmallVector<Value> at(foldIndex);
  Values found = emitGroupReduction(op, foldIndex);
  if (!part)
    found = emitFinish(op, at, found);
  part.reset();
  return &(tileValues[key] = found);
}

KernelBody::Values GroupMapping::emitOp(Operation *op, ArrayRef<Value> index) {
  if (auto parts = dyn_cast<plan::PartsOp>(op))
    return {emitPart(parts, index)};
  if (!isReduction(op) || (groupThreads == 1 && groupLoops.empty()))
    return BlockMapping::emitOp(op, index);
  const Values *values = emitShared(cast<DefinitionOpInterface>(op), index);
  return values ? *values : BlockMapping::emitOp(op, index);
}

Value GroupMapping::emitPart(plan::PartsOp op, ArrayRef<Value> index) {
  SmallVector<Value> at(index);
  Value number = std::exchange(at[op.getDim()], elements.index(0));
  Type type = ElementBuilder::scalarType(op.getResult().getType().getElementType());
  auto reduction = cast<OpResult>(op.getReduction());
  const Values *values = emitShared(cast<DefinitionOpInterface>(reduction.getOwner()), at, Part{number, op.getCount()});
  if (!values) {
    op.emitOpError("can only be yielded by a kernel");
    failed = true;
    return elements.zero(type);
  }
  Value value = (*values)[reduction.getResultNumber()];
  return value.getType() == type ? value : elements.convertFloat(value, cast<FloatType>(type));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

GroupMapping::Range GroupMapping::getTerms(ArrayRef<unsigned> loops) {
  Value count = countIterations(loops, SmallVector<int64_t>(loops.size(), 1));
  if (!part)
    return {elements.index(0), count};
  // Parts differ by one term at most.
  auto getBegin = [&](Value number) {
    return elements.floorDivI(elements.create<arith::MulIOp>(count, number), part->count);
  };
  return {getBegin(part->number), getBegin(elements.addI(part->number, 1))};
}

KernelBody::Values GroupMapping::emitGroupReduction(DefinitionOpInterface op, SmallVector<Value> &foldIndex) {
  const Definition &definition = getDefinition(op);
  ArrayRef<unsigned> loops = analysis.getFoldOrder(op).loops;
  foldIndex.resize(definition.resultRank + loops.size());
  if (definition.passes.empty())
    return emitGroupFold(op, getFold(op, foldIndex), foldIndex);
  Range terms = getTerms(dropSingles(op, loops, foldIndex));
  Value count = elements.subI(terms.hi, terms.lo);
  return emitPasses(op, definition, elements, count, [&](unsigned pass, ValueRange found) {
    return emitGroupFold(op, getPass(op, pass, foldIndex, [&] { return Values(found); }), foldIndex).front();
  });
}

KernelBody::Values GroupMapping::emitGroupFold(Operation *op, const Fold &fold, SmallVector<Value> &foldIndex) {
  Location loc = kernel.getLoc();
  SmallVector<unsigned> divided = dropSingles(op, analysis.getFoldOrder(op).loops, foldIndex);
  SmallVector<int64_t> steps(divided.size(), 1);
  Type type = getCounterType(divided);
  Range terms = getTerms(divided);
  Value begin = castIndex(type, elements.addI(terms.lo, lane)), end = castIndex(type, terms.hi);
  Value step = castIndex(type, elements.index(groupThreads));
  auto loop = scf::ForOp::create(builder, loc, begin, end, step, fold.emitInit());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    delinearize(loop.getInductionVar(), divided, steps,
                [&](unsigned loop, Value coordinate) { foldIndex[getFoldPosition(op, loop)] = coordinate; });
    scf::YieldOp::create(builder, loc, fold.emitCombine(loop.getRegionIterArgs(), fold.emitTerm()));
  }
  return combineGroup(loop.getResults(), fold);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value GroupMapping::shuffle(Value value, int64_t mask) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(width), word = builder.getI32Type();
  auto exchange = [&](Value bits) -> Value {
    return gpu::ShuffleOp::create(builder, kernel.getLoc(), bits, elements.constantInt(word, mask),
                                  elements.constantInt(word, device.warpThreads), gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Value bits = isa<FloatType>(type) ? elements.create<arith::BitcastOp>(integer, value) : value;
  if (width < 32) {
    bits = elements.create<arith::TruncIOp>(integer, exchange(elements.create<arith::ExtUIOp>(word, bits)));
  } else if (width == 32) {
    bits = exchange(bits);
  } else {
    Value shift = elements.constantInt(integer, 32);
    Value low = exchange(elements.create<arith::TruncIOp>(word, bits));
    Value high = exchange(elements.create<arith::TruncIOp>(word, elements.create<arith::ShRUIOp>(bits, shift)));
    Value top = elements.create<arith::ShLIOp>(elements.create<arith::ExtUIOp>(integer, high), shift);
    bits = elements.create<arith::OrIOp>(top, elements.create<arith::ExtUIOp>(integer, low));
  }
  return isa<FloatType>(type) ? elements.create<arith::BitcastOp>(type, bits) : bits;
}

KernelBody::Values GroupMapping::combineGroup(Values values, const Fold &fold) {
  if (groupThreads == 1)
    return values;
  for (int64_t mask = device.warpThreads / 2; mask > 0; mask /= 2)
    values = fold.emitCombine(values, llvm::map_to_vector(values, [&](Value value) { return shuffle(value, mask); }));
  if (groupThreads == device.warpThreads)
    return values;
  Location loc = kernel.getLoc();
  const int64_t warps = device.blockThreads / device.warpThreads;
  Value size = elements.index(device.warpThreads), zero = elements.index(0);
  Value isFirst = elements.compareI(arith::CmpIPredicate::eq, elements.create<arith::RemUIOp>(thread, size), zero);
  {
    auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    storeShared(values, elements.create<arith::DivUIOp>(thread, size), warps);
  }
  gpu::BarrierOp::create(builder, loc);
  Values total = combineShared(ValueRange(values).getTypes(), zero, 1, warps, warps, fold);
  gpu::BarrierOp::create(builder, loc);
  return total;
}

/// The first element, counted in those of accumulator number `number`, of its array of `size` in shared memory.
static int64_t getFirstElement(TypeRange types, unsigned number, int64_t size) {
  int64_t bytes = 0;
  for (Type type : types.take_front(number))
    bytes += llvm::alignTo(size * getByteWidth(type), sizeof(int64_t));
  return bytes / getByteWidth(types[number]);
}

void GroupMapping::storeShared(ValueRange values, Value position, int64_t size) {
  for (auto [number, value] : llvm::enumerate(values)) {
    int64_t first = getFirstElement(values.getTypes(), number, size);
    shared.store(value, elements.addI(position, first), first + size);
  }
}

KernelBody::Values GroupMapping::combineShared(TypeRange types, Value first, int64_t stride, int64_t count,
                                               int64_t size, const Fold &fold) {
  auto load = [&](int64_t part) {
    Values values;
    for (auto [number, type] : llvm::enumerate(types))
      values.push_back(shared.load(type, elements.addI(first, part * stride + getFirstElement(types, number, size))));
    return values;
  };
  // In the order of the parts, whoever comes first: results do not vary.
  Values total = load(0);
  for (int64_t part = 1; part < count; ++part)
    total = fold.emitCombine(total, load(part));
  return total;
}
