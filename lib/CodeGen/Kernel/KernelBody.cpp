//===- KernelBody.cpp - Generates the elements of a kernel -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines KernelBody.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"

#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dovetail;

/// Folds of at most so many terms are unrolled.
static constexpr uint64_t mostUnrolled = 4;

/// Gives an operation of a kernel's body its operands: elements in memory, or computed where they are read.
class KernelBody::Operands : public ElementSource {
public:
  Operands(KernelBody &body, Operation *op) : body(body), op(op) {}

  Value read(unsigned operand, ArrayRef<Value> index) override {
    return body.emitValue(op->getOperand(operand), index);
  }
  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    Range range = body.getRange(op, loop);
    return {range.lo, range.hi};
  }
  void checkIndex(unsigned loop, Value isWrong, Value given) override { body.emitIndexCheck(op, loop, isWrong, given); }

private:
  KernelBody &body;
  Operation *op;
};

/// Where the lines of an operation that computes the kernel's results go.
class KernelBody::Results : public ElementSink {
public:
  explicit Results(KernelBody &body) : body(body) {}

  void write(unsigned result, ArrayRef<Value> index, Value element) override {
    const Memory &memory = body.results[result];
    plan::StoreOp::create(body.builder, body.kernel.getLoc(), element, memory.base, body.emitOffset(memory, index),
                          /*alignment=*/IntegerAttr());
  }
  Value readBack(unsigned result, ArrayRef<Value> index) override {
    const Memory &memory = body.results[result];
    auto type = cast<RankedTensorType>(body.kernel.getYield().getValues()[result].getType());
    return plan::ReadBackOp::create(body.builder, body.kernel.getLoc(),
                                    ElementBuilder::scalarType(type.getElementType()), memory.base,
                                    body.emitOffset(memory, index));
  }

  Value createScratch(Type type, int64_t size) override { return body.createBuffer(type, size); }
  Value loadScratch(Value scratch, Type type, Value position) override {
    return body.loadFrom(scratch, type, position);
  }
  void storeScratch(Value scratch, Value position, Value scalar) override { body.storeTo(scratch, position, scalar); }
  bool isInPlace() override { return body.kernel.getInPlace().has_value(); }

private:
  KernelBody &body;
};

KernelBody::KernelBody(plan::KernelOp kernel, OpBuilder &builder, KernelAnalysis &analysis)
    : kernel(kernel), builder(builder), elements(builder, kernel.getLoc()), analysis(analysis),
      loops(kernel.getLoops()), extents(kernel.getLoopExtents()), rank(kernel.getShape().size()),
      ranges(extents.size()), checks(kernel.getIndexChecks()) {}

bool KernelBody::isStatic(unsigned loop) {
  if (loops[loop].kind == LoopKind::Part)
    return false;
  // A kernel is not called when a range of a result loop is empty.
  return (loop < rank && extents[loop] == 1) || llvm::is_contained(kernel.getStaticLoops(), loop);
}

KernelBody::Range KernelBody::getRange(Operation *op, unsigned loop) {
  const Definition &definition = getDefinition(op);
  bool isTap = definition.loops[loop].kind == LoopKind::Tap;
  if (loop >= definition.resultRank && !isTap)
    return ranges[kernel.getFirstReductionLoop(op) + loop - definition.resultRank];
  if (!isTap && !definition.lines.empty())
    return ranges[loop];
  return {elements.index(0), elements.index(definition.loops[loop].extent)};
}

unsigned KernelBody::getFoldPosition(Operation *op, unsigned loop) {
  return cast<RankedTensorType>(op->getResult(0).getType()).getRank() + loop - kernel.getFirstReductionLoop(op);
}

//===----------------------------------------------------------------------===//
// Values already emitted
//===----------------------------------------------------------------------===//

