//===- KernelEmitter.cpp - Generates the loops of a kernel -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions and loops of a kernel.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

/// Loops of at most so many iterations are unrolled, so that these share what they read.
static constexpr int64_t unrolledExtent = 4;
/// Unrolled loops in each other multiply the code: tensors of many small dimensions would have far too much of it.
static constexpr int64_t maxCopies = 16;

KernelEmitter::KernelEmitter(plan::KernelOp kernel, OpBuilder &builder, KernelAnalysis &analysis)
    : KernelBody(kernel, builder, analysis), parallelLoop(analysis.getParallelLoop()), order(analysis.getLoopOrder()),
      rowDepth(analysis.getRowDepth()) {
  for (Operation *op : analysis.getOuterReductions())
    if (analysis.getFoldOrder(op).byRows)
      rowReductions.push_back(op);
  chooseTransposedLoop();
  chooseProduct();
}

LogicalResult KernelEmitter::emit() {
  func::FuncOp body = emitBodyFunction();
  emitEntryFunction(body);
  return success(!failed);
}

void KernelEmitter::addBounds(IndexBounds &bounds) const {
  for (auto [range, extent] : llvm::zip_equal(ranges, extents))
    for (Value bound : {range.lo, range.hi})
      if (bound && isa<BlockArgument>(bound))
        bounds[bound] = {0, extent};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

bool KernelEmitter::isStatic(unsigned loop) {
  // Threads divide the parallel loop.
  return static_cast<int>(loop) != parallelLoop && KernelBody::isStatic(loop);
}

void KernelEmitter::endRanges() {
  for (auto [loop, argument] : llvm::enumerate(kernel.getCounts().value_or(ArrayRef<int64_t>()))) {
    if (argument < 0)
      continue;
    Value count = emitLoad(arguments[argument], builder.getI64Type(), {});
    count = elements.create<arith::IndexCastOp>(builder.getIndexType(), count);
    auto &[lo, hi] = ranges[loop];
    hi = elements.maxI(lo, elements.minI(hi, count));
  }
}

func::FuncOp KernelEmitter::emitBodyFunction() {
  MLIRContext *context = builder.getContext();
  Location loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto yielded = kernel.getYield().getValues();
  unsigned numTensors = kernel.getArguments().size() + yielded.size();
  unsigned firstNumber = numTensors + !checks.empty();
  SmallVector<Type> types(firstNumber, pointer);

  // Positions of run-time numbers: ranges of loops, then strides of tensors.
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (!isStatic(loop))
      numbers.append({2 * loop, 2 * loop + 1});
  unsigned position = 2 * extents.size();
  auto addStrides = [&](plan::LayoutAttr layout, Type type) {
    for (unsigned dim = 0; dim < layout.getRank(); ++dim, ++position)
      if (hasDynamicStride(layout, type, dim))
        numbers.push_back(position);
  };
  for (BlockArgument argument : kernel.getArguments())
    addStrides(kernel.getLayout(argument.getArgNumber()), argument.getType());
  for (auto [number, value] : llvm::enumerate(yielded))
    addStrides(kernel.getResultLayout(number), value.getType());
  types.append(numbers.size(), builder.getIndexType());

  auto body =
      func::FuncOp::create(builder, loc, (kernel.getSymName() + ".body").str(), builder.getFunctionType(types, {}));
  body.setPrivate();
  for (unsigned i = 0; i < numTensors; ++i)
    body.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());

  OpBuilder::InsertionGuard guard(builder);
  entry = body.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  auto next = entry->args_begin() + firstNumber;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (isStatic(loop)) {
      ranges[loop] = {elements.index(0), elements.index(extents[loop])};
      continue;
    }
    ranges[loop].lo = *next++;
    ranges[loop].hi = *next++;
  }
  auto nextNumber = [&] { return *next++; };
  for (BlockArgument argument : kernel.getArguments()) {
    unsigned number = argument.getArgNumber();
    arguments.push_back(
        createMemory(entry->getArgument(number), kernel.getLayout(number), argument.getType(), nextNumber));
  }
  for (auto [number, value] : llvm::enumerate(yielded))
    results.push_back(createMemory(entry->getArgument(arguments.size() + number), kernel.getResultLayout(number),
                                   value.getType(), nextNumber));
  // Pointers do not alias, so both are accessed through one.
  if (analysis.getInPlaceReads())
    arguments[*kernel.getInPlace()] = results.front();
  if (!checks.empty())
    records = entry->getArgument(numTensors);

  index.assign(rank, {});
  endRanges();
  emitLoops(0);
  func::ReturnOp::create(builder, loc);
  return body;
}

void KernelEmitter::emitEntryFunction(func::FuncOp body) {
  MLIRContext *context = builder.getContext();
  Location loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto function =
      func::FuncOp::create(builder, loc, kernel.getSymName(), builder.getFunctionType({pointer, pointer}, {}));
  OpBuilder::InsertionGuard guard(builder);
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  auto loadAt = [&](Value array, unsigned position, Type type) -> Value {
    Value address =
        LLVM::GEPOp::create(builder, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(position)});
    return LLVM::LoadOp::create(builder, loc, type, address);
  };
  SmallVector<Value> operands;
  for (unsigned i = 0, e = arguments.size() + results.size() + !checks.empty(); i < e; ++i)
    operands.push_back(loadAt(block->getArgument(0), i, pointer));
  for (unsigned position : numbers) {
    Value number = loadAt(block->getArgument(1), position, builder.getI64Type());
    operands.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), number));
  }
  func::CallOp::create(builder, loc, body, operands);
  func::ReturnOp::create(builder, loc);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void KernelEmitter::forEach(Value lo, Value hi, function_ref<void(Value)> body) {
  std::optional<int64_t> first = elements.getConstantIndex(lo), last = elements.getConstantIndex(hi);
  int64_t count = first && last ? std::max<int64_t>(*last - *first, 1) : 1;
  int64_t outerCopies = copies;
  bool unrolled = count <= unrolledExtent && copies * count <= maxCopies;
  if (unrolled)
    copies *= count;
  elements.forEach(lo, hi, body, unrolled ? unrolledExtent : 0);
  copies = outerCopies;
}

