//===- KernelElements.cpp - Generates the elements of a kernel -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what KernelEmitter puts inside of its loops: elements of values, loads and folds.
//
//===----------------------------------------------------------------------===//

#include "KernelElements.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dovetail;

Value KernelElements::read(unsigned operand, ArrayRef<Value> index) {
  return emitter.emitValue(op->getOperand(operand), index);
}

std::pair<Value, Value> KernelElements::getLoopRange(unsigned loop) {
  KernelEmitter::Range range = emitter.getRange(op, loop);
  return {range.lo, range.hi};
}

KernelEmitter::Range KernelEmitter::getRange(Operation *op, unsigned loop) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // A result's dimension that is also reduced (softmax) is whole: else the operation would have been decomposed.
  if (loop < type.getRank())
    return {elements.index(0), elements.index(type.getDimSize(loop))};
  return ranges[kernel.getFirstReductionLoop(op) + loop - type.getRank()];
}

//===----------------------------------------------------------------------===//
// Values already emitted
//===----------------------------------------------------------------------===//

/// A number that is the same for values that are computed alike.
unsigned KernelEmitter::getNumber(Value value) {
  if (auto known = valueNumbers.find(value); known != valueNumbers.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  unsigned number;
  if (op && op->getNumResults() == 1 && op->getNumRegions() == 0 && isMemoryEffectFree(op)) {
    std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(op->getName().getAsOpaquePointer()),
                                  reinterpret_cast<uintptr_t>(op->getAttrDictionary().getAsOpaquePointer()),
                                  reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer())};
    for (Value operand : op->getOperands())
      key.push_back(getNumber(operand));
    auto [entry, isNew] = expressionNumbers.try_emplace(key, nextNumber);
    nextNumber += isNew;
    number = entry->second;
  } else {
    number = nextNumber++;
  }
  valueNumbers[value] = number;
  return number;
}

/// True if `value` can be used at the insertion point. Code is only appended, so everything in the enclosing blocks is
/// before it.
bool KernelEmitter::isVisible(Value value) {
  Block *home = value.getParentBlock();
  for (Block *block = builder.getInsertionBlock(); block; block = block->getParentOp()->getBlock()) {
    if (block == home)
      return true;
    if (block == entry)
      return false;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value KernelEmitter::emitValue(Value value, ArrayRef<Value> index) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return emitLoad(arguments[argument.getArgNumber()], cast<RankedTensorType>(value.getType()).getElementType(),
                    index);
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<ConstantOp>(op))
    return emitConstant(constant, index);

  std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(op)};
  for (Value coordinate : index)
    key.push_back(getNumber(coordinate));
  if (auto known = emitted.find(key); known != emitted.end() && isVisible(known->second))
    return known->second;
  Value element = emitOp(op, index);
  emitted[key] = element;
  return element;
}

Value KernelEmitter::emitOp(Operation *op, ArrayRef<Value> index) {
  if (auto row = rows.find(op); row != rows.end()) {
    return narrow(loadRow(row->second, index[order[rowDepth]]), op);
  }
  if (auto rows = moments.find(op); rows != moments.end()) {
    Value coordinate = index[order[rowDepth]];
    auto isMoment = [&](int64_t moment) {
      return elements.compareI(arith::CmpIPredicate::eq, index.back(), elements.index(moment));
    };
    Type type = rows->second.mean.type;
    auto loadCount = [&]() -> Value {
      return LLVM::LoadOp::create(builder, kernel.getLoc(), type, rows->second.count);
    };
    return elements.ifElse(isMoment(0), type, loadCount, [&] {
      return elements.ifElse(
          isMoment(1), type, [&] { return loadRow(rows->second.mean, coordinate); },
          [&] { return loadRow(rows->second.deviations, coordinate); });
    });
  }
  if (auto reduction = dyn_cast<ReductionOpInterface>(op)) {
    SmallVector<unsigned> loops = analysis.getFoldOrder(reduction).loops;
    SmallVector<Value> foldIndex(index);
    foldIndex.append(loops.size(), Value());
    return narrow(emitFold(reduction, loops, foldIndex), op);
  }
  KernelElements source(*this, op);
  return cast<ElementOpInterface>(op).emitElement(elements, index, source);
}

