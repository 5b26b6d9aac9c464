//===- ProductTiles.cpp - How large tiles of products are ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which sums of products are made of tiles, of which shape these are, and how many blocks share their terms.
//
//===----------------------------------------------------------------------===//

#include "ProductMapping.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

bool ProductMapping::findProduct() {
  auto yielded = kernel.getYield().getValues();
  parts = yielded.front().getDefiningOp<plan::PartsOp>();
  Operation *op = parts ? parts.getReduction().getDefiningOp() : getOnlyResult(kernel);
  // More may be done to each element.
  if (SmallVector<Operation *> outer = analysis.getOuterReductions(); !op && outer.size() == 1)
    op = outer.front();
  product = dyn_cast_if_present<DefinitionOpInterface>(op);
  return product && yielded.size() == 1 && isCheap(kernel, op) && getDefinition(product).isProduct &&
         (parts || cast<RankedTensorType>(op->getResult(0).getType()).getShape() == kernel.getShape());
}

bool ProductMapping::take() {
  // A quarter of a tile is still better than elements that each read both factors of all of their terms.
  constexpr int64_t shortest = 16;
  if (!findProduct())
    return false;
  blocks = divideLoops();
  findStrides();
  int64_t terms = 1;
  for (const Loop &loop : llvm::drop_begin(getDefinition(product).loops, rank))
    terms = llvm::SaturatingMultiply<uint64_t>(terms, loop.extent);
  if (sides[0].extent < shortest || sides[1].extent < shortest || terms < depth)
    return false;
  chunks = llvm::divideCeil(terms, depth);
  if (parts)
    blocks /= parts.getCount();
  auto chosen = chooseShape(parts ? parts.getCount() : 1);
  if (!chosen)
    return false;
  for (auto [number, side] : llvm::enumerate(sides)) {
    side.threads = chosen->second.threads[number];
    side.perThread = chosen->second.perThread[number];
    side.edge = side.threads * side.perThread;
  }
  // While one block waits for memory another one computes. Of fewer sums ptxas sees to that, and more fill registers.
  constexpr int64_t manySums = 32;
  if (sides[0].perThread * sides[1].perThread == manySums)
    blocksAtOnce = 2;
  countTileLoops();
  groupThreads = device.blockThreads;
  return true;
}

int64_t ProductMapping::divideLoops() {
  calls::ContractionRoles roles = getDefinition(product).getRoles();
  sides[0].operand = 0;
  sides[1].operand = 1;
  int64_t tiles = 1;
  for (unsigned loop : analysis.getLoopOrder()) {
    // The operand that has another element in each iteration, in blocks in which the other one has the same.
    unsigned operand = roles.getSharing(0, loop) == 1 ? 0 : 1;
    int64_t block = roles.getSharing(1 - operand, loop);
    bool isOfParts = parts && loop == parts.getDim();
    if (isOfParts || roles.getSharing(operand, loop) != 1 || block <= 1 || extents[loop] % block != 0) {
      batch.push_back(loop);
      tiles *= extents[loop];
      continue;
    }
    sides[operand].loops.push_back({loop, block, {}, {}, 1});
    sides[operand].extent *= block;
    tiles *= extents[loop] / block;
  }
  // Neighbouring threads have neighbouring elements of the second side.
  int inner = kernel.getResultLayout(0).getInnermost(kernel.getYield().getValues().front().getType());
  if (llvm::any_of(sides[0].loops, [&](const auto &each) { return static_cast<int>(each.loop) == inner; }))
    std::swap(sides[0], sides[1]);
  return tiles;
}

