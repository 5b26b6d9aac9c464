//===- BlockMapping.cpp - How a kernel is divided among threads -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines BlockMapping: the function, its loop over tiles, and what it writes.
//
//===----------------------------------------------------------------------===//

#include "BlockMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

LogicalResult BlockMapping::emit() {
  createFunction();
  if (failed)
    return failure();
  if (shared.getBytes() > device.sharedBytes)
    return kernel.emitOpError("needs ") << shared.getBytes() << " bytes of shared memory, of which a block has "
                                        << device.sharedBytes;
  return success();
}

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

int64_t dovetail::multiplyExtents(ArrayRef<unsigned> loops, ArrayRef<int64_t> extents) {
  int64_t product = 1;
  for (unsigned loop : loops)
    if (llvm::MulOverflow(product, std::max<int64_t>(extents[loop], 1), product))
      return INT64_MAX;
  return product;
}

bool dovetail::isCheap(plan::KernelOp kernel, Operation *other) {
  return llvm::all_of(kernel.getBlock()->without_terminator(), [&](Operation &op) {
    auto element = dyn_cast<DefinitionOpInterface>(op);
    return !element || &op == other || element.isCheapElement();
  });
}

Operation *dovetail::getOnlyResult(plan::KernelOp kernel) {
  auto yielded = kernel.getYield().getValues();
  Operation *op = yielded.front().getDefiningOp();
  return op && llvm::equal(op->getResults(), yielded) && isCheap(kernel, op) ? op : nullptr;
}

bool BlockMapping::divideElements() {
  auto isSingle = [&](unsigned loop) { return extents[loop] == 1; };
  llvm::append_range(tileLoops, analysis.getLoopOrder());
  tileSteps.assign(tileLoops.size(), 1);
  if (!isCheap(kernel) || llvm::all_of(tileLoops, isSingle))
    return false;
  // Loops of one iteration are no obstacle.
  while (isSingle(tileLoops.back()))
    std::rotate(tileLoops.begin(), tileLoops.end() - 1, tileLoops.end());
  return true;
}

int64_t BlockMapping::countBlocks() const {
  int64_t tiles = 1;
  for (auto [loop, step] : llvm::zip_equal(tileLoops, tileSteps))
    tiles = llvm::SaturatingMultiply<uint64_t>(tiles, llvm::divideCeil(extents[loop], step));
  return llvm::divideCeil(tiles, device.blockThreads / groupThreads);
}

int64_t BlockMapping::countParts(int64_t terms) const {
  // A thread's share should be worth another kernel, and be some terms long afterwards.
  constexpr int64_t worthwhile = 64, shortest = 16, maxParts = 256;
  int64_t share = terms / groupThreads;
  return share < worthwhile
             ? 1
             : std::min({device.busyBlocks / std::max<int64_t>(countBlocks(), 1), share / shortest, maxParts});
}

plan::BlocksAttr BlockMapping::getBlocks() {
  SmallVector<int64_t> loops(tileLoops.begin(), tileLoops.end());
  return plan::BlocksAttr::get(builder.getContext(), device.blockThreads, loops, tileSteps,
                               device.blockThreads / groupThreads, shared.getBytes());
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

void BlockMapping::createFunction() {
  Location loc = kernel.getLoc();
  auto yielded = kernel.getYield().getValues();
  unsigned numTensors = kernel.getArguments().size() + yielded.size(), numPointers = numTensors + !checks.empty() + 1;
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
  emitTiles();
  gpu::ReturnOp::create(builder, loc);
  shared.finish();
  if (blocksAtOnce > 1)
    function->setAttr(blocksAtOnceAttrName, builder.getI32IntegerAttr(blocksAtOnce));
}

Value BlockMapping::placeThread(Value first) { return groupThreads == 1 ? elements.addI(first, thread) : first; }

void BlockMapping::emitTiles() {
  Location loc = kernel.getLoc();
  Type type = getCounterType(tileLoops), indexType = builder.getIndexType();
  thread = gpu::ThreadIdOp::create(builder, loc, indexType, gpu::Dimension::x);
  Value block = gpu::BlockIdOp::create(builder, loc, indexType, gpu::Dimension::x);
  Value blocks = gpu::GridDimOp::create(builder, loc, indexType, gpu::Dimension::x);
  int64_t groups = device.blockThreads / groupThreads;
  Value first = placeThread(elements.mulI(block, groups));
  tileCount = countTiles();
  Value stride = elements.mulI(blocks, groups);
  auto tiles =
      scf::ForOp::create(builder, loc, castIndex(type, first), castIndex(type, tileCount), castIndex(type, stride));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(tiles.getBody()->getTerminator());
  emitTile(tiles.getInductionVar());
}

SmallVector<BlockMapping::Store> BlockMapping::emitResults() {
  SmallVector<Store> stores;
  for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues())) {
    Value element = emitValue(value, index);
    stores.push_back({static_cast<unsigned>(number), element, emitOffset(results[number], index), IntegerAttr()});
  }
  return stores;
}

