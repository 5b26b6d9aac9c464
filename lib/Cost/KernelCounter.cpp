//===- KernelCounter.cpp - What kernels compute ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements KernelCounter.
//
//===----------------------------------------------------------------------===//

#include "KernelCounter.h"

#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"
#include "dovetail/Layout/Window.h"

using namespace mlir;
using namespace dovetail;

double KernelCounter::countElement(const Part &part, ArrayRef<int64_t> iterations) const {
  const Definition &definition = part.definition;
  SmallVector<int64_t> ends;
  std::optional<double> averagePart;
  for (auto [number, loop] : llvm::enumerate(definition.loops)) {
    bool isOwn = number < definition.resultRank || loop.kind == LoopKind::Tap || loop.isLookup();
    // A line is that of the rank; loops of the result have coordinates.
    if (number < definition.resultRank && definition.isLine(number))
      ends.push_back(iterations[number]);
    else
      ends.push_back(isOwn ? loop.extent : iterations[part.firstInner + number - definition.resultRank]);
    if (loop.kind == LoopKind::Part)
      averagePart = extents[part.firstInner + number - definition.resultRank];
  }
  return averagePart ? dovetail::countElement(part.op, definition, ends, *averagePart)
                     : dovetail::countElement(part.op, definition, ends);
}

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

static double getIterations(const Loop &loop) {
  if (loop.isLookup())
    return 1;
  if (loop.kind == LoopKind::Part && loop.ends.size() > 1)
    return double(loop.ends.back() - loop.ends.front()) / double(loop.ends.size() - 1);
  return double(loop.extent);
}

KernelCounter::KernelCounter(plan::KernelOp kernel) : kernel(kernel), rank(kernel.getShape().size()) {
  for (const Loop &loop : kernel.getLoops())
    extents.push_back(getIterations(loop));
  // Taps come behind all loops of the kernel.
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (auto defined = dyn_cast<DefinitionOpInterface>(op)) {
      Part &part = parts.emplace_back(Part{defined, defined.getDefinition(), 0, {}});
      part.firstInner = kernel.getFirstReductionLoop(&op);
      for (const Loop &loop : part.definition.loops)
        if (loop.kind == LoopKind::Tap)
          extents.push_back(double(loop.extent));
    }
  Coordinates index;
  for (unsigned dim = 0; dim < rank; ++dim) {
    index.push_back({llvm::SmallBitVector(extents.size()), dim + 1});
    index.back().loops.set(dim);
  }
  for (Value value : kernel.getYield().getValues())
    addUse(value, index);
  for (Operation &op : llvm::reverse(kernel.getBlock()->without_terminator()))
    addOperation(&op);
}

void KernelCounter::addUse(Value value, const Coordinates &index) {
  auto isSame = [&](const Coordinates &other) {
    return llvm::equal(index, other, [](const Coordinate &a, const Coordinate &b) { return a.hash == b.hash; });
  };
  SmallVector<Coordinates, 1> &known = places[value];
  if (!llvm::any_of(known, isSame))
    known.push_back(index);
}

KernelCounter::Coordinate KernelCounter::getCoordinate(const Definition &definition, const layout::AccessDim &dim,
                                                       const Coordinates &loops) const {
  Coordinate result{llvm::SmallBitVector(extents.size()), 0};
  std::optional<int> single = dim.index.asLoop();
  for (size_t number = 0; number < loops.size(); ++number) {
    if (!dim.index.dependsOn(number) && !dim.index.hasUnknown())
      continue;
    // What is looked up is where the element says that is read at such a place.
    if (definition.loops[number].isLookup()) {
      const Access &access = definition.reads[definition.loops[number].index];
      for (const layout::AccessDim &each : access.dims)
        if (!each.index.hasUnknown())
          result.loops |= getCoordinate(definition, each, loops).loops;
      continue;
    }
    result.loops |= loops[number].loops;
  }
  if (single && dim.divisor == 1 && dim.border == layout::Border::None && !definition.loops[*single].isLookup())
    return loops[*single];
  result.hash = llvm::hash_combine(llvm::hash_value(layout::str(dim)));
  for (size_t number = 0; number < loops.size(); ++number)
    if (dim.index.dependsOn(number))
      result.hash = llvm::hash_combine(result.hash, loops[number].hash);
  return result;
}