unsigned KernelBody::getNumber(Value value) {
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

// Code is only appended, so everything in the enclosing blocks is before it.
bool KernelBody::encloses(Block *outer, Block *block) {
  for (;; block = block->getParentOp()->getBlock()) {
    if (block == outer)
      return true;
    if (!block || block == entry)
      return false;
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value KernelBody::emitValue(Value value, ArrayRef<Value> index) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return emitLoad(arguments[argument.getArgNumber()], cast<RankedTensorType>(value.getType()).getElementType(),
                    index);
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<ConstantOp>(op))
    return emitConstant(constant, index);

  std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(op)};
  for (Value coordinate : index)
    key.push_back(getNumber(coordinate));
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto isKnown = [&](Value element) { return isVisible(element, builder.getInsertionBlock()); };
  if (auto known = emitted.find(key); known != emitted.end() && isKnown(known->second[number]))
    return known->second[number];
  return (emitted[key] = emitOp(op, index))[number];
}

KernelBody::Values KernelBody::emitOp(Operation *op, ArrayRef<Value> index) {
  if (isReduction(op)) {
    auto reduction = cast<DefinitionOpInterface>(op);
    SmallVector<unsigned> loops = analysis.getFoldOrder(op).loops;
    SmallVector<Value> foldIndex(index);
    foldIndex.append(loops.size(), Value());
    setPartRanges(op, index);
    return emitFinish(reduction, index, emitReduction(reduction, loops, foldIndex));
  }
  Operands source(*this, op);
  return emitElement(op, getDefinition(op), elements, index, source);
}

void KernelBody::emitLine(Operation *op, ArrayRef<unsigned> inner) {
  Operands source(*this, op);
  Results sink(*this);
  SmallVector<Value> loops(index);
  const Definition &definition = getDefinition(op);
  for (unsigned loop : definition.lines)
    loops[loop] = {};
  for (unsigned loop : inner)
    loops[loop] = {};
  LineBuilder line(elements, op, definition, loops, source, sink, inner);
  cast<DefinitionOpInterface>(op).emitLine(line);
}

void KernelBody::emitIndexCheck(Operation *op, unsigned loop, Value isWrong, Value given) {
  auto check = llvm::find_if(checks, [&](const plan::IndexCheck &each) { return each.op == op && each.loop == loop; });
  if (check == checks.end())
    return;
  // Elements that are computed together often share an index.
  auto number = static_cast<unsigned>(check - checks.begin());
  Block *&block = checked[{number, getNumber(isWrong), getNumber(given)}];
  if (block && encloses(block, builder.getInsertionBlock()))
    return;
  block = builder.getInsertionBlock();
  plan::CheckIndexOp::create(builder, kernel.getLoc(), isWrong, given, records, number);
}

const Definition &KernelBody::getDefinition(Operation *op) {
  std::unique_ptr<Definition> &definition = definitions[op];
  if (!definition)
    definition = std::make_unique<Definition>(cast<DefinitionOpInterface>(op).getDefinition());
  return *definition;
}

bool KernelBody::isReduction(Operation *op) {
  return isa<DefinitionOpInterface>(op) && getDefinition(op).isFold && getDefinition(op).getNumReductions() > 0;
}

SmallVector<Value> KernelBody::emitReadIndex(Operation *op, unsigned read, ArrayRef<Value> loops) {
  Operands source(*this, op);
  return BodyBuilder(elements, op, getDefinition(op), loops, source).getIndex(read);
}

Value KernelBody::emitIsInside(Operation *op, unsigned read, ArrayRef<Value> loops) {
  Operands source(*this, op);
  return BodyBuilder(elements, op, getDefinition(op), loops, source).isInside(read);
}

