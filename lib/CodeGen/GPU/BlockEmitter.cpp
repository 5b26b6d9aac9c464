//===- BlockEmitter.cpp - Generates a kernel for thread blocks -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a kernel is divided among threads; TeamValues.cpp has the values that threads compute together.
//
//===----------------------------------------------------------------------===//

#include "BlockEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

static int64_t multiply(ArrayRef<unsigned> loops, ArrayRef<int64_t> extents) {
  int64_t product = 1;
  for (unsigned loop : loops)
    if (llvm::MulOverflow(product, std::max<int64_t>(extents[loop], 1), product))
      return INT64_MAX;
  return product;
}

BlockEmitter::BlockEmitter(plan::KernelOp kernel, OpBuilder &builder, KernelAnalysis &analysis,
                           const DeviceDescription &device)
    : KernelBody(kernel, builder, analysis), device(device) {
  if (analysis.getLineOp()) {
    llvm::append_range(itemLoops, analysis.getLoopOrder());
    itemSteps.assign(itemLoops.size(), 1);
    return;
  }
  bool isProduct = chooseProduct(), isTiled = false;
  if (!isProduct) {
    chooseTeam();
    chooseColumns();
    isTiled = chooseTile();
  }
  if (!isProduct && !isTiled)
    chooseVector();
  if (isProduct)
    return;
  itemSteps.assign(itemLoops.size(), 1);
  if (vector > 1)
    itemSteps.back() = vector;
  if (isTiled)
    itemSteps.end()[-2] = itemSteps.back() = tileSize;
}

LogicalResult BlockEmitter::emit() {
  createFunction();
  return success(!failed);
}

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

void BlockEmitter::chooseTeam() {
  // Enough threads to keep a large device busy.
  const int64_t enoughThreads = 64 * device.busyBlocks;
  llvm::append_range(itemLoops, analysis.getLoopOrder());
  SmallVector<Operation *> outer = analysis.getOuterReductions();
  int64_t parts = 1;
  for (Value value : kernel.getYield().getValues())
    if (auto op = value.getDefiningOp<plan::PartsOp>()) {
      outer.push_back(op.getReduction().getDefiningOp());
      partsLoop = op.getDim();
      parts = op.getCount();
    }
  // The three moments of an element are computed together.
  if (llvm::any_of(outer, hasMoments)) {
    llvm::erase(itemLoops, rank - 1);
    serialLoops.push_back(rank - 1);
  }
  auto getLength = [&](Operation *op) { return multiply(analysis.getFoldOrder(op).loops, extents); };
  // What elements share is computed once for all of them.
  while (!itemLoops.empty() && analysis.countShared(itemLoops.back()) > 0)
    teamLoops.insert(teamLoops.begin(), itemLoops.pop_back_val());
  if (!teamLoops.empty()) {
    int64_t work = multiply(teamLoops, extents);
    for (Operation &op : kernel.getBlock()->without_terminator())
      if (isReduction(&op) || hasMoments(&op))
        work = std::max(work, getLength(&op));
    team = work < device.warpThreads ? 1 : work < 4 * device.blockThreads ? device.warpThreads : device.blockThreads;
    return;
  }
  int64_t longest = 0;
  bool byRows = true;
  for (Operation *op : outer) {
    longest = std::max(longest, getLength(op) / parts);
    byRows &= analysis.getFoldOrder(op).byRows;
  }
  int64_t items = multiply(itemLoops, extents);
  // Threads with an element each read memory in order where folds go by rows, and are best if there are enough.
  if (longest < 2 * device.warpThreads || items >= (byRows ? 1 : 8) * enoughThreads)
    return;
  team = longest >= 4 * device.blockThreads && items * device.warpThreads < 4 * enoughThreads ? device.blockThreads
                                                                                              : device.warpThreads;
}

void BlockEmitter::chooseColumns() {
  // Shorter runs do not fill the 32 bytes that memory is read by.
  constexpr int64_t shortest = 8;
  if (team == 1 || itemLoops.empty())
    return;
  // Items are counted along the innermost loop first, those of one iteration aside.
  auto inner = llvm::find_if(llvm::reverse(itemLoops), [&](unsigned loop) { return extents[loop] > 1; });
  if (inner == itemLoops.rend() || extents[*inner] < shortest || static_cast<int>(*inner) == partsLoop)
    return;
  bool isBetter = false;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if ((!isReduction(&op) && !hasMoments(&op)) || analysis.getFoldOrder(&op).loops.empty())
      continue;
    int64_t acrossTerms = analysis.countJumps(&op, analysis.getFoldOrder(&op).loops.back());
    int64_t acrossItems = analysis.countJumps(&op, *inner);
    if (acrossItems > acrossTerms)
      return;
    isBetter |= acrossItems < acrossTerms;
  }
  if (!isBetter)
    return;
  int64_t items = multiply(itemLoops, extents);
  columns = items >= device.warpThreads       ? device.warpThreads
            : items >= device.warpThreads / 2 ? device.warpThreads / 2
                                              : shortest;
  team = device.blockThreads / columns;
}