Value KernelEmitter::emitFold(ReductionOpInterface op, ArrayRef<unsigned> loops, SmallVector<Value> &foldIndex) {
  if (loops.empty()) {
    KernelElements source(*this, op);
    return op.emitTerm(elements, foldIndex, source);
  }
  unsigned loop = loops.front();
  unsigned position =
      cast<RankedTensorType>(op->getResult(0).getType()).getRank() + loop - kernel.getFirstReductionLoop(op);
  Range range = ranges[loop];
  if (isStatic(loop) && extents[loop] == 1) {
    foldIndex[position] = range.lo;
    return emitFold(op, loops.drop_front(), foldIndex);
  }
  // Each loop has its own accumulator, so that errors of sums grow with the extents of the loops and not with their
  // product.
  return elements
      .forLoop(range.lo, range.hi, op.emitInit(elements),
               [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                 foldIndex[position] = iv;
                 return {op.emitCombine(elements, carried.front(), emitFold(op, loops.drop_front(), foldIndex))};
               })
      .front();
}

/// Rounds an accumulator to the result's type, if that is a narrower float.
Value KernelEmitter::narrow(Value accumulator, Operation *op) {
  Type type = ElementBuilder::scalarType(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  return accumulator.getType() == type ? accumulator : elements.create<arith::TruncFOp>(type, accumulator);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelEmitter::emitOffset(const Memory &memory, ArrayRef<Value> index) {
  Value offset = elements.index(0);
  for (auto [coordinate, stride] : llvm::zip_equal(index, memory.strides))
    offset = elements.create<arith::AddIOp>(offset, elements.create<arith::MulIOp>(coordinate, stride));
  return offset;
}

Value KernelEmitter::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) {
  return plan::LoadOp::create(builder, kernel.getLoc(), ElementBuilder::scalarType(elementType), memory.base,
                              emitOffset(memory, index));
}

/// The elements of a small constant in row-major order, signless, booleans as bytes.
static DenseElementsAttr flatten(DenseElementsAttr value) {
  Type type = ElementBuilder::scalarType(value.getElementType());
  auto flat = value.reshape(RankedTensorType::get({value.getNumElements()}, value.getElementType()));
  if (type.isInteger(1))
    return flat.mapValues(IntegerType::get(type.getContext(), 8), [](const APInt &bit) { return bit.zext(8); });
  return flat.getElementType() == type ? flat : flat.bitcast(type);
}

Value KernelEmitter::emitConstant(ConstantOp constant, ArrayRef<Value> index) {
  Location loc = constant.getLoc();
  auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
  Type type = ElementBuilder::scalarType(constant.getValue().getElementType());
  if (!value) {
    if (!failed)
      constant.emitOpError("is a resource, which a kernel cannot hold; it must be an argument of the kernel");
    failed = true;
    return elements.zero(type);
  }
  if (value.isSplat()) {
    if (auto floatType = dyn_cast<FloatType>(type))
      return arith::ConstantOp::create(builder, loc, FloatAttr::get(floatType, value.getSplatValue<APFloat>()));
    return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, value.getSplatValue<APInt>()));
  }
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value &base = globals[constant];
  if (!base) {
    DenseElementsAttr flat = flatten(value);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(entry->getParentOp());
    auto array = LLVM::LLVMArrayType::get(flat.getElementType(), flat.getNumElements());
    auto global = LLVM::GlobalOp::create(builder, loc, array, /*isConstant=*/true, LLVM::Linkage::Internal,
                                         (kernel.getSymName() + ".constant" + Twine(globals.size() - 1)).str(), flat);
    builder.setInsertionPointToStart(entry);
    base = LLVM::AddressOfOp::create(builder, loc, pointer, global.getSymName());
  }
  Memory memory{base, {}};
  int64_t stride = 1;
  for (int64_t extent : llvm::reverse(constant.getValue().getShapedType().getShape())) {
    memory.strides.insert(memory.strides.begin(), elements.index(stride));
    stride *= extent;
  }
  return emitLoad(memory, type, index);
}
