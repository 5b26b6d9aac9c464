//===- PackTransposes.cpp - Tiles that are read across what they write -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines packTransposes.
//
//===----------------------------------------------------------------------===//

#include "PackTransposes.h"

#include "dovetail/Dialect/Dovetail/Definition/VectorSquare.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;
using namespace dovetail;

static constexpr StringRef markName = "dovetail.transposed";
/// Tiles of so many operands are packed; those of others are read as they lie.
static constexpr unsigned maxBuffers = 4;

void dovetail::markTransposed(scf::ForOp loop, int64_t extent) {
  loop->setAttr(markName, IntegerAttr::get(IndexType::get(loop.getContext()), extent));
}

namespace {
/// How an offset moves with the two loops of a tile.
struct Steps {
  int64_t outer = 0;  ///< Elements from one iteration of the outer loop to the next.
  bool inner = false; ///< Moves with the inner loop.
};

/// The buffers of a function, which its tiles have in turn.
using Buffers = std::map<std::tuple<Operation *, const void *, unsigned>, Value>;

/// Packs what a tile reads.
class TilePacker {
public:
  TilePacker(scf::ForOp outer, scf::ForOp inner, int64_t extent, Buffers &buffers)
      : outer(outer), inner(inner), extent(extent), buffers(buffers), builder(outer), loc(outer.getLoc()) {}

  void pack();

private:
  std::optional<Steps> getSteps(Value offset);
  void pack(plan::LoadOp load, Value buffer);
  /// Buffer number `number` for elements of `type`.
  Value getBuffer(Type type, unsigned number);
  /// Copies the element, or the square of `size` x `size` of them, at iterations (`column`, `row`).
  void copyElement(plan::LoadOp load, Value buffer, Value column, Value row);
  void copySquare(plan::LoadOp load, Value buffer, Value column, Value row, unsigned size);
  Value getOffset(plan::LoadOp load, Value column, Value row);
  Value copyOffset(Value value, IRMapping &mapping);
  /// Where the element of a buffer is for these iterations.
  Value getPosition(Value column, Value row);
  Value getAddress(Value base, Type type, Value offset);

  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return builder.createOrFold<arith::AddIOp>(loc, a, b); }
  Value sub(Value a, Value b) { return builder.createOrFold<arith::SubIOp>(loc, a, b); }
  void forEach(Value lo, Value hi, int64_t step, function_ref<void(Value)> body);

  scf::ForOp outer, inner;
  int64_t extent;
  Buffers &buffers;
  OpBuilder builder;
  Location loc;
};
} // namespace

/// As elements lie in memory, without a meaning.
static Type getMemoryType(Type type) {
  return IntegerType::get(type.getContext(), std::max<unsigned>(type.getIntOrFloatBitWidth(), 8));
}

/// Rows and columns of the squares that are transposed in registers: vectors of 128 bits for small elements, of 256
/// for others.
static unsigned getSquare(unsigned bits) { return bits == 8 ? 16 : bits == 64 ? 4 : 8; }

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

std::optional<Steps> TilePacker::getSteps(Value offset) {
  if (offset == outer.getInductionVar())
    return Steps{1, false};
  if (offset == inner.getInductionVar())
    return Steps{0, true};
  Operation *op = offset.getDefiningOp();
  if (!op || !outer->isProperAncestor(op))
    return outer.getRegion().isAncestor(offset.getParentRegion()) ? std::nullopt : std::optional(Steps());
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 || !isMemoryEffectFree(op) || isa<plan::LoadOp>(op))
    return std::nullopt;
  SmallVector<Steps, 2> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Steps> steps = getSteps(operand);
    if (!steps)
      return std::nullopt;
    operands.push_back(*steps);
  }
  auto isFixed = [](Steps steps) { return steps.outer == 0 && !steps.inner; };
  if (isa<arith::AddIOp>(op))
    return Steps{operands[0].outer + operands[1].outer, operands[0].inner || operands[1].inner};
  if (isa<arith::SubIOp>(op))
    return Steps{operands[0].outer - operands[1].outer, operands[0].inner || operands[1].inner};
  if (isa<arith::MulIOp>(op)) {
    unsigned number = isFixed(operands[0]) ? 1 : 0;
    Steps moves = operands[number];
    APInt factor;
    if (!isFixed(operands[1 - number]))
      return std::nullopt;
    if (moves.outer == 0)
      return moves;
    if (!matchPattern(op->getOperand(1 - number), m_ConstantInt(&factor)))
      return std::nullopt;
    return Steps{moves.outer * factor.getSExtValue(), moves.inner};
  }
  return llvm::all_of(operands, isFixed) ? std::optional(Steps()) : std::nullopt;
}