int BlockEmitter::getInnermost(plan::LayoutAttr layout, Type type) {
  for (int64_t dim : llvm::reverse(layout.getOrder()))
    if (cast<RankedTensorType>(type).getDimSize(dim) != 1)
      return dim;
  return -1;
}

bool BlockEmitter::isAligned(plan::LayoutAttr layout, Type type) const {
  // If the innermost dimension is whole and consists of vectors, the strides of all others are multiples of a vector.
  int inner = getInnermost(layout, type);
  int64_t extent = inner < 0 ? 1 : cast<RankedTensorType>(type).getDimSize(inner);
  return layout.getRank() > 0 && inner >= 0 && layout.getExtents()[inner] == extent && extent % vector == 0;
}

bool BlockEmitter::isCheap(plan::KernelOp kernel, Operation *other) {
  return llvm::all_of(kernel.getBlock()->without_terminator(), [&](Operation &op) {
    auto element = dyn_cast<DefinitionOpInterface>(op);
    return !element || &op == other || element.isCheapElement();
  });
}

Operation *BlockEmitter::getOnlyResult(plan::KernelOp kernel) {
  auto yielded = kernel.getYield().getValues();
  Operation *op = yielded.front().getDefiningOp();
  return yielded.size() == 1 && op && isCheap(kernel, op) ? op : nullptr;
}

bool BlockEmitter::isElementwise() {
  auto isSingle = [&](unsigned loop) { return extents[loop] == 1; };
  if (team > 1 || !isCheap(kernel) || llvm::all_of(itemLoops, isSingle))
    return false;
  // Loops of one iteration are no obstacle.
  while (isSingle(itemLoops.back()))
    std::rotate(itemLoops.begin(), itemLoops.end() - 1, itemLoops.end());
  return true;
}

void BlockEmitter::chooseVector() {
  if (!isElementwise())
    return;
  unsigned inner = itemLoops.back();
  for (int64_t width : {8, 4, 2}) {
    vector = width;
    bool fits = isStatic(inner) && extents[inner] % width == 0;
    for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues())) {
      plan::LayoutAttr layout = kernel.getResultLayout(number);
      Type scalar = ElementBuilder::scalarType(cast<RankedTensorType>(value.getType()).getElementType());
      fits &= isAligned(layout, value.getType()) && getInnermost(layout, value.getType()) == static_cast<int>(inner) &&
              getByteWidth(scalar) * width <= device.accessBytes;
    }
    if (fits)
      return;
  }
  vector = 1;
}

int64_t BlockEmitter::countBlocks() const {
  int64_t items = 1;
  for (auto [loop, step] : llvm::zip_equal(itemLoops, itemSteps))
    items = llvm::SaturatingMultiply<uint64_t>(items, llvm::divideCeil(extents[loop], step));
  return llvm::divideCeil(items, device.blockThreads / team);
}

