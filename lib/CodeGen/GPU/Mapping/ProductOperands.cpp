//===- ProductOperands.cpp - Operands of products in shared memory --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the operands of a tile of products get into shared memory.
//
//===----------------------------------------------------------------------===//

#include "ProductMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

Value ProductMapping::setCoordinates(const Side &side, Value offset, MutableArrayRef<Value> at) {
  Value position = elements.addI(side.first, offset), isInside;
  std::optional<int64_t> count = ElementBuilder::getConstantIndex(side.count);
  if (!count || *count % edge != 0) {
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

bool ProductMapping::readsAlongTerms(const Side &side) {
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

void ProductMapping::stageOperand(unsigned number, Value firstTerm, ArrayRef<Value> at) {
  const Side &side = sides[number];
  Value value = product->getOperand(side.operand);
  // Neighbouring threads read neighbours: eight terms, or the side.
  constexpr int64_t run = 8;
  bool alongTerms = readsAlongTerms(side);
  int64_t width = alongTerms ? run : edge;
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
  for (int64_t step = 0; step < edge * depth / device.blockThreads; ++step) {
    int64_t outerStep = step * (device.blockThreads / width);
    Value inTerms = alongTerms ? elements.addI(inner, outerStep / edge * run) : elements.addI(outer, outerStep);
    Value inSide = alongTerms ? elements.addI(outer, outerStep % edge) : inner;
    SmallVector<Value> coordinates(at);
    setCoordinates(side, inSide, coordinates);
    Value term = elements.addI(firstTerm, inTerms), isTerm;
    if (!knownTerms || *knownTerms % depth != 0) {
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
    shared.store(each.element, place, side.offset + depth * side.pitch);
    if (!mustBeFinite(1 - number))
      continue;
    place = elements.addI(elements.addI(elements.mulI(each.row, getPitch(1)), each.column), side.guards);
    shared.store(each.isInside, place, side.guards + depth * getPitch(1));
  }
  if (!isFinite)
    return;
  Value isInfinite = elements.create<arith::XOrIOp>(isFinite, elements.boolean(true));
  auto branch = scf::IfOp::create(builder, kernel.getLoc(), isInfinite, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  shared.store(elements.boolean(true), elements.index(notFinite), notFinite + 1);
}
