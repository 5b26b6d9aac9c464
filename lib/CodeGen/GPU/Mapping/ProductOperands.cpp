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

using namespace mlir;
using namespace dovetail;

Value ProductMapping::setCoordinates(const Side &side, Value offset, MutableArrayRef<Value> at, int64_t width) {
  Value position = elements.addI(side.first, offset), isInside;
  std::optional<int64_t> count = ElementBuilder::getConstantIndex(side.count);
  if (!count || *count % side.edge != 0) {
    // Threads beyond the border do what those at the border do, and do not store it.
    isInside = elements.compareI(arith::CmpIPredicate::slt, position, side.count);
    position = elements.minI(position, elements.addI(side.count, -width));
  }
  auto loops = llvm::map_to_vector(side.loops, [](const auto &each) { return each.loop; });
  auto counts = llvm::map_to_vector(side.loops, [](const auto &each) { return each.count; });
  SmallVector<Value> digits = delinearize(castIndex(getCounterType(loops), position), counts);
  for (auto [each, digit] : llvm::zip_equal(side.loops, digits)) {
    if (each.stride > 1) {
      Value length = elements.index(extents[each.loop] / each.stride);
      Value first = elements.create<arith::DivUIOp>(digit, length);
      digit = elements.addI(elements.mulI(elements.create<arith::RemUIOp>(digit, length), each.stride), first);
    }
    at[each.loop] = elements.addI(digit, each.lo);
  }
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

BlockArgument ProductMapping::getSeparable(const Side &side) {
  auto isSeparable = [&](const layout::IndexExpr::Term &term) {
    if (term.kind == layout::IndexExpr::Kind::Loop)
      return true;
    return llvm::none_of(llvm::seq<int>(rank, getDefinition(product).loops.size()),
                         [&](int loop) { return term.dependsOn(loop); }) &&
           term.kind != layout::IndexExpr::Kind::Unknown;
  };
  for (const layout::AccessDim &dim : getDefinition(product).reads[side.operand].dims)
    if (dim.border != layout::Border::None || dim.divisor != 1 || !llvm::all_of(dim.index.getTerms(), isSeparable))
      return {};
  return dyn_cast<BlockArgument>(product->getOperand(side.operand));
}

bool ProductMapping::hasRuns(const Side &side, bool alongTerms, int64_t width) {
  BlockArgument argument = getSeparable(side);
  if (!argument || (alongTerms ? nearTerms.size() != 1 : side.loops.empty()))
    return false;
  int64_t bytes = width * getByteWidth(getType(side));
  // The loop is whole and consists of runs.
  auto isWhole = [&](Value lo, Value count) {
    std::optional<int64_t> first = ElementBuilder::getConstantIndex(lo), all = ElementBuilder::getConstantIndex(count);
    return first && all && *first % width == 0 && *all % width == 0;
  };
  unsigned loop = alongTerms ? nearTerms.front().position : side.loops.back().loop;
  if (bytes > device.accessBytes ||
      (alongTerms ? !isWhole(nearTerms.front().lo, nearTerms.front().count)
                  : !isStatic(loop) || side.loops.back().block != extents[loop] || extents[loop] % width != 0))
    return false;
  // So is the innermost dimension, in which the loop begins at a multiple of a run.
  plan::LayoutAttr layout = kernel.getLayout(argument.getArgNumber());
  auto type = cast<RankedTensorType>(argument.getType());
  int inner = layout.getInnermost(type);
  if (inner < 0 || layout.getExtents()[inner] != type.getDimSize(inner) || type.getDimSize(inner) % width != 0)
    return false;
  for (auto [number, dim] : llvm::enumerate(getDefinition(product).reads[side.operand].dims)) {
    if (static_cast<int>(number) != inner && dim.index.dependsOn(loop))
      return false;
    if (static_cast<int>(number) == inner &&
        (dim.index.getConstant() % width != 0 || !llvm::all_of(dim.index.getTerms(), [&](const auto &term) {
           bool isLoop = term.kind == layout::IndexExpr::Kind::Loop && term.number == static_cast<int>(loop);
           return isLoop ? term.factor == 1 : !term.dependsOn(loop) && term.factor % width == 0;
         })))
      return false;
  }
  return true;
}

ProductMapping::Staging ProductMapping::prepareStaging(unsigned number) {
  const Side &side = sides[number];
  Staging staging;
  staging.alongTerms = readsAlongTerms(side);
  // No more than one run of every thread.
  const int64_t each = side.edge * depth / device.blockThreads;
  for (int64_t width : {8, 4, 2})
    if (width <= each && hasRuns(side, staging.alongTerms, width)) {
      staging.width = width;
      break;
    }
  // Neighbouring threads read neighbours: eight terms, or the side.
  constexpr int64_t together = 8;
  const int64_t length = staging.alongTerms ? together : side.edge, width = staging.width;
  const int64_t atOnce = device.blockThreads * width / length;
  Value inner = elements.mulI(elements.create<arith::RemUIOp>(thread, elements.index(length / width)), width);
  Value outer = elements.create<arith::DivUIOp>(thread, elements.index(length / width));
  BlockArgument argument = getSeparable(side);
  const Definition &definition = getDefinition(product);
  for (int64_t step = 0; step < each / width; ++step) {
    Staging::Run run;
    Value place = elements.addI(outer, step * atOnce);
    if (staging.alongTerms && atOnce > side.edge) {
      Value edge = elements.index(side.edge);
      run.inSide = elements.create<arith::RemUIOp>(place, edge);
      run.inTerms = elements.addI(elements.mulI(elements.create<arith::DivUIOp>(place, edge), together), inner);
    } else if (staging.alongTerms) {
      run.inSide = elements.addI(outer, step * atOnce % side.edge);
      run.inTerms = elements.addI(inner, step * atOnce / side.edge * together);
    } else {
      run.inSide = inner;
      run.inTerms = place;
    }
    run.at = getProductIndex();
    setCoordinates(side, run.inSide, run.at, staging.alongTerms ? 1 : width);
    if (argument) {
      SmallVector<Value> at(run.at);
      at.resize(definition.loops.size(), elements.index(0));
      // Where there is one loop of near terms, that of the thread stays at the same distance from the first one.
      if (nearTerms.size() == 1)
        at[nearTerms.front().position] = run.inTerms;
      run.offset = emitOffset(arguments[argument.getArgNumber()], emitReadIndex(product, side.operand, at));
    }
    staging.runs.push_back(std::move(run));
  }
  return staging;
}

void ProductMapping::loadChunk(unsigned number, Staging &staging, Value chunk) {
  const Side &side = sides[number];
  Value operand = product->getOperand(side.operand), zero = elements.constant(side.type, 0);
  BlockArgument argument = getSeparable(side);
  const size_t numLoops = getDefinition(product).loops.size();
  auto count = [](const TermLoop &term) { return term.count; };
  SmallVector<Value> farCounts = llvm::map_to_vector(farTerms, count),
                     nearCounts = llvm::map_to_vector(nearTerms, count);

  // The coordinates of the chunk, those of its first term among them.
  SmallVector<Value> terms(numLoops, elements.index(0));
  Value counter = castIndex(termType, chunk), divisor = castIndex(termType, numFar);
  Value row = castIndex(builder.getIndexType(), elements.create<arith::DivUIOp>(counter, divisor));
  for (auto [loop, digit] :
       llvm::zip_equal(farTerms, delinearize(elements.create<arith::RemUIOp>(counter, divisor), farCounts)))
    terms[loop.position] = elements.addI(digit, loop.lo);
  Value firstTerm = elements.mulI(row, depth);
  std::optional<int64_t> knownTerms = ElementBuilder::getConstantIndex(numNear);
  const bool hasRest = !knownTerms || *knownTerms % depth != 0;
  const Memory *memory = argument ? &arguments[argument.getArgNumber()] : nullptr;
  auto getOffset = [&](ArrayRef<Value> at) { return emitOffset(*memory, emitReadIndex(product, side.operand, at)); };
  Value origin = argument ? getOffset(SmallVector<Value>(numLoops, elements.index(0))) : Value();

  for (Staging::Run &run : staging.runs) {
    Value term = elements.addI(firstTerm, run.inTerms), isTerm;
    if (hasRest) {
      // Beyond the last term both operands are zero.
      isTerm = elements.compareI(arith::CmpIPredicate::slt, term, numNear);
      if (nearTerms.size() != 1 || !argument)
        term = elements.minI(term, elements.addI(numNear, -1));
    }
    SmallVector<Value> at(terms), distant(terms);
    std::copy(run.at.begin(), run.at.end(), at.begin());
    if (nearTerms.size() == 1) {
      const TermLoop &loop = nearTerms.front();
      at[loop.position] = elements.addI(term, loop.lo);
      distant[loop.position] = elements.addI(firstTerm, loop.lo);
    } else {
      for (auto [loop, digit] : llvm::zip_equal(nearTerms, delinearize(castIndex(termType, term), nearCounts)))
        at[loop.position] = distant[loop.position] = elements.addI(digit, loop.lo);
    }
    run.isInside = side.isGuarded ? emitIsInside(product, side.operand, at) : Value();
    Value condition = run.isInside;
    if (isTerm)
      condition = condition ? elements.andB(condition, isTerm) : isTerm;
    auto emitFactors = [&] {
      if (!argument)
        return SmallVector<Value>{emitValue(operand, emitReadIndex(product, side.operand, at))};
      SmallVector<Value> factors;
      Value offset = elements.addI(run.offset, elements.subI(getOffset(distant), origin));
      for (int64_t i = 0; i < staging.width; ++i)
        factors.push_back(plan::LoadOp::create(
            builder, kernel.getLoc(), side.type, memory->base, elements.addI(offset, i),
            i == 0 && staging.width > 1 ? builder.getI64IntegerAttr(staging.width * getByteWidth(side.type))
                                        : IntegerAttr()));
      return factors;
    };
    SmallVector<Type> types(staging.width, side.type);
    run.loaded = condition ? elements.ifElse(condition, types, emitFactors,
                                             [&] { return SmallVector<Value>(staging.width, zero); })
                           : emitFactors();
  }
}

void ProductMapping::storeChunk(unsigned number, const Staging &staging, Value buffer) {
  const Side &side = sides[number];
  // Zero, unless one of them is infinite or not a number.
  Value zero = elements.constant(side.type, 0), zeros;
  const int64_t pitch = getPitch(side.edge, 1);
  for (const Staging::Run &run : staging.runs) {
    auto getPlace = [&](int64_t rows, Value row, int64_t pitch, int64_t offset) {
      row = elements.addI(elements.mulI(buffer, rows), row);
      return elements.addI(elements.addI(elements.mulI(row, pitch), run.inSide), offset);
    };
    const int64_t size = side.offset + buffers * depth * side.pitch;
    for (auto [i, factor] : llvm::enumerate(run.loaded)) {
      if (staging.alongTerms)
        shared.store(factor, getPlace(depth, elements.addI(run.inTerms, i), side.pitch, side.offset), size);
      if (mustBeFinite(number)) {
        Value product = elements.mul(factor, zero);
        zeros = zeros ? elements.add(zeros, product) : product;
      }
    }
    if (!staging.alongTerms)
      shared.storeRun(run.loaded, getPlace(depth, run.inTerms, side.pitch, side.offset), size);
    if (!mustBeFinite(1 - number))
      continue;
    // Neighbours are there together.
    const int64_t numGuards = side.guards + buffers * side.guardRows * pitch;
    auto storeGuards = [&](Value row) {
      Value first = getPlace(side.guardRows, row, pitch, side.guards);
      for (int64_t i = 0; i < staging.width; ++i)
        if (!staging.alongTerms || i == 0)
          shared.store(run.isInside, elements.addI(first, i), numGuards);
        else if (side.guardRows > 1)
          shared.store(run.isInside, elements.addI(first, i * pitch), numGuards);
    };
    if (side.guardRows > 1)
      storeGuards(run.inTerms);
    else
      elements.runIf(elements.compareI(arith::CmpIPredicate::eq, run.inTerms, elements.index(0)),
                     [&] { storeGuards(elements.index(0)); });
  }
  if (zeros)
    elements.runIf(elements.compare(arith::CmpFPredicate::UNE, {}, zeros, zero), [&] {
      shared.store(elements.boolean(true), elements.addI(buffer, notFinite), notFinite + buffers);
    });
}