KernelBody::Values KernelBody::emitFinish(DefinitionOpInterface op, ArrayRef<Value> index, ValueRange accumulators) {
  Operands source(*this, op);
  BodyBuilder body(elements, op, getDefinition(op), index, source);
  return op.emitFinish(body, accumulators);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

void KernelBody::setPartRanges(Operation *op, ArrayRef<Value> index) {
  const Definition &definition = getDefinition(op);
  for (auto [number, loop] : llvm::enumerate(definition.loops))
    if (loop.kind == LoopKind::Part) {
      auto [lo, hi] = emitPartRange(elements, loop, index[loop.dim]);
      ranges[kernel.getFirstReductionLoop(op) + number - definition.resultRank] = {lo, hi};
    }
}

KernelBody::Fold KernelBody::getFold(DefinitionOpInterface op, SmallVector<Value> &foldIndex) {
  return {[this, op]() mutable { return op.emitInit(elements); },
          [this, op, &foldIndex] {
            Operands source(*this, op);
            return dovetail::emitTerm(op, getDefinition(op), elements, foldIndex, source);
          },
          [this, op](ValueRange a, ValueRange b) mutable { return op.emitCombine(elements, a, b); }};
}

KernelBody::Fold KernelBody::getPass(DefinitionOpInterface op, unsigned number, SmallVector<Value> &foldIndex,
                                     std::function<Values()> emitFound) {
  const FoldPass &pass = getDefinition(op).passes[number];
  return {[this, &pass]() -> Values { return {emitPassInit(elements, pass)}; },
          [this, op, number, &foldIndex, emitFound]() mutable -> Values {
            Operands source(*this, op);
            BodyBuilder body(elements, op, getDefinition(op), foldIndex, source);
            return {op.emitPass(body, number, emitFound())};
          },
          [this, &pass](ValueRange a, ValueRange b) -> Values {
            return {emitPassCombine(elements, pass, a.front(), b.front())};
          }};
}

SmallVector<unsigned> KernelBody::dropSingles(Operation *op, ArrayRef<unsigned> loops,
                                              MutableArrayRef<Value> foldIndex) {
  SmallVector<unsigned> left;
  for (unsigned loop : loops)
    if (isStatic(loop) && extents[loop] == 1)
      foldIndex[getFoldPosition(op, loop)] = ranges[loop].lo;
    else
      left.push_back(loop);
  return left;
}

unsigned KernelBody::countOuter(ArrayRef<unsigned> loops, int64_t rows) {
  constexpr int64_t most = 1 << 14;
  auto isBlock = [&](ArrayRef<unsigned> inner) {
    int64_t terms = rows;
    for (unsigned loop : inner)
      terms = llvm::SaturatingMultiply<uint64_t>(terms, extents[loop]);
    return inner.size() <= 1 || terms <= most;
  };
  unsigned outer = 0;
  while (!isBlock(loops.drop_front(outer)))
    ++outer;
  return outer;
}

Value KernelBody::emitCount(ArrayRef<unsigned> loops) {
  Value count = elements.index(1);
  for (unsigned loop : loops)
    count = elements.create<arith::MulIOp>(count, elements.subI(ranges[loop].hi, ranges[loop].lo));
  return count;
}

KernelBody::Values KernelBody::emitReduction(DefinitionOpInterface op, ArrayRef<unsigned> loops,
                                             SmallVector<Value> &foldIndex) {
  SmallVector<unsigned> left = dropSingles(op, loops, foldIndex);
  const Definition &definition = getDefinition(op);
  Fold fold = getFold(op, foldIndex);
  if (definition.passes.empty())
    return emitFold(op, fold, left, foldIndex);
  unsigned outer = countOuter(left);
  ArrayRef<unsigned> inner = ArrayRef(left).drop_front(outer);
  fold.emitTerm = [&] {
    return emitPasses(op, definition, elements, emitCount(inner), [&](unsigned pass, ValueRange found) {
      return emitFold(op, getPass(op, pass, foldIndex, [&] { return Values(found); }), inner, foldIndex).front();
    });
  };
  return emitFold(op, fold, ArrayRef(left).take_front(outer), foldIndex);
}

KernelBody::Values KernelBody::emitFold(Operation *op, const Fold &fold, ArrayRef<unsigned> loops,
                                        SmallVector<Value> &foldIndex) {
  if (loops.empty())
    return fold.emitTerm();
  unsigned position = getFoldPosition(op, loops.front());
  Range range = ranges[loops.front()];
  // Few terms are code that follows each other, so that the loop around it can be done in vectors.
  uint64_t terms = 1;
  for (unsigned loop : loops)
    terms = llvm::SaturatingMultiply<uint64_t>(terms, isStatic(loop) ? extents[loop] : UINT64_MAX);
  // Each loop has its own accumulators, so that errors of sums grow with the extents of the loops and not with their
  // product.
  auto body = [&](Value iv, ValueRange carried) {
    foldIndex[position] = iv;
    return fold.emitCombine(carried, emitFold(op, fold, loops.drop_front(), foldIndex));
  };
  return elements.forLoop(range.lo, range.hi, fold.emitInit(), body, terms <= mostUnrolled ? mostUnrolled : 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool KernelBody::hasDynamicStride(plan::LayoutAttr layout, Type type, unsigned dim) {
  return layout.getStride(dim) == plan::LayoutAttr::dynamic && cast<RankedTensorType>(type).getDimSize(dim) > 1;
}

KernelBody::Memory KernelBody::createMemory(Value base, plan::LayoutAttr layout, Type type,
                                            function_ref<Value()> next) {
  Memory memory{base, {}};
  for (unsigned dim = 0; dim < layout.getRank(); ++dim) {
    // The only coordinate of a dimension of extent 1 is zero.
    bool isSingle = cast<RankedTensorType>(type).getDimSize(dim) <= 1;
    memory.strides.push_back(
        hasDynamicStride(layout, type, dim) ? next() : elements.index(isSingle ? 0 : layout.getStride(dim)));
  }
  return memory;
}

Value KernelBody::emitOffset(const Memory &memory, ArrayRef<Value> index) {
  Value offset = elements.index(0);
  for (auto [coordinate, stride] : llvm::zip_equal(index, memory.strides))
    offset = elements.create<arith::AddIOp>(offset, elements.create<arith::MulIOp>(coordinate, stride));
  return offset;
}

Value KernelBody::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) {
  return plan::LoadOp::create(builder, kernel.getLoc(), ElementBuilder::scalarType(elementType), memory.base,
                              emitOffset(memory, index), /*alignment=*/IntegerAttr());
}

Value KernelBody::createBuffer(Type type, int64_t size) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  Value count = LLVM::ConstantOp::create(builder, kernel.getLoc(), builder.getI64IntegerAttr(size));
  return LLVM::AllocaOp::create(builder, kernel.getLoc(), LLVM::LLVMPointerType::get(builder.getContext()), type, count,
                                /*alignment=*/64);
}

Value KernelBody::getAddress(Value buffer, Type type, Value position) {
  Value offset = elements.create<arith::IndexCastOp>(builder.getI64Type(), position);
  return LLVM::GEPOp::create(builder, kernel.getLoc(), buffer.getType(), type, buffer, ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value KernelBody::loadFrom(Value buffer, Type type, Value position) {
  return LLVM::LoadOp::create(builder, kernel.getLoc(), type, getAddress(buffer, type, position));
}

void KernelBody::storeTo(Value buffer, Value position, Value scalar) {
  LLVM::StoreOp::create(builder, kernel.getLoc(), scalar, getAddress(buffer, scalar.getType(), position));
}

/// The elements of a small constant in row-major order, signless, booleans as bytes.
static DenseElementsAttr flatten(DenseElementsAttr value) {
  Type type = ElementBuilder::scalarType(value.getElementType());
  if (isNarrow(value.getElementType()))
    return DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({value.getNumElements()}, type),
                                               value.getRawData());
  auto flat = value.reshape(RankedTensorType::get({value.getNumElements()}, value.getElementType()));
  if (type.isInteger(1))
    return flat.mapValues(IntegerType::get(type.getContext(), 8), [](const APInt &bit) { return bit.zext(8); });
  return flat.getElementType() == type ? flat : flat.bitcast(type);
}

Value KernelBody::emitConstant(ConstantOp constant, ArrayRef<Value> index) {
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
    if (isNarrow(value.getElementType()))
      return elements.constantInt(type, value.getRawData().front());
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
