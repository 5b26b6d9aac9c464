//===- ProductMapping.cpp - Sums of products through shared memory --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a block computes a tile of a sum of products.
//
//===----------------------------------------------------------------------===//

#include "ProductMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;

// Rows of shared memory have the elements of a tile for one term, and are 16 bytes longer: eight rows begin in eight
// different ones of the banks 0, 4, ... 28. Threads write neighbours of a row, or eight terms of neighbouring rows of
// the operand. A thread reads runs of 16 bytes, next to those of its neighbour: of more, its elements are several runs,
// so that a warp's reads of a run lie together. Threads of one row, or column, of a warp read the same.

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
  auto count = [](const TermLoop &term) { return term.count; };
  numNear = multiplyAll(llvm::map_to_vector(nearTerms, count));
  numFar = multiplyAll(llvm::map_to_vector(farTerms, count));
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

bool ProductMapping::dependsOnNearTerms(const Side &side) {
  const Definition &definition = getDefinition(product);
  auto type = cast<RankedTensorType>(product->getOperand(side.operand).getType());
  for (auto [number, dim] : llvm::enumerate(definition.reads[side.operand].dims)) {
    layout::Interval bounds = dim.need(definition.getRanges());
    bool isSure = bounds.lo >= 0 && bounds.hi <= type.getDimSize(number) && dim.divisor == 1;
    if (!isSure && llvm::any_of(nearTerms, [&](const TermLoop &loop) { return dim.index.dependsOn(loop.position); }))
      return true;
  }
  return false;
}

void ProductMapping::placeOperands() {
  int64_t bytes = 0;
  for (Side &side : sides) {
    side.type = getType(side);
    int64_t width = getByteWidth(side.type);
    side.run = std::min(side.perThread, device.accessBytes / width);
    side.pitch = getPitch(side.edge, width);
    side.offset = llvm::divideCeil(bytes, width);
    bytes = (side.offset + buffers * depth * side.pitch) * width;
    side.isGuarded = mayBeMissing(side);
  }
  for (Side &side : sides) {
    side.guards = bytes;
    side.guardRows = dependsOnNearTerms(side) ? depth : 1;
    if (side.isGuarded)
      bytes += buffers * side.guardRows * getPitch(side.edge, 1);
  }
  notFinite = bytes;
  if (mustBeFinite(0) || mustBeFinite(1)) {
    Value isFirst = elements.compareI(arith::CmpIPredicate::ult, thread, elements.index(buffers));
    elements.runIf(
        isFirst, [&] { shared.store(elements.boolean(false), elements.addI(thread, notFinite), notFinite + buffers); });
    gpu::BarrierOp::create(builder, kernel.getLoc());
  }
}

SmallVector<Value> ProductMapping::countByLoop() {
  SmallVector<Value> counts;
  for (unsigned loop : batch)
    counts.push_back(countSteps(loop, 1));
  SmallVector<Value> tiles;
  for (const Side &side : sides) {
    SmallVector<Value> inBlock;
    for (auto [loop, block, lo, count, stride] : side.loops) {
      Range range = ranges[loop];
      bool isWhole = block == extents[loop];
      Value last = elements.floorDivI(elements.addI(range.hi, -1), block);
      counts.push_back(isWhole ? elements.index(1)
                               : elements.addI(elements.subI(last, elements.floorDivI(range.lo, block)), 1));
      inBlock.push_back(isWhole ? countSteps(loop, 1) : elements.index(block));
    }
    tiles.push_back(elements.floorDivI(elements.addI(multiplyAll(inBlock), side.edge - 1), side.edge));
  }
  counts.append(tiles);
  return counts;
}

