//===- LineBuilder.cpp - Emitting lines of results ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines LineBuilder, and the lines of scans and of results that are written where data say.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

LineBuilder::LineBuilder(ElementBuilder &elements, Operation *op, const Definition &definition, ArrayRef<Value> loops,
                         ElementSource &source, ElementSink &sink, ArrayRef<unsigned> inner)
    : BodyBuilder(elements, op, definition, loops, source), sink(sink), inner(inner) {}

Value ElementSink::createScratch(Type, int64_t) { llvm_unreachable("lines are written one by one"); }
Value ElementSink::loadScratch(Value, Type, Value) { llvm_unreachable("lines are written one by one"); }
void ElementSink::storeScratch(Value, Value, Value) { llvm_unreachable("lines are written one by one"); }

/// Runs `body` for all coordinates of `loops` in the ranges of this rank, the first one outermost.
static void forEach(LineBuilder &line, ArrayRef<unsigned> loops, function_ref<void()> body) {
  if (loops.empty())
    return body();
  auto [lo, hi] = line.getRange(loops.front());
  line.elements.forEach(lo, hi, [&](Value iv) {
    line.setLoop(loops.front(), iv);
    forEach(line, loops.drop_front(), body);
  });
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

namespace {
/// Emits the terms of a line, in the order in which they accumulate.
class ScanLine {
public:
  ScanLine(DefinitionOpInterface op, LineBuilder &line)
      : op(op), line(line), elements(line.elements), scan(*line.getDefinition().scan) {}

  void emit();

private:
  /// What part `number` starts from, at the current coordinates.
  SmallVector<Value> emitInit(Value number);
  /// Takes the term at the current coordinates in, and writes the element there.
  SmallVector<Value> emitNext(ValueRange accumulators);
  void emitPart(Value number, Value lo, Value hi);

  /// Neighbouring lines of one loop that advance together: their accumulators should stay in the nearest cache.
  static constexpr int64_t tileSize = 1024;

  DefinitionOpInterface op;
  LineBuilder &line;
  ElementBuilder &elements;
  const Scan &scan;
};
} // namespace

SmallVector<Value> ScanLine::emitInit(Value number) {
  SmallVector<Value> init = op.emitInit(elements);
  if (scan.start)
    init = {widen(elements, line.read(*scan.start, number), init.front().getType())};
  return init;
}

SmallVector<Value> ScanLine::emitNext(ValueRange accumulators) {
  auto store = [&](ValueRange values) { line.write(0, line.getResultIndex(), op.emitFinish(line, values).front()); };
  if (scan.isExclusive)
    store(accumulators);
  SmallVector<Value> next = op.emitCombine(elements, accumulators, op.emitBody(line));
  if (!scan.isExclusive)
    store(next);
  return next;
}

void ScanLine::emitPart(Value number, Value lo, Value hi) {
  Value last = elements.addI(elements.addI(lo, hi), -1);
  auto setPosition = [&](Value iv) { line.setLoop(scan.loop, scan.isReversed ? elements.subI(last, iv) : iv); };
  if (line.getInnerLoops().empty()) {
    elements.forLoop(lo, hi, emitInit(number), [&](Value iv, ValueRange carried) {
      setPosition(iv);
      return emitNext(carried);
    });
    return;
  }
  // Neighbouring lines advance together, their accumulators in scratch memory.
  unsigned inner = line.getInnerLoops().back();
  ArrayRef<unsigned> outer = line.getInnerLoops().drop_back();
  auto getExtent = [&](unsigned loop) { return std::max<int64_t>(line.getDefinition().loops[loop].extent, 1); };
  int64_t width = outer.empty() ? std::min(tileSize, getExtent(inner)) : getExtent(inner), size = width;
  for (unsigned loop : outer)
    size *= getExtent(loop);
  auto [begin, end] = line.getRange(inner);
  Value tiles = elements.floorDivI(elements.addI(elements.subI(end, begin), width - 1), width);
  elements.forEach(elements.index(0), tiles, [&, begin = begin, end = end](Value tile) {
    Value first = elements.addI(begin, elements.mulI(tile, width));
    Value stop = elements.minI(end, elements.addI(first, width));
    ElementSink &sink = line.getSink();
    SmallVector<std::pair<Value, Type>> scratch;
    auto forEachLine = [&](function_ref<SmallVector<Value>(Value position)> body) {
      forEach(line, outer, [&] {
        Value row = elements.index(0);
        for (unsigned loop : outer) {
          Value offset = elements.subI(line.getLoop(loop), line.getRange(loop).first);
          row = elements.addI(elements.mulI(row, getExtent(loop)), offset);
        }
        elements.forEach(first, stop, [&](Value coordinate) {
          line.setLoop(inner, coordinate);
          Value position = elements.addI(elements.mulI(row, width), elements.subI(coordinate, first));
          for (auto [number, value] : llvm::enumerate(body(position))) {
            if (scratch.size() <= number)
              scratch.push_back({sink.createScratch(value.getType(), size), value.getType()});
            sink.storeScratch(scratch[number].first, position, value);
          }
        });
      });
    };
    forEachLine([&](Value) { return emitInit(number); });
    elements.forEach(lo, hi, [&](Value iv) {
      setPosition(iv);
      forEachLine([&](Value position) {
        SmallVector<Value> accumulators;
        for (auto [memory, type] : scratch)
          accumulators.push_back(sink.loadScratch(memory, type, position));
        return emitNext(accumulators);
      });
    });
  });
}

void ScanLine::emit() {
  auto [lo, hi] = line.getRange(scan.loop);
  unsigned numParts = scan.restarts.size() - 1;
  if (numParts == 1)
    return emitPart(elements.index(0), lo, hi);
  elements.forEach(elements.index(0), elements.index(numParts), [&, lo = lo, hi = hi](Value part) {
    emitPart(part, elements.maxI(lo, elements.getEntry(scan.restarts, part)),
             elements.minI(hi, elements.getEntry(scan.restarts, elements.addI(part, 1))));
  });
}

//===----------------------------------------------------------------------===//
// Writes where data say
//===----------------------------------------------------------------------===//

namespace {
/// Where an update goes.
struct Place {
  SmallVector<std::pair<unsigned, Value>> positions; ///< Of dimensions of the result.
  Value isOwned;                                     ///< i1: this rank writes there.
};
} // namespace

/// Reads where the update at the current coordinates of the taps goes.
static Place emitPlace(LineBuilder &line) {
  ElementBuilder &elements = line.elements;
  Place place{{}, elements.boolean(true)};
  for (const DataIndex &index : line.getDefinition().getDataIndices()) {
    BodyBuilder::Position found = line.readPosition(index);
    line.report(index, found, elements.boolean(true));
    auto [lo, hi] = line.getRange(index.loop);
    place.isOwned = elements.andB(place.isOwned, elements.compareI(arith::CmpIPredicate::sle, lo, found.position));
    place.isOwned = elements.andB(place.isOwned, elements.compareI(arith::CmpIPredicate::slt, found.position, hi));
    place.positions.emplace_back(index.loop, found.position);
  }
  return place;
}

/// i1: these reads have elements at the current coordinates.
static Value emitIsThere(LineBuilder &line, const llvm::SmallSetVector<unsigned, 2> &reads) {
  Value isThere = line.elements.boolean(true);
  for (unsigned read : reads)
    isThere = line.elements.andB(isThere, line.isInside(read));
  return isThere;
}

static void emitWrites(DefinitionOpInterface op, LineBuilder &line) {
  const Definition &definition = line.getDefinition();
  SmallVector<unsigned> loops = definition.lines;
  llvm::append_range(loops, line.getInnerLoops());
  if (!line.isInPlace())
    forEach(line, loops, [&] { line.write(0, line.getResultIndex(), line.read(0)); });
  // The other reads are of iterations, whatever the line's loops are.
  for (unsigned loop : definition.lines)
    line.setLoop(loop, {});
  SmallVector<unsigned> taps, inner;
  for (unsigned loop = definition.resultRank; loop < definition.loops.size(); ++loop)
    taps.push_back(loop);
  llvm::SmallSetVector<unsigned, 2> indices, others;
  for (const DataIndex &index : definition.getDataIndices())
    indices.insert(index.read);
  for (unsigned read = 1; read < definition.reads.size(); ++read)
    if (!indices.contains(read))
      others.insert(read);
  // Neighbours that go to the same place ask for it once.
  bool isShared = llvm::none_of(indices, [&](unsigned read) {
    return llvm::any_of(definition.reads[read].dims, [&](const layout::AccessDim &dim) {
      return llvm::any_of(line.getInnerLoops(), [&](unsigned loop) { return dim.index.dependsOn(loop); });
    });
  });
  llvm::append_range(isShared ? inner : taps, line.getInnerLoops());
  forEach(line, taps, [&] {
    line.elements.runIf(emitIsThere(line, indices), [&] {
      Place place = emitPlace(line);
      line.elements.runIf(place.isOwned, [&] {
        forEach(line, inner, [&] {
          line.elements.runIf(emitIsThere(line, others), [&] {
            SmallVector<Value> at(line.getResultIndex());
            for (auto [dim, position] : place.positions)
              at[dim] = position;
            Value combined = op.emitCombine(line.elements, line.readBack(0, at), op.emitBody(line)).front();
            line.write(0, at, combined);
          });
        });
      });
    });
  });
}

void dovetail::emitDefaultLine(Operation *operation, LineBuilder &line) {
  auto op = cast<DefinitionOpInterface>(operation);
  if (line.getDefinition().scan)
    return ScanLine(op, line).emit();
  assert(line.getDefinition().writes && "a row program defines emitLine");
  emitWrites(op, line);
}
