//===- ProductMapping.cpp - Sums of products through shared memory --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which sums of products are made of tiles, and how a thread computes its elements of a tile.
//
//===----------------------------------------------------------------------===//

#include "ProductMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

// Rows of shared memory have the elements of a tile for one term, and are 16 bytes longer: eight rows begin in eight
// different ones of the banks 0, 4, ... 28. Threads write neighbours of a row, or four neighbours of each of eight rows
// (two of numbers of 8 bytes, of which half a warp writes at a time). A thread reads up to four neighbours of a row at
// once, which 16 bytes align, next to those of its neighbour; of the other operand half a warp reads the same. So no
// two threads ask one bank for different words, but for reads of four numbers of 8 bytes, which meet twice.
int64_t ProductMapping::getPitch(int64_t width) const { return edge + device.accessBytes / width; }

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

bool ProductMapping::findProduct() {
  auto yielded = kernel.getYield().getValues();
  parts = yielded.front().getDefiningOp<plan::PartsOp>();
  Operation *op = parts ? parts.getReduction().getDefiningOp() : getOnlyResult(kernel);
  product = dyn_cast_if_present<DefinitionOpInterface>(op);
  return product && yielded.size() == 1 && isCheap(kernel, op) && getDefinition(product).isProduct;
}

bool ProductMapping::take() {
  // A quarter of a tile is still better than elements that each read both factors of all of their terms.
  constexpr int64_t shortest = 16;
  if (!findProduct() || threads * threads != device.blockThreads)
    return false;
  blocks = divideLoops();
  int64_t terms = 1;
  for (const Loop &loop : llvm::drop_begin(getDefinition(product).loops, rank))
    terms = llvm::SaturatingMultiply<uint64_t>(terms, loop.extent);
  if (sides[0].extent < shortest || sides[1].extent < shortest || terms < depth)
    return false;
  chunks = llvm::divideCeil(terms, depth);
  if (parts)
    blocks /= parts.getCount();
  int64_t count = parts ? parts.getCount() : 1;
  std::optional<double> best;
  for (int64_t tried : {4, 2}) {
    std::swap(perThread, tried);
    edge = threads * perThread;
    if (double time = estimate(perThread, count); boundBytes() <= device.sharedBytes && (!best || time < *best))
      best = time;
    else
      perThread = tried;
  }
  edge = threads * perThread;
  if (!best)
    return false;
  countTileLoops();
  groupThreads = device.blockThreads;
  return true;
}

double ProductMapping::estimate(int64_t perThread, int64_t parts) const {
  // A large device has so many processors, each of which does so many additions of products at a time. It needs two
  // blocks to do so: one waits for memory and for its slowest thread in turns.
  const double processors = llvm::divideCeil(device.busyBlocks, 4), sumsAtATime = 128;
  constexpr double fewest = 2;
  // Each row and column of a tile costs this for each term, to be brought to shared memory and to be read from there.
  constexpr double perEdge = 3. / 16;
  // Of a block, until it has begun and when it stores.
  constexpr double perBlock = 1500;
  double tiles = blocks, edge = threads * perThread;
  for (const Side &side : sides)
    tiles *= std::ceil(side.extent / edge);
  double ofChunk = depth * (edge * edge / sumsAtATime + 2 * edge * perEdge);
  double ofBlock = std::ceil(static_cast<double>(chunks) / parts) * ofChunk + perBlock;
  double time = std::max(std::ceil(tiles * parts / processors), fewest) * ofBlock;
  // Another kernel, to which parts go by memory.
  constexpr double ofLaunch = 5000, bytesAtATime = 1500, bytesOfPart = 8;
  if (parts > 1)
    time += ofLaunch + bytesOfPart * parts * blocks * sides[0].extent * sides[1].extent / bytesAtATime;
  return time;
}

