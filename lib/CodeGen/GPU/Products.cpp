//===- Products.cpp - Sums of products through shared memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a block computes a tile of a sum of products of two operands, such as a matrix product or a convolution:
// both operands' parts of the tile go through shared memory, and a thread has several elements, which share what it
// reads there.
//
//===----------------------------------------------------------------------===//

#include "BlockEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;

// Rows of shared memory have the elements of a tile for one term, and are 16 bytes longer: eight rows begin in eight
// different ones of the banks 0, 4, ... 28. Threads write neighbours of a row, or four neighbours of each of eight rows
// (two of numbers of 8 bytes, of which half a warp writes at a time). A thread reads up to four neighbours of a row at
// once, which 16 bytes align, next to those of its neighbour; of the other operand half a warp reads the same. So no
// two threads ask one bank for different words, but for reads of four numbers of 8 bytes, which meet twice.
int64_t BlockEmitter::getPitch(int64_t width) const { return productTile + device.accessBytes / width; }

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

bool BlockEmitter::chooseProduct() {
  // A quarter of a tile is still better than elements that each read both factors of all of their terms.
  constexpr int64_t shortest = 16;
  // Fewer large tiles than this leave most of a device idle.
  const int64_t enoughTiles = device.busyBlocks / 8;
  auto op = dyn_cast_if_present<DefinitionOpInterface>(getOnlyResult(kernel));
  if (!op || !getDefinition(op).isProduct || productThreads * productThreads != device.blockThreads)
    return false;
  const Definition &definition = getDefinition(op);
  SmallVector<unsigned> batch;
  ProductSide sides[2];
  int64_t items = 1;
  for (unsigned loop : analysis.getLoopOrder()) {
    int64_t sharing[2] = {definition.countSharing(0, loop), definition.countSharing(1, loop)};
    unsigned operand = sharing[0] == 1 ? 0 : 1;
    int64_t block = sharing[1 - operand];
    if (sharing[operand] != 1 || block <= 1 || extents[loop] % block != 0) {
      batch.push_back(loop);
      items *= extents[loop];
      continue;
    }
    sides[operand].loops.push_back({loop, block, {}, {}});
    sides[operand].extent *= block;
    items *= extents[loop] / block;
  }
  int64_t terms = 1;
  for (const Loop &loop : llvm::drop_begin(definition.loops, rank))
    terms = llvm::SaturatingMultiply<uint64_t>(terms, loop.extent);
  if (sides[0].extent < shortest || sides[1].extent < shortest || terms < productDepth)
    return false;
  for (const ProductSide &side : sides)
    items *= llvm::divideCeil(side.extent, productTile);
  if (items < enoughTiles)
    productElements = 2;
  productTile = productThreads * productElements;

  // Neighbouring threads have neighbouring elements of the second side.
  int inner = getInnermost(kernel.getResultLayout(0), op->getResult(0).getType());
  bool isFirst = llvm::any_of(sides[0].loops, [&](const auto &each) { return static_cast<int>(each.loop) == inner; });
  product = op;
  productBatch = batch;
  itemLoops.assign(batch.begin(), batch.end());
  itemSteps.assign(batch.size(), 1);
  for (unsigned operand : {isFirst ? 1u : 0u, isFirst ? 0u : 1u}) {
    ProductSide &side = productSides[operand == (isFirst ? 0 : 1)];
    side = std::move(sides[operand]);
    side.operand = operand;
    // A launch counts tiles by loops, from the innermost on, and may count some that are not there.
    int64_t rest = productTile;
    SmallVector<int64_t> steps;
    for (const ProductSide::SideLoop &each : llvm::reverse(side.loops)) {
      steps.push_back(std::min(each.block, rest));
      rest /= steps.back();
    }
    for (const ProductSide::SideLoop &each : side.loops)
      itemLoops.push_back(each.loop);
    llvm::append_range(itemSteps, llvm::reverse(steps));
  }
  team = device.blockThreads;
  return true;
}

//===----------------------------------------------------------------------===//
// What all tiles share
//===----------------------------------------------------------------------===//

void BlockEmitter::orderTerms() {
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
  if (8 * llvm::divideCeilSigned(extent, productDepth) * productDepth <= 9 * extent)
    nearTerms.push_back(farTerms.pop_back_val());
  else
    std::swap(nearTerms, farTerms);
}

bool BlockEmitter::mustBeFinite(unsigned number) const {
  return productSides[1 - number].isGuarded && isa<FloatType>(productSides[number].type);
}

