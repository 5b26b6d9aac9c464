//===- Products.cpp - Sums of products through shared memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a block computes a tile of a reduction of two operands, such as a matrix product: both operands' parts of
// the tile go through shared memory, and a thread has several elements, which share what it reads there.
//
//===----------------------------------------------------------------------===//

#include "BlockEmitter.h"

using namespace mlir;
using namespace dovetail;

/// Terms of which the operands lie in shared memory at a time.
static constexpr int64_t depth = 16;
/// Elements of a row of shared memory. Four neighbours of a row are read at once; writes of neighbouring rows meet in a
/// bank twice at most.
static constexpr int64_t pitch = 64 + 4;

namespace {
/// Gives a term the elements of its two operands.
class TwoElements : public ElementSource {
public:
  TwoElements(Value first, Value second) : values{first, second} {}
  Value read(unsigned operand, ArrayRef<Value>) override { return values[operand]; }
  std::pair<Value, Value> getLoopRange(unsigned) override { llvm_unreachable("terms have no ranges"); }

private:
  Value values[2];
};
} // namespace

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

bool BlockEmitter::chooseProduct() {
  // Shorter loops leave most of a tile empty.
  constexpr int64_t shortest = 32;
  auto yielded = kernel.getYield().getValues();
  auto reduction = yielded.front().getDefiningOp<ReductionOpInterface>();
  if (yielded.size() != 1 || !reduction || reduction->getNumOperands() != 2)
    return false;
  // Every element of an operand belongs to one iteration of the loops that it depends on.
  OpRelation relation = cast<PartitionableOpInterface>(*reduction).getRelation();
  auto dependsOn = [&](unsigned operand, unsigned loop) {
    return llvm::any_of(relation.operands[operand],
                        [&](const DimRelation &dim) { return dim.loop == static_cast<int>(loop); });
  };
  for (auto [dims, type] : llvm::zip_equal(relation.operands, reduction->getOperandTypes()))
    for (auto [dim, extent] : llvm::zip_equal(dims, cast<RankedTensorType>(type).getShape()))
      if (dim.loop >= 0 ? !dim.map.isIdentity() || extent != relation.loops[dim.loop].extent : extent != 1)
        return false;
  int64_t terms = 1;
  for (unsigned loop = rank; loop < relation.loops.size(); ++loop) {
    // Terms of a tile that are not there are made of zeros, and must not count.
    const Loop &info = relation.loops[loop];
    if (info.kind != LoopKind::Reduction || info.reduction != ReduceKind::Sum || !dependsOn(0, loop) ||
        !dependsOn(1, loop))
      return false;
    terms = llvm::SaturatingMultiply<uint64_t>(terms, info.extent);
  }
  // The longest loops that one operand alone depends on are the sides of tiles.
  int sides[2] = {-1, -1};
  for (unsigned loop = 0; loop < rank; ++loop)
    for (unsigned operand : {0, 1})
      if (dependsOn(operand, loop) && !dependsOn(1 - operand, loop) &&
          (sides[operand] < 0 || extents[loop] >= extents[sides[operand]]))
        sides[operand] = loop;
  if (sides[0] < 0 || sides[1] < 0 || extents[sides[0]] < shortest || extents[sides[1]] < shortest || terms < depth)
    return false;
  // Neighbouring threads have neighbouring elements of the second side.
  unsigned last = getInnermost(kernel.getResultLayout(0), yielded.front().getType()) == sides[0] ? 0 : 1;
  product = reduction;
  llvm::append_range(itemLoops, analysis.getLoopOrder());
  for (unsigned operand : {1 - last, last}) {
    productSides[operand == last].operand = operand;
    productSides[operand == last].loop = sides[operand];
    llvm::erase(itemLoops, static_cast<unsigned>(sides[operand]));
    itemLoops.push_back(sides[operand]);
  }
  team = blockSize;
  return true;
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

/// Brings the part of the tile and of `depth` terms from `firstTerm` on that belongs to a side into shared memory.
void BlockEmitter::stageOperand(const ProductSide &side, Value firstTerm, Value numTerms) {
  OpRelation relation = cast<PartitionableOpInterface>(*product).getRelation();
  ArrayRef<unsigned> terms = analysis.getFoldOrder(product).loops;
  Value value = product->getOperand(side.operand);
  // Neighbouring threads read neighbours: along the terms, or along the side.
  auto op = cast<PartitionableOpInterface>(*product);
  auto reads = analysis.getReads(value, analysis.getIndexOfOperand(op, side.operand, analysis.getResultIndex()));
  bool alongTerms = llvm::any_of(reads, [&](const KernelAnalysis::Read &read) {
    return analysis.getStride(read.first, read.second, terms.back()) == 1;
  });
  elements.forLoop(elements.index(0), elements.index(productTile * depth / blockSize), {}, [&](Value step, ValueRange) {
    Value linear = elements.addI(elements.mulI(step, blockSize), thread);
    Value width = elements.index(alongTerms ? depth : productTile);
    Value inner = elements.create<arith::RemUIOp>(linear, width);
    Value outer = elements.create<arith::DivUIOp>(linear, width);
    Value inTerms = alongTerms ? inner : outer, inSide = alongTerms ? outer : inner;
    // Beyond the last term both operands are zero.
    Value term = elements.addI(firstTerm, inTerms);
    Value isTerm = elements.compareI(arith::CmpIPredicate::slt, term, numTerms);
    SmallVector<Value> at(index);
    at.resize(relation.loops.size());
    isItem = {};
    at[side.loop] = emitTileCoordinate(side.loop, side.first, inSide, productTile);
    delinearize(elements.minI(term, elements.addI(numTerms, -1)), terms, SmallVector<int64_t>(terms.size(), 1),
                [&](unsigned loop, Value coordinate) { at[getFoldPosition(product, loop)] = coordinate; });
    SmallVector<Value> operandIndex = llvm::map_to_vector(relation.operands[side.operand], [&](const DimRelation &dim) {
      return dim.loop < 0 ? elements.index(0) : at[dim.loop];
    });
    Value element = emitValue(value, operandIndex);
    element = elements.select(isTerm, element, elements.constant(side.type, 0));
    Value place = elements.addI(elements.addI(elements.mulI(inTerms, pitch), inSide), side.offset);
    storeShared(element, place, side.offset + depth * pitch);
    return SmallVector<Value>();
  });
}

void BlockEmitter::emitProduct() {
  Location loc = kernel.getLoc();
  auto reduction = cast<ReductionOpInterface>(*product);
  constexpr int64_t threads = productTile / productElements;
  Value place[2] = {elements.create<arith::DivUIOp>(thread, elements.index(threads)),
                    elements.create<arith::RemUIOp>(thread, elements.index(threads))};
  int64_t bytes = 0;
  for (auto [number, side] : llvm::enumerate(productSides)) {
    Type type = product->getOperand(side.operand).getType();
    side.type = ElementBuilder::scalarType(cast<RankedTensorType>(type).getElementType());
    side.first = index[side.loop];
    int64_t width = llvm::divideCeil(side.type.getIntOrFloatBitWidth(), 8);
    side.offset = llvm::divideCeil(bytes, width);
    bytes = (side.offset + depth * pitch) * width;
    place[number] = elements.mulI(place[number], productElements);
  }
  ArrayRef<unsigned> terms = analysis.getFoldOrder(product).loops;
  Value numTerms = countIterations(terms, SmallVector<int64_t>(terms.size(), 1));
  Value numChunks = elements.floorDivI(elements.addI(numTerms, depth - 1), depth);

  auto addTerm = [&](Value term, ValueRange sums) {
    Value values[2][productElements];
    for (auto [number, side] : llvm::enumerate(productSides))
      for (int64_t i = 0; i < productElements; ++i) {
        Value position = elements.addI(elements.mulI(term, pitch), place[number]);
        values[side.operand][i] = loadShared(side.type, elements.addI(position, side.offset + i));
      }
    SmallVector<Value> next;
    SmallVector<Value> anywhere(rank + terms.size(), elements.index(0));
    for (int64_t i = 0; i < productElements; ++i)
      for (int64_t j = 0; j < productElements; ++j) {
        bool isFirst = productSides[0].operand == 0;
        TwoElements source(values[0][isFirst ? i : j], values[1][isFirst ? j : i]);
        Value product = reduction.emitTerm(elements, anywhere, source);
        next.push_back(reduction.emitCombine(elements, sums[next.size()], product));
      }
    return next;
  };
  SmallVector<Value> sums(productElements * productElements, reduction.emitInit(elements));
  sums = elements.forLoop(elements.index(0), numChunks, sums, [&](Value chunk, ValueRange carried) {
    gpu::BarrierOp::create(builder, loc);
    for (const ProductSide &side : productSides)
      stageOperand(side, elements.mulI(chunk, depth), numTerms);
    gpu::BarrierOp::create(builder, loc);
    return elements.forLoop(elements.index(0), elements.index(depth), carried, addTerm);
  });
  for (auto [number, sum] : llvm::enumerate(sums)) {
    int64_t offsets[2] = {static_cast<int64_t>(number) / productElements,
                          static_cast<int64_t>(number) % productElements};
    isItem = {};
    for (auto [side, at, offset] : llvm::zip_equal(productSides, place, offsets))
      index[side.loop] = emitTileCoordinate(side.loop, side.first, elements.addI(at, offset), productTile);
    productValue = sum;
    emitStores();
  }
}