int64_t ProductMapping::countParts(int64_t terms) const {
  // So many times, at least, a block brings terms to shared memory.
  constexpr int64_t shortest = 8, maxParts = 64;
  int64_t best = 1;
  double bestTime = estimate(perThread, 1);
  for (int64_t tried : {4, 2})
    for (int64_t count = 2; count <= std::min(chunks / shortest, maxParts); ++count)
      if (double time = estimate(tried, count); time < bestTime) {
        best = count;
        bestTime = time;
      }
  return best;
}

int64_t ProductMapping::divideLoops() {
  const Definition &definition = getDefinition(product);
  sides[0].operand = 0;
  sides[1].operand = 1;
  int64_t tiles = 1;
  for (unsigned loop : analysis.getLoopOrder()) {
    int64_t sharing[2] = {definition.countSharing(0, loop), definition.countSharing(1, loop)};
    unsigned operand = sharing[0] == 1 ? 0 : 1;
    int64_t block = sharing[1 - operand];
    bool isOfParts = parts && loop == parts.getDim();
    if (isOfParts || sharing[operand] != 1 || block <= 1 || extents[loop] % block != 0) {
      batch.push_back(loop);
      tiles *= extents[loop];
      continue;
    }
    sides[operand].loops.push_back({loop, block, {}, {}});
    sides[operand].extent *= block;
    tiles *= extents[loop] / block;
  }
  // Neighbouring threads have neighbouring elements of the second side.
  int inner = kernel.getResultLayout(0).getInnermost(kernel.getYield().getValues().front().getType());
  if (llvm::any_of(sides[0].loops, [&](const auto &each) { return static_cast<int>(each.loop) == inner; }))
    std::swap(sides[0], sides[1]);
  return tiles;
}

int64_t ProductMapping::boundBytes() {
  int64_t bytes = 1;
  for (const Side &side : sides) {
    Type type = cast<RankedTensorType>(product->getOperand(side.operand).getType()).getElementType();
    int64_t width = getByteWidth(ElementBuilder::scalarType(type));
    bytes += depth * (getPitch(width) * width + getPitch(1)) + width;
  }
  return bytes;
}

void ProductMapping::countTileLoops() {
  tileLoops.assign(batch.begin(), batch.end());
  tileSteps.assign(batch.size(), 1);
  for (const Side &side : sides) {
    // A launch counts tiles by loops, from the innermost on, and may count some that are not there.
    int64_t rest = edge;
    SmallVector<int64_t> steps;
    for (const Side::SideLoop &each : llvm::reverse(side.loops)) {
      steps.push_back(std::min(each.block, rest));
      rest /= steps.back();
    }
    for (const Side::SideLoop &each : side.loops)
      tileLoops.push_back(each.loop);
    llvm::append_range(tileSteps, llvm::reverse(steps));
  }
}

//===----------------------------------------------------------------------===//
// What all tiles share
//===----------------------------------------------------------------------===//

void ProductMapping::orderTerms() {
  for (auto [number, loop] : llvm::enumerate(getDefinition(product).loops))
    if (loop.kind == LoopKind::Tap)
      farTerms.push_back({static_cast<unsigned>(number), loop.extent, elements.index(0), elements.index(loop.extent)});
  for (unsigned loop : analysis.getFoldOrder(product).loops)
    farTerms.push_back({getFoldPosition(product, loop), extents[loop], ranges[loop].lo, countSteps(loop, 1)});
  // Divisions of 32 bits are much faster. Counters go beyond the last term by less than those of a row.
  int64_t terms = 1;
  for (const TermLoop &term : farTerms)
    terms = llvm::SaturatingMultiply<uint64_t>(terms, term.extent);
  termType = terms < int64_t(1) << 26 ? Type(builder.getI32Type()) : Type(builder.getIndexType());
  // Where terms along one loop fill the rows of shared memory, the others are the same for all that lie there. All taps
  // are gone through before the next terms of that loop, as they read nearly the same.
  int64_t extent = farTerms.back().extent;
  if (8 * llvm::divideCeilSigned(extent, depth) * depth <= 9 * extent)
    nearTerms.push_back(farTerms.pop_back_val());
  else
    std::swap(nearTerms, farTerms);
}