bool BlockEmitter::mayBeMissing(const ProductSide &side) {
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

void BlockEmitter::placeOperands() {
  orderTerms();
  int64_t bytes = 0;
  for (ProductSide &side : productSides) {
    Type type = product->getOperand(side.operand).getType();
    side.type = ElementBuilder::scalarType(cast<RankedTensorType>(type).getElementType());
    int64_t width = getByteWidth(side.type);
    side.pitch = getPitch(width);
    side.offset = llvm::divideCeil(bytes, width);
    bytes = (side.offset + productDepth * side.pitch) * width;
    side.isGuarded = mayBeMissing(side);
  }
  for (ProductSide &side : productSides) {
    side.guards = bytes;
    if (side.isGuarded)
      bytes += productDepth * getPitch(1);
  }
  notFinite = bytes;
  if (mustBeFinite(0) || mustBeFinite(1)) {
    Value isFirst = elements.compareI(arith::CmpIPredicate::eq, thread, elements.index(0));
    auto branch = scf::IfOp::create(builder, kernel.getLoc(), isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    storeShared(elements.boolean(false), elements.index(notFinite), notFinite + 1);
  }
  tileCounts = countTiles();
}

SmallVector<Value> BlockEmitter::countTiles() {
  SmallVector<Value> counts;
  for (unsigned loop : productBatch)
    counts.push_back(countSteps(loop, 1));
  SmallVector<Value> tiles;
  for (const ProductSide &side : productSides) {
    SmallVector<Value> inBlock;
    for (auto [loop, block, lo, count] : side.loops) {
      Range range = ranges[loop];
      bool isWhole = block == extents[loop];
      Value last = elements.floorDivI(elements.addI(range.hi, -1), block);
      counts.push_back(isWhole ? elements.index(1)
                               : elements.addI(elements.subI(last, elements.floorDivI(range.lo, block)), 1));
      inBlock.push_back(isWhole ? countSteps(loop, 1) : elements.index(block));
    }
    tiles.push_back(elements.floorDivI(elements.addI(multiplyAll(inBlock), productTile - 1), productTile));
  }
  counts.append(tiles);
  return counts;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value BlockEmitter::setCoordinates(const ProductSide &side, Value offset, MutableArrayRef<Value> at) {
  Value position = elements.addI(side.first, offset), isInside;
  std::optional<int64_t> count = ElementBuilder::getConstantIndex(side.count);
  if (!count || *count % productTile != 0) {
    // Threads beyond the border do what those at the border do, and do not store it.
    isInside = elements.compareI(arith::CmpIPredicate::slt, position, side.count);
    position = elements.minI(position, elements.addI(side.count, -1));
  }
  auto loops = llvm::map_to_vector(side.loops, [](const auto &each) { return each.loop; });
  auto counts = llvm::map_to_vector(side.loops, [](const auto &each) { return each.count; });
  SmallVector<Value> digits = delinearize(castIndex(getCounterType(loops), position), counts);
  for (auto [each, digit] : llvm::zip_equal(side.loops, digits))
    at[each.loop] = elements.addI(digit, each.lo);
  return isInside;
}

bool BlockEmitter::readsAlongTerms(const ProductSide &side) {
  ArrayRef<unsigned> loops = analysis.getFoldOrder(product).loops;
  unsigned loop = loops.back();
  // Code that is only looked at.
  Block scratch;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&scratch);
  SmallVector<Value> at(getDefinition(product).loops.size(), elements.index(0));
  SmallVector<Value> before = emitReadIndex(product, side.operand, at);
  at[getFoldPosition(product, loop)] = elements.index(1);
  SmallVector<Coordinate> index;
  for (auto [first, second] : llvm::zip_equal(before, emitReadIndex(product, side.operand, at))) {
    std::optional<int64_t> step = ElementBuilder::getConstantIndex(elements.subI(second, first));
    bool depends = step != 0;
    index.push_back({uint64_t(depends) << loop, step == 1 ? static_cast<int>(loop) : -1});
  }
  return llvm::any_of(
      analysis.getReads(product->getOperand(side.operand), index),
      [&](const KernelAnalysis::Read &read) { return analysis.getStride(read.first, read.second, loop) == 1; });
}

/// Brings an operand's factors for the terms from `firstTerm` on, which are otherwise at `at`, into shared memory.
void BlockEmitter::stageOperand(unsigned number, Value firstTerm, ArrayRef<Value> at) {
  const ProductSide &side = productSides[number];
  Value value = product->getOperand(side.operand);
  // Neighbouring threads read neighbours: eight terms, or the side.
  constexpr int64_t run = 8;
  bool alongTerms = readsAlongTerms(side);
  int64_t width = alongTerms ? run : productTile;
  Value inner = elements.create<arith::RemUIOp>(thread, elements.index(width));
  Value outer = elements.create<arith::DivUIOp>(thread, elements.index(width));
  SmallVector<Value> counts = llvm::map_to_vector(nearTerms, [](const TermLoop &term) { return term.count; });
  Value numTerms = multiplyAll(counts);
  std::optional<int64_t> knownTerms = ElementBuilder::getConstantIndex(numTerms);

  struct Staged {
    Value element, isInside, row, column;
  };
  SmallVector<Staged> staged;
  Value isFinite;
  for (int64_t step = 0; step < productTile * productDepth / device.blockThreads; ++step) {
    int64_t outerStep = step * (device.blockThreads / width);
    Value inTerms = alongTerms ? elements.addI(inner, outerStep / productTile * run) : elements.addI(outer, outerStep);
    Value inSide = alongTerms ? elements.addI(outer, outerStep % productTile) : inner;
    SmallVector<Value> coordinates(at);
    setCoordinates(side, inSide, coordinates);
    Value term = elements.addI(firstTerm, inTerms), isTerm;
    if (!knownTerms || *knownTerms % productDepth != 0) {
      // Beyond the last term both operands are zero.
      isTerm = elements.compareI(arith::CmpIPredicate::slt, term, numTerms);
      term = elements.minI(term, elements.addI(numTerms, -1));
    }
    SmallVector<Value> digits = delinearize(castIndex(termType, term), counts);
    for (auto [loop, digit] : llvm::zip_equal(nearTerms, digits))
      coordinates[loop.position] = elements.addI(digit, loop.lo);
    Value isInside = side.isGuarded ? emitIsInside(product, side.operand, coordinates) : Value();
    Value zero = elements.constant(side.type, 0), element;
    auto emitFactor = [&] { return emitValue(value, emitReadIndex(product, side.operand, coordinates)); };
    element = side.isGuarded ? elements.guarded(isInside, side.type, emitFactor, zero) : emitFactor();
    if (isTerm)
      element = elements.select(isTerm, element, zero);
    if (mustBeFinite(number)) {
      Value isSmall =
          elements.andB(elements.compare(arith::CmpFPredicate::OLT, {}, elements.lowest(side.type), element),
                        elements.compare(arith::CmpFPredicate::OLT, {}, element, elements.highest(side.type)));
      isFinite = isFinite ? elements.andB(isFinite, isSmall) : isSmall;
    }
    staged.push_back({element, isInside, inTerms, inSide});
  }
  for (const Staged &each : staged) {
    Value place = elements.addI(elements.addI(elements.mulI(each.row, side.pitch), each.column), side.offset);
    storeShared(each.element, place, side.offset + productDepth * side.pitch);
    if (!mustBeFinite(1 - number))
      continue;
    place = elements.addI(elements.addI(elements.mulI(each.row, getPitch(1)), each.column), side.guards);
    storeShared(each.isInside, place, side.guards + productDepth * getPitch(1));
  }
  if (!isFinite)
    return;
  Value isInfinite = elements.create<arith::XOrIOp>(isFinite, elements.boolean(true));
  auto branch = scf::IfOp::create(builder, kernel.getLoc(), isInfinite, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  storeShared(elements.boolean(true), elements.index(notFinite), notFinite + 1);
}

/// Adds the terms in shared memory to the sums of a thread; if `guarded`, only those whose factors are there.
SmallVector<Value> BlockEmitter::emitTerms(ValueRange sums, ArrayRef<Value> place, bool guarded) {
  Type type = sums.front().getType();
  return elements.forLoop(elements.index(0), elements.index(productDepth), sums, [&](Value term, ValueRange carried) {
    SmallVector<Value> factors[2], isInside[2];
    for (auto [number, side] : llvm::enumerate(productSides))
      for (int64_t i = 0; i < productElements; ++i) {
        Value position = elements.addI(elements.mulI(term, side.pitch), place[number]);
        Value factor = loadShared(side.type, elements.addI(position, side.offset + i));
        factors[number].push_back(isa<FloatType>(type) ? elements.convertFloat(factor, cast<FloatType>(type)) : factor);
        if (!guarded || !side.isGuarded)
          continue;
        position = elements.addI(elements.mulI(term, getPitch(1)), place[number]);
        isInside[number].push_back(loadShared(builder.getI1Type(), elements.addI(position, side.guards + i)));
      }
    SmallVector<Value> next;
    for (auto [number, sum] : llvm::enumerate(carried)) {
      int64_t at[2] = {static_cast<int64_t>(number) / productElements, static_cast<int64_t>(number) % productElements};
      Value added = elements.add(sum, elements.mul(factors[0][at[0]], factors[1][at[1]]));
      for (unsigned side : {0, 1})
        if (!isInside[side].empty())
          added = elements.select(isInside[side][at[side]], added, sum);
      next.push_back(added);
    }
    return next;
  });
}

void BlockEmitter::emitProduct(Value item) {
  Location loc = kernel.getLoc();
  SmallVector<Value> digits = delinearize(item, tileCounts);
  auto digit = digits.begin();
  for (unsigned loop : productBatch)
    index[loop] = elements.addI(*digit++, ranges[loop].lo);
  Value place[2] = {elements.create<arith::DivUIOp>(thread, elements.index(productThreads)),
                    elements.create<arith::RemUIOp>(thread, elements.index(productThreads))};
  for (auto [number, side] : llvm::enumerate(productSides)) {
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
    side.first = elements.mulI(digits.end()[-2 + static_cast<int>(number)], productTile);
    place[number] = elements.mulI(place[number], productElements);
    setCoordinates(side, elements.index(0), index);
  }

  SmallVector<Value> nearCounts = llvm::map_to_vector(nearTerms, [](const TermLoop &term) { return term.count; });
  SmallVector<Value> farCounts = llvm::map_to_vector(farTerms, [](const TermLoop &term) { return term.count; });
  Value rows = elements.floorDivI(elements.addI(multiplyAll(nearCounts), productDepth - 1), productDepth);
  Value numFar = multiplyAll(farCounts), zero = elements.index(0);
  SmallVector<Value> inits(productElements * productElements, emitInit(cast<DefinitionOpInterface>(product)));
  Value end = elements.create<arith::MulIOp>(rows, numFar);
  auto emitChunk = [&](Value chunk, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Value> at(index);
    at.resize(rank + nearTerms.size() + farTerms.size());
    Value counter = castIndex(termType, chunk);
    Value firstTerm =
        castIndex(builder.getIndexType(), elements.create<arith::DivUIOp>(counter, castIndex(termType, numFar)));
    Value far = elements.create<arith::RemUIOp>(counter, castIndex(termType, numFar));
    for (auto [loop, digit] : llvm::zip_equal(farTerms, delinearize(far, farCounts)))
      at[loop.position] = elements.addI(digit, loop.lo);
    gpu::BarrierOp::create(builder, loc);
    for (unsigned number : {0, 1})
      stageOperand(number, elements.mulI(firstTerm, productDepth), at);
    gpu::BarrierOp::create(builder, loc);
    if (!mustBeFinite(0) && !mustBeFinite(1))
      return emitTerms(carried, place, /*guarded=*/false);
    // Zero for a factor that is not there is right if the other one is a number.
    Value guarded = loadShared(builder.getI1Type(), elements.index(notFinite));
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
  std::optional<int64_t> numChunks = ElementBuilder::getConstantIndex(end);
  SmallVector<Value> sums;
  if (isa<FloatType>(inits.front().getType()) && (!numChunks || *numChunks > chunksOfPart)) {
    Value parts = elements.floorDivI(elements.addI(end, chunksOfPart - 1), chunksOfPart);
    sums = elements.forLoop(zero, parts, inits, [&](Value part, ValueRange carried) {
      Value begin = elements.mulI(part, chunksOfPart);
      SmallVector<Value> added =
          elements.forLoop(begin, elements.minI(elements.addI(begin, chunksOfPart), end), inits, emitChunk);
      for (auto [sum, before] : llvm::zip_equal(added, carried))
        sum = elements.add(before, sum);
      return added;
    });
  } else {
    sums = elements.forLoop(zero, end, inits, emitChunk);
  }

  SmallVector<Value> isInside[2];
  SmallVector<SmallVector<Value>> coordinates[2];
  for (auto [number, side] : llvm::enumerate(productSides))
    for (int64_t i = 0; i < productElements; ++i) {
      coordinates[number].push_back(index);
      isInside[number].push_back(setCoordinates(side, elements.addI(place[number], i), coordinates[number].back()));
    }
  for (auto [position, sum] : llvm::enumerate(sums)) {
    int64_t i = static_cast<int64_t>(position) / productElements, j = static_cast<int64_t>(position) % productElements;
    for (const auto &[each, from] :
         {std::pair(&productSides[0], coordinates[0][i]), {&productSides[1], coordinates[1][j]}})
      for (const ProductSide::SideLoop &loop : each->loops)
        index[loop.loop] = from[loop.loop];
    isItem = isInside[0][i] && isInside[1][j] ? elements.andB(isInside[0][i], isInside[1][j])
             : isInside[0][i]                 ? isInside[0][i]
                                              : isInside[1][j];
    productValue = sum;
    emitStores();
  }
}
