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

const GroupMapping::Values *GroupMapping::emitShared(Operation *op, ArrayRef<Value> index, std::optional<Part> of) {
  OpBuilder::InsertionGuard guard(builder);
  if (!hoist())
    return nullptr;
  SmallVector<Value> foldIndex;
  std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(op)};
  for (Value coordinate : hasMoments(op) ? index.drop_back() : index) {
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
  Values found;
  if (hasMoments(op))
    foldIndex.push_back(elements.index(0));
  if (auto moments = dyn_cast<MomentsOp>(op)) {
    found = emitMoments(moments, foldIndex);
  } else if (auto combined = dyn_cast<plan::CombineMomentsOp>(op)) {
    found = emitCombinedMoments(combined, foldIndex);
  } else {
    auto reduction = cast<DefinitionOpInterface>(op);
    Value folded = emitGroupFold(
        op, emitInit(reduction), foldIndex, [&] { return emitTerm(reduction, foldIndex); },
        [&](Value a, Value b) { return emitCombine(reduction, a, b); });
    found.push_back(part ? folded : emitFinish(reduction, foldIndex, folded));
  }
  part.reset();
  return &(tileValues[key] = found);
}

Value GroupMapping::emitOp(Operation *op, ArrayRef<Value> index) {
  if (auto parts = dyn_cast<plan::PartsOp>(op))
    return emitPart(parts, index);
  bool folds = isReduction(op) && (groupThreads > 1 || !groupLoops.empty());
  if (!folds && !hasMoments(op))
    return BlockMapping::emitOp(op, index);
  const Values *values = emitShared(op, index);
  return values ? selectValue(*values, index) : BlockMapping::emitOp(op, index);
}

Value GroupMapping::emitPart(plan::PartsOp op, ArrayRef<Value> index) {
  SmallVector<Value> at(index);
  Value number = std::exchange(at[op.getDim()], elements.index(0));
  Type type = ElementBuilder::scalarType(op.getResult().getType().getElementType());
  const Values *values = emitShared(op.getReduction().getDefiningOp(), at, Part{number, op.getCount()});
  if (!values) {
    op.emitOpError("can only be what a kernel yields");
    failed = true;
    return elements.zero(type);
  }
  Value value = selectValue(*values, index);
  return value.getType() == type ? value : elements.convertFloat(value, cast<FloatType>(type));
}

Value GroupMapping::selectValue(const Values &values, ArrayRef<Value> index) {
  if (values.size() == 1)
    return values.front();
  auto isMoment = [&](int64_t moment) {
    return elements.compareI(arith::CmpIPredicate::eq, index.back(), elements.index(moment));
  };
  Value others = elements.select(isMoment(1), values[1], values[2]);
  return elements.select(isMoment(0), values[0], others);
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

Value GroupMapping::emitGroupFold(Operation *op, Value init, SmallVector<Value> &foldIndex, function_ref<Value()> term,
                                  Combine combine) {
  Location loc = kernel.getLoc();
  unsigned resultRank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  ArrayRef<unsigned> loops = analysis.getFoldOrder(op).loops;
  foldIndex.resize(resultRank + loops.size());
  SmallVector<unsigned> divided;
  for (unsigned loop : loops)
    if (isStatic(loop) && extents[loop] == 1)
      foldIndex[getFoldPosition(op, loop)] = ranges[loop].lo;
    else
      divided.push_back(loop);
  SmallVector<int64_t> steps(divided.size(), 1);
  Type type = getCounterType(divided);
  Range terms = getTerms(divided);
  Value begin = castIndex(type, elements.addI(terms.lo, lane)), end = castIndex(type, terms.hi);
  auto fold = scf::ForOp::create(builder, loc, begin, end, castIndex(type, elements.index(groupThreads)), init);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(fold.getBody());
    delinearize(fold.getInductionVar(), divided, steps,
                [&](unsigned loop, Value coordinate) { foldIndex[getFoldPosition(op, loop)] = coordinate; });
    Value next = combine(fold.getRegionIterArgs().front(), term());
    scf::YieldOp::create(builder, loc, next);
  }
  return combineGroup(fold.getResult(0), combine);
}

GroupMapping::Values GroupMapping::emitMoments(MomentsOp op, SmallVector<Value> &foldIndex) {
  Type type = op.getType().getElementType();
  auto add = [&](Value a, Value b) { return elements.add(a, b); };
  auto sum = [&](function_ref<Value()> term) { return emitGroupFold(op, elements.zero(type), foldIndex, term, add); };
  ArrayRef<unsigned> loops = analysis.getFoldOrder(op).loops;
  Range terms = getTerms(loops);
  Value number = elements.subI(terms.hi, terms.lo);
  auto toFloat = [&](Value count) -> Value {
    return elements.create<arith::SIToFPOp>(type, castIndex(builder.getI64Type(), count));
  };
  // A rank without elements contributes (0, 0, 0).
  Value divisor = toFloat(elements.maxI(number, elements.index(1)));
  Value mean = elements.div(sum([&] { return emitMomentsOperand(op, type, foldIndex); }), divisor);
  Value deviations = sum([&] {
    Value deviation = elements.sub(emitMomentsOperand(op, type, foldIndex), mean);
    return elements.mul(deviation, deviation);
  });
  return {toFloat(number), mean, deviations};
}

GroupMapping::Values GroupMapping::emitCombinedMoments(plan::CombineMomentsOp op, SmallVector<Value> &foldIndex) {
  Type type = op.getResult().getType().getElementType();
  auto read = [&](int64_t moment) {
    SmallVector<Value> at(ArrayRef(foldIndex).drop_back());
    at[op.getDim()] = foldIndex.back();
    at.back() = elements.index(moment);
    return emitValue(op.getParts(), at);
  };
  auto add = [&](Value a, Value b) { return elements.add(a, b); };
  auto sum = [&](function_ref<Value()> term) { return emitGroupFold(op, elements.zero(type), foldIndex, term, add); };
  return llvm::to_vector_of<Value, 3>(plan::CombineMomentsOp::emitMoments(elements, read, sum));
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

Value GroupMapping::combineGroup(Value value, Combine combine) {
  if (groupThreads == 1)
    return value;
  for (int64_t mask = device.warpThreads / 2; mask > 0; mask /= 2)
    value = combine(value, shuffle(value, mask));
  if (groupThreads == device.warpThreads)
    return value;
  Location loc = kernel.getLoc();
  const int64_t warps = device.blockThreads / device.warpThreads;
  Value size = elements.index(device.warpThreads), zero = elements.index(0);
  Value isFirst = elements.compareI(arith::CmpIPredicate::eq, elements.create<arith::RemUIOp>(thread, size), zero);
  {
    auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    shared.store(value, elements.create<arith::DivUIOp>(thread, size), warps);
  }
  gpu::BarrierOp::create(builder, loc);
  Value total = combineShared(value.getType(), zero, 1, warps, combine);
  gpu::BarrierOp::create(builder, loc);
  return total;
}

Value GroupMapping::combineShared(Type type, Value first, int64_t stride, int64_t count, Combine combine) {
  // In the order of the parts, whoever comes first: results do not vary.
  Value total = shared.load(type, first);
  for (int64_t part = 1; part < count; ++part)
    total = combine(total, shared.load(type, elements.addI(first, part * stride)));
  return total;
}