Value TilePacker::copyOffset(Value value, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !op || !outer->isProperAncestor(op))
    return mapping.lookupOrDefault(value);
  for (Value operand : op->getOperands())
    copyOffset(operand, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value TilePacker::getOffset(plan::LoadOp load, Value column, Value row) {
  IRMapping mapping;
  mapping.map(outer.getInductionVar(), column);
  mapping.map(inner.getInductionVar(), row);
  return copyOffset(load.getOffset(), mapping);
}

Value TilePacker::getPosition(Value column, Value row) {
  Value line = builder.createOrFold<arith::MulIOp>(loc, sub(column, outer.getLowerBound()), index(extent));
  return add(line, sub(row, inner.getLowerBound()));
}

Value TilePacker::getAddress(Value base, Type type, Value offset) {
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
  return LLVM::GEPOp::create(builder, loc, base.getType(), type, base, ArrayRef<LLVM::GEPArg>{number});
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void TilePacker::forEach(Value lo, Value hi, int64_t step, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, lo, hi, index(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

void TilePacker::copyElement(plan::LoadOp load, Value buffer, Value column, Value row) {
  Type type = getMemoryType(load.getType());
  Value element =
      LLVM::LoadOp::create(builder, loc, type, getAddress(load.getBase(), type, getOffset(load, column, row)));
  LLVM::StoreOp::create(builder, loc, element, getAddress(buffer, type, getPosition(column, row)));
}

void TilePacker::copySquare(plan::LoadOp load, Value buffer, Value column, Value row, unsigned size) {
  Type type = getMemoryType(load.getType());
  unsigned bits = type.getIntOrFloatBitWidth();
  auto vector = VectorType::get(size, type);
  SmallVector<Value> rows;
  for (unsigned i = 0; i < size; ++i) {
    Value address = getAddress(load.getBase(), type, getOffset(load, column, add(row, index(i))));
    rows.push_back(LLVM::LoadOp::create(builder, loc, vector, address, /*alignment=*/bits / 8));
  }
  for (auto [i, values] : llvm::enumerate(transposeSquare(builder, loc, rows)))
    LLVM::StoreOp::create(builder, loc, values, getAddress(buffer, type, getPosition(add(column, index(i)), row)),
                          /*alignment=*/bits / 8);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value TilePacker::getBuffer(Type type, unsigned number) {
  auto function = outer->getParentOfType<func::FuncOp>();
  Value &buffer = buffers[{function, type.getAsOpaquePointer(), number}];
  if (!buffer) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    Value count = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(extent * extent));
    buffer = LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), type, count,
                                    /*alignment=*/64);
  }
  return buffer;
}

void TilePacker::pack(plan::LoadOp load, Value buffer) {
  unsigned size = getSquare(getMemoryType(load.getType()).getIntOrFloatBitWidth());
  Value column = outer.getLowerBound(), columnEnd = outer.getUpperBound();
  Value row = inner.getLowerBound(), rowEnd = inner.getUpperBound();
  // The ends of what squares cover.
  auto getFull = [&](Value lo, Value hi) {
    Value count = builder.createOrFold<arith::MaxSIOp>(loc, sub(hi, lo), index(0));
    return add(lo, sub(count, builder.createOrFold<arith::RemUIOp>(loc, count, index(size))));
  };
  Value columnFull = getFull(column, columnEnd), rowFull = getFull(row, rowEnd);
  forEach(row, rowFull, size, [&](Value row) {
    forEach(column, columnFull, size, [&](Value column) { copySquare(load, buffer, column, row, size); });
    forEach(columnFull, columnEnd, 1, [&](Value column) {
      forEach(row, add(row, index(size)), 1, [&](Value row) { copyElement(load, buffer, column, row); });
    });
  });
  forEach(rowFull, rowEnd, 1, [&](Value row) {
    forEach(column, columnEnd, 1, [&](Value column) { copyElement(load, buffer, column, row); });
  });

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(load);
  Value position = getPosition(outer.getInductionVar(), inner.getInductionVar());
  Value element = plan::ReadBackOp::create(builder, loc, load.getType(), buffer, position);
  load.replaceAllUsesWith(element);
  load.erase();
}

void TilePacker::pack() {
  SmallVector<plan::LoadOp> loads;
  for (auto load : inner.getBody()->getOps<plan::LoadOp>())
    if (std::optional<Steps> steps = getSteps(load.getOffset());
        steps && steps->outer == 1 && steps->inner && loads.size() < maxBuffers)
      loads.push_back(load);
  for (auto [number, load] : llvm::enumerate(loads))
    pack(load, getBuffer(getMemoryType(load.getType()), number));
}

void dovetail::packTransposes(Operation *function) {
  Buffers buffers;
  SmallVector<scf::ForOp> tiles;
  function->walk([&](scf::ForOp loop) {
    if (loop->hasAttr(markName))
      tiles.push_back(loop);
  });
  for (scf::ForOp outer : tiles) {
    auto mark = cast<IntegerAttr>(outer->removeAttr(markName));
    auto inner = llvm::to_vector(outer.getBody()->getOps<scf::ForOp>());
    if (inner.size() == 1 && inner.front().getNumResults() == 0)
      TilePacker(outer, inner.front(), mark.getInt(), buffers).pack();
  }
}