KernelCounter::Coordinates KernelCounter::getIndex(const Definition &definition, const Access &access,
                                                   const Coordinates &loops) const {
  Coordinates result;
  for (const layout::AccessDim &dim : access.dims)
    result.push_back(getCoordinate(definition, dim, loops));
  return result;
}

/// The loops that any of the coordinates depends on.
template <typename Coordinates> static llvm::SmallBitVector getLoops(const Coordinates &index, size_t size) {
  llvm::SmallBitVector loops(size);
  for (const auto &coordinate : index)
    loops |= coordinate.loops;
  return loops;
}

void KernelCounter::addOperation(Operation *op) {
  auto part = llvm::find_if(parts, [&](Part &part) { return part.op == op; });
  if (part == parts.end())
    return;
  SmallVector<Coordinates, 1> indices;
  for (Value result : op->getResults())
    for (const Coordinates &index : places.lookup(result)) {
      llvm::SmallBitVector loops = getLoops(index, extents.size());
      bool isNew =
          indices.empty() || !llvm::any_of(indices, [&](const Coordinates &other) {
            return llvm::equal(index, other, [](const Coordinate &a, const Coordinate &b) { return a.hash == b.hash; });
          });
      if (!isNew)
        continue;
      indices.push_back(index);
      // A line is written as a whole.
      for (unsigned line : part->definition.lines)
        loops.reset(line);
      part->uses.push_back(loops);
    }
  // Taps of the operations before this one.
  unsigned firstTap = kernel.getLoops().size();
  for (const Part &each : parts) {
    if (each.op == part->op)
      break;
    firstTap += each.definition.getNumTaps();
  }
  const Definition &definition = part->definition;
  unsigned firstOwnTap = definition.loops.size() - definition.getNumTaps();
  for (Coordinates &index : indices) {
    for (unsigned loop = definition.resultRank; loop < definition.loops.size(); ++loop) {
      unsigned number =
          loop < firstOwnTap ? part->firstInner + loop - definition.resultRank : firstTap + loop - firstOwnTap;
      index.push_back({llvm::SmallBitVector(extents.size()), llvm::hash_combine(number, op)});
      index.back().loops.set(number);
    }
    for (const Access &access : definition.reads)
      addUse(op->getOperand(access.operand), getIndex(definition, access, index));
  }
}

const KernelCounts &KernelCounter::get(ArrayRef<int64_t> iterations) {
  auto [entry, isNew] = known.try_emplace(std::vector<int64_t>(iterations.begin(), iterations.end()));
  KernelCounts &counts = entry->second;
  if (!isNew)
    return counts;
  SmallVector<Loop> loops = kernel.getLoops();
  auto getProduct = [&](const llvm::SmallBitVector &set) {
    double product = 1;
    for (unsigned loop : set.set_bits()) {
      bool isFixed = loop >= loops.size() || loops[loop].isLookup() || loops[loop].kind == LoopKind::Part;
      product *= isFixed ? extents[loop] : double(iterations[loop]);
    }
    return product;
  };
  for (const Part &part : parts) {
    double elements = 0;
    for (const llvm::SmallBitVector &use : part.uses)
      elements += getProduct(use);
    if (elements > 0)
      counts.operations += elements * countElement(part, iterations);
  }
  for (BlockArgument argument : kernel.getArguments()) {
    double &reads = counts.reads.emplace_back(0);
    for (const Coordinates &index : places.lookup(argument))
      reads += getProduct(getLoops(index, extents.size()));
  }
  return counts;
}