Value ProductMapping::countTiles() {
  orderTerms();
  placeOperands();
  // With pads, and terms that do not fill rows, ptxas would rather spill than have fewer blocks on a processor.
  std::optional<int64_t> knownTerms = ElementBuilder::getConstantIndex(numNear);
  if ((sides[0].isGuarded || sides[1].isGuarded) && (nearTerms.size() > 1 || !knownTerms || *knownTerms % depth != 0))
    blocksAtOnce = std::max<int64_t>(blocksAtOnce, 2);
  tileCounts = countByLoop();
  return multiplyAll(tileCounts);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<Value> ProductMapping::beginTile(Value tile) {
  SmallVector<Value> digits = delinearize(tile, tileCounts);
  auto digit = digits.begin();
  for (unsigned loop : batch)
    index[loop] = elements.addI(*digit++, ranges[loop].lo);
  // A warp has a square of threads, rather than a row of them: so it reads little of shared memory.
  constexpr int64_t columns = 8;
  const int64_t width = std::min(sides[1].threads, columns), height = device.warpThreads / width;
  const int64_t across = sides[1].threads / width;
  auto divide = [&](Value a, int64_t b) { return elements.create<arith::DivUIOp>(a, elements.index(b)); };
  auto rest = [&](Value a, int64_t b) { return elements.create<arith::RemUIOp>(a, elements.index(b)); };
  Value warp = divide(thread, device.warpThreads), lane = rest(thread, device.warpThreads);
  SmallVector<Value> place = {
      elements.addI(elements.mulI(divide(warp, across), height), divide(lane, width)),
      elements.addI(elements.mulI(rest(warp, across), width), rest(lane, width)),
  };
  for (auto [number, side] : llvm::enumerate(sides)) {
    SmallVector<Value> counts;
    for (auto &[loop, block, lo, count, stride] : side.loops) {
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
    side.first = elements.mulI(digits.end()[-2 + static_cast<int>(number)], side.edge);
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

Value ProductMapping::getPosition(const Side &side, Value place, int64_t number) {
  return elements.addI(elements.mulI(place, side.run), number / side.run * side.threads * side.run + number % side.run);
}

SmallVector<Value> ProductMapping::loadGuards(const Side &side, Value place, Value row) {
  SmallVector<Value> guards;
  for (int64_t i = 0; i < side.perThread; ++i) {
    Value position = elements.addI(elements.mulI(row, getPitch(side.edge, 1)), getPosition(side, place, i));
    guards.push_back(shared.load(builder.getI1Type(), elements.addI(position, side.guards)));
  }
  return guards;
}

SmallVector<Value> ProductMapping::emitTerms(ValueRange sums, ArrayRef<Value> place, Value buffer, bool guarded) {
  Type type = sums.front().getType();
  SmallVector<Value> isInside[2];
  for (auto [number, side] : llvm::enumerate(sides))
    if (guarded && side.isGuarded && side.guardRows == 1)
      isInside[number] = loadGuards(side, place[number], buffer);
  auto emitTerm = [&](Value term, ValueRange carried) {
    SmallVector<Value> factors[2];
    Value row = elements.addI(elements.mulI(buffer, depth), term);
    for (auto [number, side] : llvm::enumerate(sides)) {
      bool isUnsigned = isUnsignedElement(product->getOperand(side.operand).getType());
      for (int64_t i = 0; i < side.perThread; i += side.run) {
        Value position = elements.addI(elements.mulI(row, side.pitch), getPosition(side, place[number], i));
        for (Value factor : shared.loadRun(side.type, elements.addI(position, side.offset), side.run))
          factors[number].push_back(isa<FloatType>(type) ? elements.convertFloat(factor, cast<FloatType>(type))
                                                         : elements.extendInt(factor, type, isUnsigned));
      }
      if (guarded && side.isGuarded && side.guardRows > 1)
        isInside[number] = loadGuards(side, place[number], row);
    }
    SmallVector<Value> next;
    for (auto [number, sum] : llvm::enumerate(carried)) {
      int64_t at[2] = {static_cast<int64_t>(number) / sides[1].perThread,
                       static_cast<int64_t>(number) % sides[1].perThread};
      Value added = elements.add(sum, elements.mul(factors[0][at[0]], factors[1][at[1]]));
      for (unsigned side : {0, 1})
        if (!isInside[side].empty())
          added = elements.select(isInside[side][at[side]], added, sum);
      next.push_back(added);
    }
    return next;
  };
  // So much code that reads from shared memory do not have to be waited for; little where it is rarely needed.
  constexpr int64_t products = 512;
  const int64_t unrolled = guarded ? 1 : std::clamp<int64_t>(products / sums.size(), 1, depth);
  SmallVector<Value> results = elements.forLoop(
      elements.index(0), elements.index(depth / unrolled), sums,
      [&](Value step, ValueRange carried) {
        SmallVector<Value> next(carried);
        for (int64_t i = 0; i < unrolled; ++i)
          next = emitTerm(elements.addI(elements.mulI(step, unrolled), i), next);
        return next;
      },
      /*maxUnroll=*/1);
  if (auto loop = results.front().getDefiningOp<scf::ForOp>(); loop && guarded) {
    MLIRContext *context = builder.getContext();
    auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
    loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {},
                                                                   {}, {}, {}, {}, {}));
  }
  return results;
}

SmallVector<Value> ProductMapping::emitChunk(ValueRange sums, ArrayRef<Value> place, Value buffer) {
  if (!mustBeFinite(0) && !mustBeFinite(1))
    return emitTerms(sums, place, buffer, /*guarded=*/false);
  auto emitAll = [&] {
    // Zero for a factor that is not there is right if the other one is a number.
    Value guarded = shared.load(builder.getI1Type(), elements.addI(buffer, notFinite));
    return elements.ifElse(
        guarded, sums.getTypes(), [&] { return emitTerms(sums, place, buffer, /*guarded=*/true); },
        [&] { return emitTerms(sums, place, buffer, /*guarded=*/false); });
  };
  // Of a transposed convolution, most taps reach none of the elements of a tile.
  const Side &side = sides[0];
  if (!mustBeFinite(1) || side.guardRows > 1 ||
      llvm::none_of(side.loops, [](const Side::SideLoop &loop) { return loop.stride > 1; }))
    return emitAll();
  Value isAny = elements.boolean(false);
  for (Value isOne : loadGuards(side, place[0], buffer))
    isAny = elements.create<arith::OrIOp>(isAny, isOne);
  return elements.ifElse(isAny, sums.getTypes(), emitAll, [&] { return llvm::to_vector_of<Value>(sums); });
}

SmallVector<Value> ProductMapping::emitChunks(ArrayRef<Value> place, Value begin, Value end, int64_t mostChunks) {
  SmallVector<Value> inits(sides[0].perThread * sides[1].perThread, product.emitInit(elements).front());
  Staging staging[2] = {prepareStaging(0), prepareStaging(1)};
  auto getBuffer = [&](Value chunk) { return elements.create<arith::RemUIOp>(chunk, elements.index(buffers)); };
  auto load = [&](Value chunk) {
    for (unsigned number : {0, 1})
      loadChunk(number, staging[number], chunk);
  };
  auto store = [&](Value chunk) {
    for (unsigned number : {0, 1})
      storeChunk(number, staging[number], getBuffer(chunk));
    gpu::BarrierOp::create(builder, kernel.getLoc());
  };
  load(begin);
  store(begin);
  // Loads of the next chunk begin before the present one is computed, and it is stored elsewhere afterwards: one
  // barrier is enough. The last chunk is loaded twice.
  Value last = elements.addI(end, -1);
  auto emitStep = [&](Value chunk, ValueRange carried) {
    Value next = elements.addI(chunk, 1);
    load(elements.minI(next, last));
    SmallVector<Value> sums = emitChunk(carried, place, getBuffer(chunk));
    store(next);
    return sums;
  };
  // Parts of long sums are added on their own, so that errors do not grow with the number of terms.
  constexpr int64_t chunksOfPart = 16;
  if (!isa<FloatType>(inits.front().getType()) || mostChunks <= chunksOfPart)
    return elements.forLoop(begin, end, inits, emitStep);
  Value sums = elements.floorDivI(elements.addI(elements.subI(end, begin), chunksOfPart - 1), chunksOfPart);
  return elements.forLoop(elements.index(0), sums, inits, [&](Value sum, ValueRange carried) {
    Value first = elements.addI(elements.mulI(sum, chunksOfPart), begin);
    SmallVector<Value> added =
        elements.forLoop(first, elements.minI(elements.addI(first, chunksOfPart), end), inits, emitStep);
    for (auto [sum, before] : llvm::zip_equal(added, carried))
      sum = elements.add(before, sum);
    return added;
  });
}

SmallVector<Value> ProductMapping::emitSums(ArrayRef<Value> place) {
  Value rows = elements.floorDivI(elements.addI(numNear, depth - 1), depth);
  Value begin = elements.index(0), end = elements.create<arith::MulIOp>(rows, numFar);
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
  SmallVector<Value> none(sides[0].perThread * sides[1].perThread, product.emitInit(elements).front());
  // Where a rank has no terms there is nothing to load.
  return elements.ifElse(
      elements.compareI(arith::CmpIPredicate::slt, begin, end), ValueRange(none).getTypes(),
      [&] { return emitChunks(place, begin, end, mostChunks); }, [&] { return none; });
}

bool ProductMapping::storesRuns(const Side &side) {
  if (side.loops.empty() || side.run == 1)
    return false;
  auto type = cast<RankedTensorType>(kernel.getYield().getValues().front().getType());
  plan::LayoutAttr layout = kernel.getResultLayout(0);
  unsigned loop = side.loops.back().loop;
  return static_cast<int>(loop) == layout.getInnermost(type) && isStatic(loop) &&
         side.loops.back().block == extents[loop] && extents[loop] % side.run == 0 &&
         layout.getExtents()[loop] == extents[loop];
}

void ProductMapping::storeSums(ArrayRef<Value> place, ArrayRef<Value> sums) {
  const bool byRuns = storesRuns(sides[1]);
  const int64_t run = byRuns ? sides[1].run : 1;
  SmallVector<Value> isInside[2];
  SmallVector<SmallVector<Value>> coordinates[2];
  for (auto [number, side] : llvm::enumerate(sides))
    for (int64_t i = 0; i < side.perThread; ++i) {
      bool isFirst = number == 0 || i % run == 0;
      coordinates[number].push_back(isFirst ? index : coordinates[number].back());
      if (isFirst) {
        Value position = getPosition(side, place[number], i);
        isInside[number].push_back(setCoordinates(side, position, coordinates[number].back(), number == 0 ? 1 : run));
      } else {
        unsigned inner = side.loops.back().loop;
        coordinates[number].back()[inner] = elements.addI(coordinates[number].back()[inner], 1);
        isInside[number].push_back(isInside[number].back());
      }
    }
  for (int64_t row = 0; row < sides[0].perThread; ++row)
    for (int64_t first = 0; first < sides[1].perThread; first += run) {
      Value condition = isInside[0][row];
      if (Value inside = isInside[1][first])
        condition = condition ? elements.andB(condition, inside) : inside;
      SmallVector<Store> stores;
      for (int64_t column = first; column < first + run; ++column) {
        for (const Side::SideLoop &loop : sides[0].loops)
          index[loop.loop] = coordinates[0][row][loop.loop];
        for (const Side::SideLoop &loop : sides[1].loops)
          index[loop.loop] = coordinates[1][column][loop.loop];
        sum = sums[row * sides[1].perThread + column];
        runBegin = byRuns && column == first ? index[sides[1].loops.back().loop] : Value();
        llvm::append_range(stores, emitResults());
      }
      int64_t bytes = run * getByteWidth(stores.front().value.getType());
      if (byRuns && bytes <= device.accessBytes)
        stores.front().alignment = builder.getI64IntegerAttr(bytes);
      emitStores(stores, condition);
    }
}

void ProductMapping::emitTile(Value tile) {
  SmallVector<Value> place = beginTile(tile);
  storeSums(place, emitSums(place));
}

KernelBody::Values ProductMapping::emitOp(Operation *op, ArrayRef<Value> index) {
  if (op == product.getOperation())
    return emitFinish(product, index, sum);
  // Parts are accumulators.
  return op == parts.getOperation() ? Values{sum} : BlockMapping::emitOp(op, index);
}

Value ProductMapping::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) {
  Value value = BlockMapping::emitLoad(memory, elementType, index);
  if (runBegin)
    alignLoad(value, memory, index, runBegin, sides[1].run);
  return value;
}

std::unique_ptr<BlockMapping> dovetail::createProductMapping(const BlockKernel &kernel) {
  return std::make_unique<ProductMapping>(kernel);
}
