//===- TransposeMapping.cpp - Kernels that do not write as they read ------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how values pass through tiles in shared memory, so that neighbouring threads read neighbours and write
// neighbours.
//
//===----------------------------------------------------------------------===//

#include "Mappings.h"

using namespace mlir;
using namespace dovetail;

namespace {
class TransposeMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;

private:
  /// A value that passes through shared memory.
  struct Staged {
    Value value;
    SmallVector<std::optional<unsigned>> loops; ///< For each dimension the result loop that is its coordinate, or zero.
    Type type;
    int64_t offset; ///< In the block's shared memory, in elements.
  };

  /// The loop along which most elements would be read in order, if that is not the order of writes.
  std::optional<unsigned> findReadLoop();
  /// Finds the values to stage for `value`, an element of which is needed at `index`.
  void stage(Value value, ArrayRef<Coordinate> index);
  void emitTile(Value tile) override;
  /// The coordinate of `loop` at `offset` in a tile that begins at `first`, or the last one of the rank; whether it is
  /// one of the rank is added to `isInside`.
  Value emitCoordinate(unsigned loop, Value first, Value offset, Value &isInside);
  Values emitOp(Operation *op, ArrayRef<Value> index) override;
  Value emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) override;
  /// The element of `value` at `index` that lies in shared memory, if it does.
  Value readStaged(Value value, ArrayRef<Value> index);

  /// Iterations of both loops of a tile. A row of a tile is one element longer, so that neither its rows nor its
  /// columns lie in one bank of shared memory.
  const int64_t edge = device.sharedBanks, pitch = edge + 1;
  unsigned reads = 0;  ///< The loop along which memory is read.
  unsigned writes = 0; ///< The loop along which memory is written.
  SmallVector<Staged> staged;
  int64_t stagedBytes = 0;
  Value stagedPosition; ///< In a tile, of the element that is computed; null while the tile is filled.
};
} // namespace

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

/// Shorter loops leave most of a tile empty.
static constexpr int64_t shortest = 16;

/// The loop that walks the innermost dimension of what is read one by one.
static std::optional<unsigned> getReadLoop(const KernelAnalysis &analysis, const KernelAnalysis::Read &read,
                                           unsigned rank) {
  for (unsigned loop = 0; loop < rank; ++loop)
    if (analysis.getStride(read.first, read.second, loop) == 1)
      return loop;
  return std::nullopt;
}

/// Whether each element of the result needs one of the operand. Where some do not (a concatenation's), there may be
/// none to read, in this rank's memory or at all.
static bool isReadForEachElement(DefinitionOpInterface op, unsigned operand) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  ArrayRef<int64_t> operandShape = cast<RankedTensorType>(op->getOperand(operand).getType()).getShape();
  OpRelation relation = op.getRelation();
  return llvm::all_of(llvm::zip_equal(operandShape, relation.operands[operand]), [&](auto pair) {
    const auto &[extent, dim] = pair;
    if (dim.loop < 0)
      return true;
    return dim.loop < static_cast<int>(shape.size()) && dim.map.isIdentity() && extent >= shape[dim.loop];
  });
}

bool TransposeMapping::take() {
  if (device.blockThreads > edge * edge || !divideElements())
    return false;
  writes = tileLoops.back();
  for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues()))
    if (kernel.getResultLayout(number).getInnermost(value.getType()) != static_cast<int>(writes))
      return false;
  std::optional<unsigned> loop = findReadLoop();
  if (!loop)
    return false;
  reads = *loop;
  for (Value value : kernel.getYield().getValues())
    stage(value, analysis.getResultIndex());
  if (staged.empty())
    return false;
  llvm::erase(tileLoops, reads);
  tileLoops.insert(tileLoops.end() - 1, reads);
  tileSteps.end()[-2] = tileSteps.back() = edge;
  groupThreads = device.blockThreads;
  return true;
}

std::optional<unsigned> TransposeMapping::findReadLoop() {
  if (extents[writes] < shortest)
    return std::nullopt;
  SmallVector<int64_t> elementsAlong(rank, 0);
  int64_t volume = 1;
  for (int64_t extent : kernel.getShape())
    volume *= extent;
  for (Value value : kernel.getYield().getValues())
    for (const KernelAnalysis::Read &read : analysis.getReads(value, analysis.getResultIndex())) {
      std::optional<unsigned> loop = getReadLoop(analysis, read, rank);
      int64_t size = cast<RankedTensorType>(read.first.getType()).getNumElements();
      // Small tensors stay in caches.
      if (loop && extents[*loop] >= shortest && size >= volume / 8 &&
          analysis.getStride(read.first, read.second, writes) > 1)
        elementsAlong[*loop] += size;
    }
  auto most = llvm::max_element(elementsAlong);
  if (*most == 0)
    return std::nullopt;
  return most - elementsAlong.begin();
}

