//===- RecurrentSupport.h - What recurrences have in common -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines RecurrentFunctions, the activations of a recurrence, and RecurrentLine, with which it goes through time.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RECURRENTSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RECURRENTSUPPORT_H

#include "dovetail/Dialect/Dovetail/Definition/LineBuilder.h"
#include "dovetail/Dialect/Dovetail/Ops/RecurrentOps.h"

namespace dovetail {

/// The activations of a recurrence, each of which limits its operand to [-clip, clip] first, unless `clip` is 0.
class RecurrentFunctions {
public:
  RecurrentFunctions(mlir::ArrayAttr names, llvm::ArrayRef<float> alphas, llvm::ArrayRef<float> betas, double clip)
      : names(names), alphas(alphas), betas(betas), clip(clip) {}

  mlir::Value emit(ElementBuilder &builder, unsigned number, mlir::Value x) const;

  static bool isKnown(llvm::StringRef name);

private:
  mlir::ArrayAttr names;
  llvm::ArrayRef<float> alphas, betas;
  double clip;
};

/// Goes through time, a step at a time, and in it through panels of neighbouring hidden elements of some rows of the
/// batch, for which products with weights accumulate in scratch memory: those of a panel are read once for all rows.
class RecurrentLine {
public:
  /// `lengths`: the read of how many steps each row has, if they differ.
  RecurrentLine(LineBuilder &line, int64_t numGates, std::optional<unsigned> lengths, bool isReversed);

  /// Rows that advance together, and the hidden elements [begin, end) of them that do.
  struct Block {
    llvm::SmallVector<mlir::Value> rows, isActive;
    mlir::Value begin, end;
  };

  /// Runs `body` for each step, the first one by itself.
  void forEachStep(llvm::function_ref<void()> body);
  /// Runs `body` for all hidden elements of all rows, in the current step.
  void forEachBlock(llvm::function_ref<void(const Block &block)> body);
  /// Runs `body` for each element of the block, of row number `row` of it.
  void forEachElement(const Block &block, llvm::function_ref<void(unsigned row, mlir::Value hidden)> body);

  /// Accumulates for gate number `gate` what `emitInit` starts from and the products of weights with the vector whose
  /// element `from` of row number `row` is what `emitState` gives.
  void accumulate(const Block &block, unsigned gate, llvm::function_ref<mlir::Value()> emitInit,
                  llvm::function_ref<mlir::Value(mlir::Value row, mlir::Value from)> emitState);
  /// What was accumulated.
  mlir::Value load(const Block &block, unsigned gate, unsigned row, mlir::Value hidden);

  /// What the input comes to at the current element.
  mlir::Value readInput(unsigned gate) { return line.read(0, elements.index(gate)); }
  /// Element `hidden` of result number `result` after the step before, or of read number `initial` before the first.
  mlir::Value readBefore(unsigned result, unsigned initial, mlir::Value row, mlir::Value hidden);
  mlir::Value readNow(unsigned result, mlir::Value row, mlir::Value hidden);
  /// Writes `element`, or `before` where the row has ended.
  void write(unsigned result, const Block &block, unsigned row, mlir::Value hidden, mlir::Value element,
             mlir::Value before);

  LineBuilder &line;
  ElementBuilder &elements;

private:
  void emitTerms(const Block &block, unsigned gate, mlir::Value first, int64_t count,
                 llvm::function_ref<mlir::Value(mlir::Value row, mlir::Value from)> emitState);
  mlir::Value &getScratch(unsigned gate, unsigned row) { return scratch[gate * rowsAtOnce + row]; }

  /// Rows for which weights are read once, and terms for which sums are: what fits into registers.
  static constexpr int64_t rowsAtOnce = 4, termsAtOnce = 4;
  /// So many weights of a panel, for each gate, that they stay in a cache from one row to the next.
  static constexpr int64_t panelWidth = 64;

  std::optional<unsigned> lengths;
  bool isReversed, isFirst = false;
  int64_t steps, hidden;
  mlir::Type type;
  mlir::Value now, before;
  llvm::SmallVector<mlir::Value> scratch;
};

/// The definition that all recurrences have: operands 0 to 2, the loops and the line.
Definition getRecurrentDefinition(mlir::RankedTensorType result);
/// Checks what all recurrences have; `numFunctions` activations.
llvm::LogicalResult verifyRecurrence(std::optional<mlir::Location> location, llvm::StringRef name,
                                     mlir::ValueRange operands, int64_t numGates, mlir::ArrayAttr functions,
                                     llvm::ArrayRef<float> alphas, llvm::ArrayRef<float> betas,
                                     const llvm::APFloat &clip, size_t numFunctions);
/// Checks that `operand`, if there is one, has this shape and the element type of `input` or, for lengths, integers.
llvm::LogicalResult verifyOptional(std::optional<mlir::Location> location, llvm::StringRef name, mlir::Value operand,
                                   llvm::StringRef what, llvm::ArrayRef<int64_t> shape, mlir::Value input,
                                   bool isLengths = false);
/// The type of results.
mlir::RankedTensorType getStatesType(mlir::Value input);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RECURRENTSUPPORT_H