void KernelEmitter::emitLoops(unsigned depth) {
  if (Operation *op = analysis.getLineOp(); op && depth == order.size() - analysis.getInnerLoops().size())
    return emitLine(op, analysis.getInnerLoops());
  if (bool hasRow = analysis.getKeptValue() || analysis.getInPlaceReads();
      hasRow && !isInRow && depth == order.size() - analysis.getRow().size()) {
    if (const std::optional<KernelAnalysis::KeptValue> &kept = analysis.getKeptValue()) {
      if (kept->inPlace)
        emitRowValues(*kept->inPlace);
      isInRow = true;
      emitKept(*kept, depth);
      isKept = true;
      emitRowValues(kept->reads);
    } else {
      emitRowValues(*analysis.getInPlaceReads());
    }
    isInRow = true;
    emitLoops(depth);
    isInRow = isKept = false;
    return;
  }
  if (depth == order.size())
    return emitStores();
  unsigned loop = order[depth];
  if (product && depth + 2 == order.size())
    return emitProduct();
  if (depth == rowDepth && !rowReductions.empty())
    return emitTiles();
  if (static_cast<int>(loop) == transposedLoop)
    return emitTilesOf(loop, transposedExtent, [&](Tile tile) {
      transposed = tile;
      emitLoops(depth + 1);
    });
  if (depth + 1 == order.size() && transposedLoop >= 0)
    return emitTransposedTiles();
  forEach(ranges[loop].lo, ranges[loop].hi, [&](Value iv) {
    index[loop] = iv;
    emitLoops(depth + 1);
  });
}

void KernelEmitter::emitRowValues(const plan::InPlaceReads &reads) {
  // They are the same at all coordinates of the row.
  for (unsigned loop : analysis.getRow())
    index[loop] = ranges[loop].lo;
  for (auto [op, number] : reads.values)
    emitValue(op->getOperand(getDefinition(op).reads[number].operand), emitReadIndex(op, number, index));
}

void KernelEmitter::emitKept(const KernelAnalysis::KeptValue &kept, unsigned depth) {
  if (depth < order.size()) {
    unsigned loop = order[depth];
    forEach(ranges[loop].lo, ranges[loop].hi, [&](Value iv) {
      index[loop] = iv;
      emitKept(kept, depth + 1);
    });
    return;
  }
  Value element = emitValue(kept.op->getResult(0), index);
  plan::StoreOp::create(builder, kernel.getLoc(), element, results.front().base, emitOffset(results.front(), index),
                        /*alignment=*/IntegerAttr());
}

Value KernelEmitter::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> at) {
  if (isPrefetching) {
    Type type = ElementBuilder::scalarType(elementType);
    Type bytes = type.isInteger(1) ? builder.getI8Type() : type;
    Value offset = elements.create<arith::IndexCastOp>(builder.getI64Type(), emitOffset(memory, at));
    Value address = LLVM::GEPOp::create(builder, kernel.getLoc(), memory.base.getType(), bytes, memory.base,
                                        ArrayRef<LLVM::GEPArg>{offset});
    LLVM::Prefetch::create(builder, kernel.getLoc(), address, /*rw=*/0, /*hint=*/3, /*cache=*/1);
    return elements.zero(type);
  }
  if (isInRow && analysis.getInPlaceReads() && &memory == &arguments[*kernel.getInPlace()])
    for (unsigned loop = 0; loop < rank; ++loop)
      if (isKept || (extents[loop] != 1 && getNumber(at[loop]) != getNumber(index[loop]))) {
        if (!failed)
          kernel.emitOpError("reads elements that it has overwritten");
        failed = true;
      }
  return KernelBody::emitLoad(memory, elementType, at);
}

void KernelEmitter::emitStores() {
  Location loc = kernel.getLoc();
  for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues())) {
    Value element = emitValue(value, index);
    plan::StoreOp::create(builder, loc, element, results[number].base, emitOffset(results[number], index),
                          /*alignment=*/IntegerAttr());
  }
}

KernelEmitter::Values KernelEmitter::emitOp(Operation *op, ArrayRef<Value> index) {
  if (op == computed.first)
    return {computed.second};
  if (isKept && op == analysis.getKeptValue()->op)
    return {plan::ReadBackOp::create(
        builder, kernel.getLoc(),
        ElementBuilder::scalarType(cast<RankedTensorType>(op->getResult(0).getType()).getElementType()),
        results.front().base, emitOffset(results.front(), index))};
  auto row = rows.find(op);
  if (row == rows.end())
    return KernelBody::emitOp(op, index);
  return emitFinish(cast<DefinitionOpInterface>(op), index, loadRows(row->second, index[order[rowDepth]]));
}