bool ProductMapping::mustBeFinite(unsigned number) const {
  return sides[1 - number].isGuarded && isa<FloatType>(sides[number].type);
}

bool ProductMapping::mayBeMissing(const Side &side) {
  // Code that is only looked at.
  Block scratch;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&scratch);
  // Nothing is known of the coordinates, not even that two are equal.
  auto getUnknown = [&]() -> Value {
    return gpu::ThreadIdOp::create(builder, kernel.getLoc(), builder.getIndexType(), gpu::Dimension::x);
  };
  SmallVector<Value> at;
  for (const Loop &loop : getDefinition(product).loops)
    at.push_back(loop.kind == LoopKind::Tap && loop.extent == 1 ? elements.index(0) : getUnknown());
  return !matchPattern(emitIsInside(product, side.operand, at), m_One());
}

void ProductMapping::placeOperands() {
  int64_t bytes = 0;
  for (Side &side : sides) {
    Type type = product->getOperand(side.operand).getType();
    side.type = ElementBuilder::scalarType(cast<RankedTensorType>(type).getElementType());
    int64_t width = getByteWidth(side.type);
    side.pitch = getPitch(width);
    side.offset = llvm::divideCeil(bytes, width);
    bytes = (side.offset + depth * side.pitch) * width;
    side.isGuarded = mayBeMissing(side);
  }
  for (Side &side : sides) {
    side.guards = bytes;
    if (side.isGuarded)
      bytes += depth * getPitch(1);
  }
  notFinite = bytes;
  if (mustBeFinite(0) || mustBeFinite(1)) {
    Value isFirst = elements.compareI(arith::CmpIPredicate::eq, thread, elements.index(0));
    auto branch = scf::IfOp::create(builder, kernel.getLoc(), isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    shared.store(elements.boolean(false), elements.index(notFinite), notFinite + 1);
  }
}

SmallVector<Value> ProductMapping::countByLoop() {
  SmallVector<Value> counts;
  for (unsigned loop : batch)
    counts.push_back(countSteps(loop, 1));
  SmallVector<Value> tiles;
  for (const Side &side : sides) {
    SmallVector<Value> inBlock;
    for (auto [loop, block, lo, count] : side.loops) {
      Range range = ranges[loop];
      bool isWhole = block == extents[loop];
      Value last = elements.floorDivI(elements.addI(range.hi, -1), block);
      counts.push_back(isWhole ? elements.index(1)
                               : elements.addI(elements.subI(last, elements.floorDivI(range.lo, block)), 1));
      inBlock.push_back(isWhole ? countSteps(loop, 1) : elements.index(block));
    }
    tiles.push_back(elements.floorDivI(elements.addI(multiplyAll(inBlock), edge - 1), edge));
  }
  counts.append(tiles);
  return counts;
}

Value ProductMapping::countTiles() {
  orderTerms();
  placeOperands();
  tileCounts = countByLoop();
  return multiplyAll(tileCounts);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<Value> ProductMapping::emitTerms(ValueRange sums, ArrayRef<Value> place, bool guarded) {
  Type type = sums.front().getType();
  return elements.forLoop(elements.index(0), elements.index(depth), sums, [&](Value term, ValueRange carried) {
    SmallVector<Value> factors[2], isInside[2];
    for (auto [number, side] : llvm::enumerate(sides))
      for (int64_t i = 0; i < perThread; ++i) {
        Value position = elements.addI(elements.mulI(term, side.pitch), place[number]);
        Value factor = shared.load(side.type, elements.addI(position, side.offset + i));
        bool isUnsigned = isUnsignedElement(product->getOperand(side.operand).getType());
        factors[number].push_back(isa<FloatType>(type) ? elements.convertFloat(factor, cast<FloatType>(type))
                                                       : elements.extendInt(factor, type, isUnsigned));
        if (!guarded || !side.isGuarded)
          continue;
        position = elements.addI(elements.mulI(term, getPitch(1)), place[number]);
        isInside[number].push_back(shared.load(builder.getI1Type(), elements.addI(position, side.guards + i)));
      }
    SmallVector<Value> next;
    for (auto [number, sum] : llvm::enumerate(carried)) {
      int64_t at[2] = {static_cast<int64_t>(number) / perThread, static_cast<int64_t>(number) % perThread};
      Value added = elements.add(sum, elements.mul(factors[0][at[0]], factors[1][at[1]]));
      for (unsigned side : {0, 1})
        if (!isInside[side].empty())
          added = elements.select(isInside[side][at[side]], added, sum);
      next.push_back(added);
    }
    return next;
  });
}

SmallVector<Value> ProductMapping::beginTile(Value tile) {
  SmallVector<Value> digits = delinearize(tile, tileCounts);
  auto digit = digits.begin();
  for (unsigned loop : batch)
    index[loop] = elements.addI(*digit++, ranges[loop].lo);
  SmallVector<Value> place = {elements.create<arith::DivUIOp>(thread, elements.index(threads)),
                              elements.create<arith::RemUIOp>(thread, elements.index(threads))};
  for (auto [number, side] : llvm::enumerate(sides)) {
    SmallVector<Value> counts;
    for (auto &[loop, block, lo, count] : side.loops) {
      Value inLoop = *digit++;
      lo = ranges[loop].lo;
      count = countSteps(loop, 1);
      if (block != extents[loop]) {
        Value begin = elements.mulI(elements.addI(elements.floorDivI(lo, block), inLoop), block);
        Value end = elements.minI(elements.addI(begin, block), ranges[loop].hi);
        lo = isStatic(loop) ? begin : elements.maxI(begin, lo);
        count = isStatic(loop) ? elements.index(block) : elements.subI(end, lo);
      }
      counts.push_back(count);
    }
    side.count = multiplyAll(counts);
    side.first = elements.mulI(digits.end()[-2 + static_cast<int>(number)], edge);
    place[number] = elements.mulI(place[number], perThread);
    setCoordinates(side, elements.index(0), index);
  }
  return place;
}

SmallVector<Value> ProductMapping::getProductIndex() {
  SmallVector<Value> at(index);
  if (parts)
    at[parts.getDim()] = elements.index(0);
  return at;
}

SmallVector<Value> ProductMapping::emitSums(ArrayRef<Value> place) {
  Location loc = kernel.getLoc();
  SmallVector<Value> nearCounts = llvm::map_to_vector(nearTerms, [](const TermLoop &term) { return term.count; });
  SmallVector<Value> farCounts = llvm::map_to_vector(farTerms, [](const TermLoop &term) { return term.count; });
  Value rows = elements.floorDivI(elements.addI(multiplyAll(nearCounts), depth - 1), depth);
  Value numFar = multiplyAll(farCounts), zero = elements.index(0);
  SmallVector<Value> inits(perThread * perThread, product.emitInit(elements).front());
  Value begin = zero, end = elements.create<arith::MulIOp>(rows, numFar);
  int64_t mostChunks = ElementBuilder::getConstantIndex(end).value_or(INT64_MAX);
  if (parts) {
    // Parts differ by one chunk at most.
    Value number = index[parts.getDim()], count = end;
    auto getBegin = [&](Value number) {
      return elements.floorDivI(elements.create<arith::MulIOp>(count, number), parts.getCount());
    };
    begin = getBegin(number);
    end = getBegin(elements.addI(number, 1));
    mostChunks = llvm::divideCeil(mostChunks, parts.getCount());
  }
  auto emitChunk = [&](Value chunk, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> at = getProductIndex();
    at.resize(rank + nearTerms.size() + farTerms.size());
    Value counter = castIndex(termType, chunk);
    Value firstTerm =
        castIndex(builder.getIndexType(), elements.create<arith::DivUIOp>(counter, castIndex(termType, numFar)));
    Value far = elements.create<arith::RemUIOp>(counter, castIndex(termType, numFar));
    for (auto [loop, digit] : llvm::zip_equal(farTerms, delinearize(far, farCounts)))
      at[loop.position] = elements.addI(digit, loop.lo);
    gpu::BarrierOp::create(builder, loc);
    for (unsigned number : {0, 1})
      stageOperand(number, elements.mulI(firstTerm, depth), at);
    gpu::BarrierOp::create(builder, loc);
    if (!mustBeFinite(0) && !mustBeFinite(1))
      return emitTerms(carried, place, /*guarded=*/false);
    // Zero for a factor that is not there is right if the other one is a number.
    Value guarded = shared.load(builder.getI1Type(), elements.index(notFinite));
    auto branch = scf::IfOp::create(builder, loc, carried.getTypes(), guarded, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    for (bool isGuarded : {true, false}) {
      builder.setInsertionPointToEnd(isGuarded ? branch.thenBlock() : branch.elseBlock());
      scf::YieldOp::create(builder, loc, emitTerms(carried, place, isGuarded));
    }
    return llvm::to_vector_of<Value>(branch.getResults());
  };
  // Parts of long sums are added on their own, so that errors do not grow with the number of terms.
  constexpr int64_t chunksOfPart = 16;
  if (!isa<FloatType>(inits.front().getType()) || mostChunks <= chunksOfPart)
    return elements.forLoop(begin, end, inits, emitChunk);
  Value sums = elements.floorDivI(elements.addI(elements.subI(end, begin), chunksOfPart - 1), chunksOfPart);
  return elements.forLoop(zero, sums, inits, [&](Value sum, ValueRange carried) {
    Value first = elements.addI(elements.mulI(sum, chunksOfPart), begin);
    SmallVector<Value> added =
        elements.forLoop(first, elements.minI(elements.addI(first, chunksOfPart), end), inits, emitChunk);
    for (auto [sum, before] : llvm::zip_equal(added, carried))
      sum = elements.add(before, sum);
    return added;
  });
}

void ProductMapping::emitTile(Value tile) {
  SmallVector<Value> place = beginTile(tile);
  SmallVector<Value> sums = emitSums(place);

  SmallVector<Value> isInside[2];
  SmallVector<SmallVector<Value>> coordinates[2];
  for (auto [number, side] : llvm::enumerate(sides))
    for (int64_t i = 0; i < perThread; ++i) {
      coordinates[number].push_back(index);
      isInside[number].push_back(setCoordinates(side, elements.addI(place[number], i), coordinates[number].back()));
    }
  for (auto [position, each] : llvm::enumerate(sums)) {
    int64_t at[2] = {static_cast<int64_t>(position) / perThread, static_cast<int64_t>(position) % perThread};
    Value condition;
    for (auto [number, side] : llvm::enumerate(sides)) {
      for (const Side::SideLoop &loop : side.loops)
        index[loop.loop] = coordinates[number][at[number]][loop.loop];
      if (Value isOne = isInside[number][at[number]])
        condition = condition ? elements.andB(condition, isOne) : isOne;
    }
    sum = each;
    emitStores(emitResults(), condition);
  }
}

KernelBody::Values ProductMapping::emitOp(Operation *op, ArrayRef<Value> index) {
  if (op == product.getOperation())
    return emitFinish(product, index, sum);
  // Parts are accumulators.
  return op == parts.getOperation() ? Values{sum} : BlockMapping::emitOp(op, index);
}

std::unique_ptr<BlockMapping> dovetail::createProductMapping(const BlockKernel &kernel) {
  return std::make_unique<ProductMapping>(kernel);
}