plan::BlocksAttr BlockEmitter::getBlocks() {
  SmallVector<int64_t> loops(itemLoops.begin(), itemLoops.end());
  return plan::BlocksAttr::get(builder.getContext(), device.blockThreads, loops, itemSteps, device.blockThreads / team,
                               sharedBytes);
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

void BlockEmitter::createFunction() {
  Location loc = kernel.getLoc();
  auto yielded = kernel.getYield().getValues();
  unsigned numTensors = kernel.getArguments().size() + yielded.size(), numPointers = numTensors + !checks.empty();
  unsigned numNumbers = 2 * extents.size() + yielded.size() * rank;
  for (BlockArgument argument : kernel.getArguments())
    numNumbers += cast<RankedTensorType>(argument.getType()).getRank();
  SmallVector<Type> types(numPointers, LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(numNumbers, builder.getI64Type());

  auto function = gpu::GPUFuncOp::create(builder, loc, kernel.getSymName(), builder.getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({static_cast<int32_t>(device.blockThreads), 1, 1}));
  for (unsigned i = 0; i < numTensors; ++i)
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());

  OpBuilder::InsertionGuard guard(builder);
  entry = &function.getBody().front();
  builder.setInsertionPointToStart(entry);
  auto number = [&](unsigned position) -> Value {
    Value argument = entry->getArgument(numPointers + position);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), argument);
  };
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (isStatic(loop))
      ranges[loop] = {elements.index(0), elements.index(extents[loop])};
    else
      ranges[loop] = {number(2 * loop), number(2 * loop + 1)};

  unsigned stride = 2 * extents.size();
  auto addMemory = [&](unsigned tensor, plan::LayoutAttr layout, Type type) {
    SmallVector<unsigned> positions;
    for (unsigned dim = 0; dim < layout.getRank(); ++dim, ++stride)
      if (hasDynamicStride(layout, type, dim))
        positions.push_back(stride);
    auto next = positions.begin();
    return createMemory(entry->getArgument(tensor), layout, type, [&] { return number(*next++); });
  };
  for (BlockArgument argument : kernel.getArguments())
    arguments.push_back(
        addMemory(argument.getArgNumber(), kernel.getLayout(argument.getArgNumber()), argument.getType()));
  for (auto [i, value] : llvm::enumerate(yielded))
    results.push_back(addMemory(arguments.size() + i, kernel.getResultLayout(i), value.getType()));
  if (!checks.empty())
    records = entry->getArgument(numTensors);

  index.assign(rank, {});
  emitItems();
  gpu::ReturnOp::create(builder, loc);
  if (sharedMemory)
    sharedMemory.setGlobalType(LLVM::LLVMArrayType::get(builder.getI8Type(), sharedBytes));
}

Type BlockEmitter::getCounterType(ArrayRef<unsigned> loops) {
  // Counters go beyond the last iteration by up to the number of threads of a launch.
  if (multiply(loops, extents) < int64_t(1) << 30)
    return builder.getI32Type();
  return builder.getIndexType();
}

Value BlockEmitter::castIndex(Type type, Value value) {
  if (value.getType() == type)
    return value;
  return elements.create<arith::IndexCastOp>(type, value);
}

Value BlockEmitter::countSteps(unsigned loop, int64_t step) {
  Value extent = elements.subI(ranges[loop].hi, ranges[loop].lo);
  return step == 1 ? extent : elements.floorDivI(elements.addI(extent, step - 1), step);
}

Value BlockEmitter::countIterations(ArrayRef<unsigned> loops, ArrayRef<int64_t> steps) {
  SmallVector<Value> counts;
  for (auto [loop, step] : llvm::zip_equal(loops, steps))
    counts.push_back(countSteps(loop, step));
  return multiplyAll(counts);
}

Value BlockEmitter::multiplyAll(ArrayRef<Value> factors) {
  Value product = elements.index(1);
  for (Value factor : factors)
    product = elements.create<arith::MulIOp>(product, factor);
  return product;
}

SmallVector<Value> BlockEmitter::delinearize(Value linear, ArrayRef<Value> counts) {
  SmallVector<Value> digits(counts.size());
  for (size_t i = counts.size(); i-- > 0;) {
    digits[i] = linear;
    if (i > 0) {
      Value divisor = castIndex(linear.getType(), counts[i]);
      digits[i] = elements.create<arith::RemUIOp>(linear, divisor);
      linear = elements.create<arith::DivUIOp>(linear, divisor);
    }
    digits[i] = castIndex(builder.getIndexType(), digits[i]);
  }
  return digits;
}

void BlockEmitter::delinearize(Value linear, ArrayRef<unsigned> loops, ArrayRef<int64_t> steps,
                               function_ref<void(unsigned, Value)> set) {
  SmallVector<Value> counts;
  for (auto [loop, step] : llvm::zip_equal(loops, steps))
    counts.push_back(countSteps(loop, step));
  for (auto [loop, step, digit] : llvm::zip_equal(loops, steps, delinearize(linear, counts)))
    set(loop, elements.addI(elements.mulI(digit, step), ranges[loop].lo));
}