BlockArgument BlockMapping::getArgument(const Memory &memory) {
  const Memory *begin = arguments.begin(), *end = arguments.end();
  return &memory >= begin && &memory < end ? kernel.getBlock()->getArgument(&memory - begin) : BlockArgument();
}

bool BlockMapping::isAligned(plan::LayoutAttr layout, Type type, int64_t width) const {
  // If the innermost dimension is whole and consists of vectors, the strides of all others are multiples of a vector.
  int inner = layout.getInnermost(type);
  if (inner < 0)
    return false;
  int64_t extent = cast<RankedTensorType>(type).getDimSize(inner);
  return layout.getExtents()[inner] == extent && extent % width == 0;
}

void BlockMapping::alignLoad(Value value, const Memory &memory, ArrayRef<Value> index, Value first, int64_t width) {
  auto load = value.getDefiningOp<plan::LoadOp>();
  BlockArgument argument = getArgument(memory);
  if (!load || !argument)
    return;
  plan::LayoutAttr layout = kernel.getLayout(argument.getArgNumber());
  int64_t bytes = width * getByteWidth(load.getType());
  if (isAligned(layout, argument.getType(), width) && index[layout.getInnermost(argument.getType())] == first)
    load.setAlignment(std::min(bytes, device.accessBytes));
}

void BlockMapping::emitStores(ArrayRef<Store> stores, Value condition) {
  OpBuilder::InsertionGuard guard(builder);
  if (condition) {
    auto branch = scf::IfOp::create(builder, kernel.getLoc(), condition, /*withElseRegion=*/false);
    builder.setInsertionPoint(branch.thenYield());
  }
  for (const Store &store : stores)
    plan::StoreOp::create(builder, kernel.getLoc(), store.value, results[store.result].base, store.offset,
                          store.alignment);
}

//===----------------------------------------------------------------------===//
// Numbers of iterations
//===----------------------------------------------------------------------===//

Type BlockMapping::getCounterType(ArrayRef<unsigned> loops) {
  // Counters go beyond the last iteration by up to the number of threads of a launch.
  if (multiplyExtents(loops, extents) < int64_t(1) << 30)
    return builder.getI32Type();
  return builder.getIndexType();
}

Value BlockMapping::castIndex(Type type, Value value) {
  if (value.getType() == type)
    return value;
  return elements.create<arith::IndexCastOp>(type, value);
}

Value BlockMapping::countSteps(unsigned loop, int64_t step) {
  Value extent = elements.subI(ranges[loop].hi, ranges[loop].lo);
  return step == 1 ? extent : elements.floorDivI(elements.addI(extent, step - 1), step);
}

Value BlockMapping::countIterations(ArrayRef<unsigned> loops, ArrayRef<int64_t> steps) {
  SmallVector<Value> counts;
  for (auto [loop, step] : llvm::zip_equal(loops, steps))
    counts.push_back(countSteps(loop, step));
  return multiplyAll(counts);
}

Value BlockMapping::multiplyAll(ArrayRef<Value> factors) {
  Value product = elements.index(1);
  for (Value factor : factors)
    product = elements.create<arith::MulIOp>(product, factor);
  return product;
}

SmallVector<Value> BlockMapping::delinearize(Value linear, ArrayRef<Value> counts) {
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

void BlockMapping::delinearize(Value linear, ArrayRef<unsigned> loops, ArrayRef<int64_t> steps,
                               function_ref<void(unsigned, Value)> set) {
  SmallVector<Value> counts;
  for (auto [loop, step] : llvm::zip_equal(loops, steps))
    counts.push_back(countSteps(loop, step));
  for (auto [loop, step, digit] : llvm::zip_equal(loops, steps, delinearize(linear, counts)))
    set(loop, elements.addI(elements.mulI(digit, step), ranges[loop].lo));
}

void BlockMapping::setIndex(Value tile) {
  delinearize(tile, tileLoops, tileSteps, [&](unsigned loop, Value coordinate) { index[loop] = coordinate; });
}