void TransposeMapping::stage(Value value, ArrayRef<Coordinate> index) {
  constexpr size_t maxStaged = 4;
  bool wantsReads = false, wantsWrites = false;
  for (const KernelAnalysis::Read &read : analysis.getReads(value, index)) {
    std::optional<unsigned> loop = getReadLoop(analysis, read, rank);
    wantsReads |= loop == reads && analysis.getStride(read.first, read.second, writes) > 1;
    wantsWrites |= loop == writes;
  }
  if (!wantsReads || staged.size() == maxStaged)
    return;
  if (wantsWrites) {
    // Some of it is read in order already: the others go through tiles of their own.
    auto op = value.getDefiningOp<DefinitionOpInterface>();
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (isReadForEachElement(op, operand))
        stage(op->getOperand(operand), analysis.getIndexOfOperand(op, operand, index));
    return;
  }
  auto type = cast<RankedTensorType>(value.getType());
  Staged entry{value, {}, ElementBuilder::scalarType(type.getElementType()), 0};
  for (auto [extent, coordinate] : llvm::zip_equal(type.getShape(), index)) {
    bool isLoop = coordinate.unit >= 0 && coordinate.unit < static_cast<int>(rank) && !coordinate.shifted;
    if (extent != 1 && !isLoop)
      return;
    entry.loops.push_back(extent == 1 ? std::nullopt : std::optional<unsigned>(coordinate.unit));
  }
  if (llvm::any_of(staged, [&](const Staged &other) { return other.value == value && other.loops == entry.loops; }))
    return;
  int64_t width = getByteWidth(entry.type);
  entry.offset = llvm::divideCeil(stagedBytes, width);
  int64_t bytes = (entry.offset + edge * pitch) * width;
  if (bytes > device.sharedBytes)
    return;
  stagedBytes = bytes;
  staged.push_back(std::move(entry));
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

Value TransposeMapping::emitCoordinate(unsigned loop, Value first, Value offset, Value &isInside) {
  Value coordinate = elements.addI(first, offset);
  if (isStatic(loop) && extents[loop] % edge == 0)
    return coordinate;
  // Threads beyond the border do what those at the border do, and do not store it.
  Value isOne = elements.compareI(arith::CmpIPredicate::slt, coordinate, ranges[loop].hi);
  isInside = isInside ? elements.andB(isInside, isOne) : isOne;
  return elements.minI(coordinate, elements.addI(ranges[loop].hi, -1));
}

void TransposeMapping::emitTile(Value tile) {
  setIndex(tile);
  const int64_t rows = device.blockThreads / edge;
  Value firstRead = index[reads], firstWrite = index[writes];
  Value row = elements.create<arith::DivUIOp>(thread, elements.index(edge));
  Value inRow = elements.create<arith::RemUIOp>(thread, elements.index(edge));
  // `body` gets the other coordinate, in the loop that goes on from row to row.
  auto forRows = [&](function_ref<void(Value)> body) {
    elements.forEach(elements.index(0), elements.index(edge / rows),
                     [&](Value step) { body(elements.addI(row, elements.mulI(step, rows))); });
  };
  auto getPosition = [&](Value alongReads, Value alongWrites) {
    return elements.addI(elements.mulI(alongWrites, pitch), alongReads);
  };
  stagedPosition = {};
  forRows([&](Value across) {
    Value isInside;
    index[reads] = emitCoordinate(reads, firstRead, inRow, isInside);
    index[writes] = emitCoordinate(writes, firstWrite, across, isInside);
    for (const Staged &each : staged) {
      SmallVector<Value> at = llvm::map_to_vector(
          each.loops, [&](std::optional<unsigned> loop) { return loop ? index[*loop] : elements.index(0); });
      Value value = emitValue(each.value, at);
      shared.store(value, elements.addI(getPosition(inRow, across), each.offset), each.offset + edge * pitch);
    }
  });
  gpu::BarrierOp::create(builder, kernel.getLoc());
  forRows([&](Value across) {
    Value isInside;
    index[reads] = emitCoordinate(reads, firstRead, across, isInside);
    index[writes] = emitCoordinate(writes, firstWrite, inRow, isInside);
    stagedPosition = getPosition(across, inRow);
    emitStores(emitResults(), isInside);
  });
  // The next tile goes to the same place.
  gpu::BarrierOp::create(builder, kernel.getLoc());
}

KernelBody::Values TransposeMapping::emitOp(Operation *op, ArrayRef<Value> index) {
  Value value = readStaged(op->getResult(0), index);
  return value ? Values{value} : BlockMapping::emitOp(op, index);
}

Value TransposeMapping::emitLoad(const Memory &memory, Type elementType, ArrayRef<Value> index) {
  BlockArgument argument = getArgument(memory);
  Value value = argument ? readStaged(argument, index) : Value();
  return value ? value : BlockMapping::emitLoad(memory, elementType, index);
}

Value TransposeMapping::readStaged(Value value, ArrayRef<Value> at) {
  if (!stagedPosition)
    return {};
  auto entry = llvm::find_if(staged, [&](const Staged &each) {
    return each.value == value && llvm::all_of(llvm::zip_equal(each.loops, at), [&](auto pair) {
             auto [loop, coordinate] = pair;
             return !loop || getNumber(coordinate) == getNumber(index[*loop]);
           });
  });
  if (entry == staged.end())
    return {};
  return shared.load(entry->type, elements.addI(stagedPosition, entry->offset));
}

std::unique_ptr<BlockMapping> dovetail::createTransposeMapping(const BlockKernel &kernel) {
  return std::make_unique<TransposeMapping>(kernel);
}