void ProductMapping::findStrides() {
  // Neighbours on the second side are stored together.
  Side &side = sides[0];
  for (Side::SideLoop &each : side.loops)
    for (const layout::AccessDim &dim : getDefinition(product).reads[side.operand].dims)
      if (dim.divisor != 1 && dim.index.getFactor(each.loop) == 1 && isStatic(each.loop) &&
          each.block == extents[each.loop] && extents[each.loop] % dim.divisor == 0)
        each.stride = dim.divisor;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Type ProductMapping::getType(const Side &side) const {
  Value operand = const_cast<DefinitionOpInterface &>(product)->getOperand(side.operand);
  return ElementBuilder::scalarType(cast<RankedTensorType>(operand.getType()).getElementType());
}

int64_t ProductMapping::boundBytes(const TileShape &shape) const {
  int64_t bytes = buffers;
  for (auto [number, side] : llvm::enumerate(sides)) {
    int64_t width = getByteWidth(getType(side)), edge = shape.getEdge(number);
    bytes += buffers * depth * (getPitch(edge, width) * width + getPitch(edge, 1));
  }
  return bytes;
}

SmallVector<ProductMapping::TileShape> ProductMapping::getShapes() const {
  // Sums of a thread should fit into its registers, twice.
  constexpr int64_t mostBytes = 256;
  Type type =
      cast<RankedTensorType>(const_cast<DefinitionOpInterface &>(product)->getResult(0).getType()).getElementType();
  int64_t width = std::max<int64_t>(getByteWidth(ElementBuilder::scalarType(type)), sizeof(float));
  SmallVector<TileShape> shapes;
  for (int64_t threads : {4, 8, 16, 32, 64})
    for (int64_t first : {8, 4, 2})
      for (int64_t second : {8, 4, 2}) {
        TileShape shape = {{device.blockThreads / threads, threads}, {first, second}};
        // Every thread brings a term of both sides, at least, into shared memory, and not more than there are registers
        // for.
        bool fits = shape.getEdge(0) + shape.getEdge(1) <= device.blockThreads;
        for (unsigned side : {0, 1})
          fits &= shape.threads[side] > 0 && shape.getEdge(side) * depth >= device.blockThreads;
        if (fits && first * second * width <= mostBytes && boundBytes(shape) <= device.sharedBytes)
          shapes.push_back(shape);
      }
  return shapes;
}

std::optional<std::pair<double, ProductMapping::TileShape>> ProductMapping::chooseShape(int64_t parts) const {
  std::optional<std::pair<double, TileShape>> best;
  for (const TileShape &shape : getShapes())
    if (double time = estimate(shape, parts); !best || time < best->first)
      best = {time, shape};
  return best;
}

double ProductMapping::estimate(const TileShape &shape, int64_t parts) const {
  // A large device has so many processors, each of which does so many additions of products at a time. A block alone
  // does not keep a processor busy: it waits for memory and for its slowest thread.
  const double processors = llvm::divideCeil(device.busyBlocks, 4), sumsAtATime = 128;
  constexpr double fewest = 1.5;
  // Costs of a term: reads of shared memory for each row and column of a thread, and writes for each one of a tile.
  // Reads mostly take place while sums are added.
  constexpr double perRead = 5, overlapped = 0.75, perEdge = 1. / 16;
  // Of a block, until it has begun and when it stores.
  constexpr double perBlock = 1500;
  double tiles = blocks, elements = 1, reads = 0, edges = 0;
  for (auto [number, side] : llvm::enumerate(sides)) {
    double edge = shape.getEdge(number);
    tiles *= std::ceil(side.extent / edge);
    elements *= edge;
    reads += shape.perThread[number];
    edges += edge;
  }
  // Large tiles leave no registers to other blocks, which would compute while one waits.
  constexpr double fewSums = 16, perDoubling = 0.04;
  const double sums = shape.perThread[0] * shape.perThread[1];
  double waits = 1 + perDoubling * std::max(std::log2(sums / fewSums), 0.);
  double ofSums = elements / sumsAtATime, ofReads = reads * perRead * device.blockThreads / 256;
  double ofTerm = std::max(ofSums, ofReads) + (1 - overlapped) * std::min(ofSums, ofReads) + edges * perEdge;
  double ofChunk = waits * depth * ofTerm;
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
  double bestTime = chooseShape(1)->first;
  for (int64_t count = 2; count <= std::min(chunks / shortest, maxParts); ++count)
    if (double time = chooseShape(count)->first; time < bestTime) {
      best = count;
      bestTime = time;
    }
  return best;
}

void ProductMapping::countTileLoops() {
  tileLoops.assign(batch.begin(), batch.end());
  tileSteps.assign(batch.size(), 1);
  for (const Side &side : sides) {
    // A launch counts tiles by loops, from the innermost on, and may count some that are not there.
    int64_t rest = side.edge;
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