void BlockEmitter::emitItems() {
  Location loc = kernel.getLoc();
  Type type = getCounterType(itemLoops), indexType = builder.getIndexType();
  thread = gpu::ThreadIdOp::create(builder, loc, indexType, gpu::Dimension::x);
  Value block = gpu::BlockIdOp::create(builder, loc, indexType, gpu::Dimension::x);
  Value blocks = gpu::GridDimOp::create(builder, loc, indexType, gpu::Dimension::x);
  int64_t teams = device.blockThreads / team;
  Value first = elements.mulI(block, teams);
  if (columns > 0) {
    lane = elements.create<arith::DivUIOp>(thread, elements.index(columns));
    column = elements.create<arith::RemUIOp>(thread, elements.index(columns));
  } else if (team == 1) {
    first = elements.addI(first, thread);
    lane = elements.index(0);
  } else if (team == device.warpThreads) {
    Value size = elements.index(device.warpThreads);
    first = elements.addI(first, elements.create<arith::DivUIOp>(thread, size));
    lane = elements.create<arith::RemUIOp>(thread, size);
  } else {
    lane = thread;
  }
  if (product)
    placeOperands();
  Value end = product ? multiplyAll(tileCounts) : countIterations(itemLoops, itemSteps),
        stride = elements.mulI(blocks, teams);
  auto items = scf::ForOp::create(builder, loc, castIndex(type, first), castIndex(type, end), castIndex(type, stride));
  OpBuilder::InsertionGuard guard(builder);
  itemBlock = items.getBody();
  builder.setInsertionPoint(itemBlock->getTerminator());
  Value item = items.getInductionVar();
  if (columns > 0) {
    // All threads of a block go through the loop as often, as they meet in it. Those without an item do the last one
    // once more, and do not store it.
    item = elements.create<arith::AddIOp>(item, castIndex(type, column));
    Value last = elements.create<arith::SubIOp>(castIndex(type, end), elements.constantInt(type, 1));
    isItem = elements.compareI(arith::CmpIPredicate::sle, item, last);
    item = elements.create<arith::MinSIOp>(item, last);
  }
  emitItem(item);
}

void BlockEmitter::emitItem(Value item) {
  Location loc = kernel.getLoc();
  if (product)
    return emitProduct(item);
  delinearize(item, itemLoops, itemSteps, [&](unsigned loop, Value coordinate) { index[loop] = coordinate; });
  if (Operation *op = analysis.getLineOp())
    return emitLine(op);
  if (writes >= 0)
    return emitTile();
  if (teamLoops.empty())
    return emitElements();
  Type type = getCounterType(teamLoops);
  SmallVector<int64_t> steps(teamLoops.size(), 1);
  Value end = castIndex(type, countIterations(teamLoops, steps));
  auto loop = scf::ForOp::create(builder, loc, castIndex(type, lane), end, castIndex(type, elements.index(team)));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  delinearize(loop.getInductionVar(), teamLoops, steps,
              [&](unsigned loop, Value coordinate) { index[loop] = coordinate; });
  emitElements();
}

void BlockEmitter::emitElements() {
  if (serialLoops.empty())
    return emitStores();
  for (unsigned loop : serialLoops)
    for (int64_t i = 0; i < extents[loop]; ++i) {
      index[loop] = elements.index(i);
      emitStores();
    }
}

void BlockEmitter::emitStores() {
  Location loc = kernel.getLoc();
  unsigned inner = vector > 1 ? itemLoops.back() : 0;
  vectorBase = vector > 1 ? index[inner] : Value();
  struct Store {
    Value value, base, offset;
    IntegerAttr alignment;
  };
  SmallVector<Store> stores;
  for (vectorElement = 0; vectorElement < vector; ++vectorElement) {
    if (vector > 1)
      index[inner] = elements.addI(vectorBase, vectorElement);
    for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues())) {
      Value element = emitValue(value, index);
      IntegerAttr alignment;
      if (vector > 1 && vectorElement == 0)
        alignment = builder.getI64IntegerAttr(vector * getByteWidth(element.getType()));
      stores.push_back({element, results[number].base, emitOffset(results[number], index), alignment});
    }
  }
  OpBuilder::InsertionGuard guard(builder);
  Value mayStore = isItem;
  if (team > 1 && teamLoops.empty() && staged.empty() && !product) {
    // All threads take part in what they share; one of them stores it.
    Value isFirst = elements.compareI(arith::CmpIPredicate::eq, lane, elements.index(0));
    mayStore = isItem ? elements.andB(isFirst, isItem) : isFirst;
  }
  if (mayStore) {
    auto branch = scf::IfOp::create(builder, loc, mayStore, /*withElseRegion=*/false);
    builder.setInsertionPoint(branch.thenYield());
  }
  for (const Store &store : stores)
    plan::StoreOp::create(builder, loc, store.value, store.base, store.offset, store.alignment);
}
