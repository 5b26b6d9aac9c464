//===- KernelAnalysis.h - Which loops the values of a kernel depend on -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares KernelAnalysis, from which code generation orders loops.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_KERNEL_KERNELANALYSIS_H
#define DOVETAIL_LIB_CODEGEN_KERNEL_KERNELANALYSIS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail {

/// Which loops of a kernel a coordinate depends on.
struct Coordinate {
  /// Bit i: depends on loop i.
  uint64_t loops = 0;
  /// The loop that the coordinate follows one to one, but for an offset; -1: none.
  int unit = -1;
  /// Whether there may be such an offset.
  bool shifted = false;

  friend bool operator==(const Coordinate &, const Coordinate &) = default;
};

/// How the loops of a kernel reach the values of its body: an estimate for choosing loop orders, which are correct in
/// any case.
class KernelAnalysis {
public:
  /// Kernels have at most this many loops.
  static constexpr unsigned maxLoops = 64;

  /// A value that rows of the result hold on the way: it costs more to compute than to read back, and is read along the
  /// whole row before it is read at elements of the result, such as the exponentials of a softmax.
  struct KeptValue {
    mlir::Operation *op;
    /// How the result reads it.
    plan::InPlaceReads reads;
    /// How it reads the argument in whose memory the result lies, if there is one.
    std::optional<plan::InPlaceReads> inPlace;
  };

  /// `keepsValues`: code may keep one value in rows of the result.
  explicit KernelAnalysis(plan::KernelOp kernel, bool keepsValues = false);

  /// The result loops in the order in which they are to be generated, outermost first: those that the lines of
  /// `getLineOp` go through are not among them.
  llvm::ArrayRef<unsigned> getLoopOrder() const { return order; }

  /// Of these loops, the last ones, along which lines are neighbours in memory and may be gone through together.
  llvm::ArrayRef<unsigned> getInnerLoops() const { return llvm::ArrayRef(order).take_back(numInner); }

  /// The operation that writes the kernel's results itself, a line at a time; null if there is none.
  mlir::Operation *getLineOp() const { return lineOp; }

  /// How the kernel reads the argument in whose memory its result lies; none if it reads nothing of it. The loops of
  /// its row, if it has one, come last in the loop order, and threads do not divide them.
  const std::optional<plan::InPlaceReads> &getInPlaceReads() const { return inPlace; }

  /// The value that code is to keep; none if nothing is gained by that. The loops of its row come last in the loop
  /// order, and threads do not divide them.
  const std::optional<KeptValue> &getKeptValue() const { return kept; }

  /// The loops that come last in the loop order as code first goes along rows of them for values that elements share.
  llvm::ArrayRef<unsigned> getRow() const {
    return kept ? llvm::ArrayRef(kept->reads.row) : inPlace ? llvm::ArrayRef(inPlace->row) : llvm::ArrayRef<unsigned>();
  }

  /// The position in the loop order of the loop along which reductions may accumulate rows.
  unsigned getRowDepth() const { return rowDepth; }

  /// How many expensive values do not depend on result loop `loop`, so that iterations of it share them.
  unsigned countShared(unsigned loop) const { return independent[loop]; }

  /// The result loop whose range threads divide, or -1.
  int getParallelLoop() const;

  /// How the fold of a reduction is to be generated.
  struct FoldOrder {
    /// The reduction's loops (numbers of the kernel's), outermost first.
    llvm::SmallVector<unsigned> loops;
    /// Accumulate a row along the kernel's row loop instead of one element at a time.
    bool byRows = false;
    /// With `byRows`: all that is read lies along rows, and no term of the innermost loop reads what another one does.
    bool readsRowsOnce = false;
  };
  const FoldOrder &getFoldOrder(mlir::Operation *op);

  /// The coordinates of the kernel's result.
  llvm::SmallVector<Coordinate> getResultIndex() const;
  /// Those at which `op`, computed at `index`, reads an operand.
  llvm::SmallVector<Coordinate> getIndexOfOperand(DefinitionOpInterface op, unsigned operand,
                                                  llvm::ArrayRef<Coordinate> index) const {
    return getOperandIndex(op, operand, getLoopCoordinates(op, index));
  }
  /// What the element of `value` at `index` reads from memory.
  using Read = std::pair<mlir::BlockArgument, llvm::SmallVector<Coordinate>>;
  llvm::SmallVector<Read> getReads(mlir::Value value, llvm::ArrayRef<Coordinate> index) const;
  /// The stride, in elements, with which loop `loop` walks an argument read at `index`; a large number where unknown.
  int64_t getStride(mlir::BlockArgument argument, llvm::ArrayRef<Coordinate> index, unsigned loop) const;

  /// How many of the reads of a reduction jump in memory from one iteration of `loop` to the next.
  int64_t countJumps(mlir::Operation *op, unsigned loop) const { return countJumps(getReads(op), loop); }

  /// Reductions whose result is used at the coordinates of the kernel's result only, in program order.
  llvm::SmallVector<mlir::Operation *> getOuterReductions() const;

private:
  /// Loop numbers of the kernel for the loops of `op`, as coordinates of the result at `index`.
  llvm::SmallVector<Coordinate> getLoopCoordinates(DefinitionOpInterface op, llvm::ArrayRef<Coordinate> index) const;
  llvm::SmallVector<Coordinate> getOperandIndex(DefinitionOpInterface op, unsigned operand,
                                                llvm::ArrayRef<Coordinate> loops) const;
  void visitReads(mlir::Value value, llvm::ArrayRef<Coordinate> index,
                  llvm::function_ref<void(mlir::BlockArgument, llvm::ArrayRef<Coordinate>)> visit,
                  unsigned &budget) const;
  /// What the fold of a reduction reads from memory.
  llvm::SmallVector<Read> getReads(mlir::Operation *op) const;
  /// How many of `reads` jump in memory from one iteration of `loop` to the next.
  int64_t countJumps(llvm::ArrayRef<Read> reads, unsigned loop) const;
  /// Whether the value is used at the coordinates of the kernel's result only.
  bool isOuter(mlir::Operation *op) const;
  unsigned countInner(llvm::function_ref<bool(unsigned loop)> isLine) const;
  bool isOfRow(unsigned loop) const { return llvm::is_contained(getRow(), loop); }
  /// Finds the value that is worth keeping.
  void chooseKeptValue();
  /// How code could keep the result of `op`.
  std::optional<KeptValue> getKept(mlir::Operation *op) const;
  void chooseJoinedLoop();
  void chooseLoopOrder();
  FoldOrder computeFoldOrder(mlir::Operation *op) const;

  mutable plan::KernelOp kernel;
  llvm::SmallVector<int64_t> extents;
  unsigned rank;
  /// For each value, the coordinates at which it is read (without duplicates, at most a few).
  llvm::DenseMap<mlir::Value, llvm::SmallVector<llvm::SmallVector<Coordinate>>> uses;
  /// For each result loop, how many expensive values do not depend on it although they depend on others.
  llvm::SmallVector<unsigned> independent;
  llvm::SmallVector<unsigned> order;
  mlir::Operation *lineOp = nullptr;
  std::optional<plan::InPlaceReads> inPlace;
  std::optional<KeptValue> kept;
  unsigned numInner = 0;
  llvm::DenseMap<mlir::Operation *, FoldOrder> foldOrders;
  unsigned rowDepth = 0;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_KERNEL_KERNELANALYSIS_H
