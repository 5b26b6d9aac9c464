//===- KernelEmitter.h - Generates the loops of a kernel -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares KernelEmitter.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_KERNELEMITTER_H
#define DOVETAIL_LIB_CODEGEN_CPU_KERNELEMITTER_H

#include "KernelAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace dovetail {

/// Generates the functions of one kernel: `@k.body`, with its memory and its loops' ranges as arguments, and `@k`,
/// which takes them from the arrays that the runtime passes.
class KernelEmitter {
public:
  KernelEmitter(plan::KernelOp kernel, mlir::OpBuilder &builder);

  /// Creates the functions at the insertion point. Fails, after an error, if the kernel needs what a CPU kernel cannot
  /// do.
  llvm::LogicalResult emit();

  int getParallelLoop() const { return parallelLoop; }

private:
  friend class KernelElements;

  /// Where a tensor lies: the address of coordinate 0 and the strides of its dimensions in elements.
  struct Memory {
    mlir::Value base;
    llvm::SmallVector<mlir::Value> strides;
  };
  /// A range of a loop, of type `index`.
  struct Range {
    mlir::Value lo, hi;
  };
  /// The accumulators of a reduction along the kernel's row loop, from coordinate `first` on.
  struct Row {
    mlir::Value buffer;
    mlir::Value first;
    mlir::Type type;
  };
  /// A tile of rows: coordinates [first, end) of the row loop.
  struct Tile {
    mlir::Value first, end;
  };
  /// What `dovetail.moments` accumulates: a count, of which there is one, and rows of means and squared deviations.
  struct MomentsRows {
    mlir::Value count;
    Row mean, deviations;
  };

  // Functions.
  bool isStatic(unsigned loop);
  mlir::func::FuncOp emitBodyFunction();
  void emitEntryFunction(mlir::func::FuncOp body);
  unsigned countNumbers();

  // Loops.
  void emitLoops(unsigned depth);
  void emitTiles();
  void emitTile(Tile tile);
  void emitStores();
  void forEach(mlir::Value lo, mlir::Value hi, llvm::function_ref<void(mlir::Value)> body);

  // Rows of accumulators.
  mlir::Value createBuffer(mlir::Type type, int64_t size);
  Row createRow(Tile tile, mlir::Type type);
  mlir::Value getRowPointer(const Row &row, mlir::Value coordinate);
  mlir::Value loadRow(const Row &row, mlir::Value coordinate);
  void storeRow(const Row &row, mlir::Value coordinate, mlir::Value value);
  void emitRow(ReductionOpInterface op, llvm::ArrayRef<unsigned> loops, const Row &row, Tile tile,
               llvm::SmallVector<mlir::Value> &foldIndex);
  MomentsRows emitMoments(MomentsOp op, Tile tile);
  mlir::Value readMomentsOperand(MomentsOp op, mlir::Type type, mlir::Value iv,
                                 llvm::SmallVector<mlir::Value> &foldIndex);
  void emitMomentsOfBlock(MomentsOp op, unsigned loop, const MomentsRows &block, Tile tile,
                          llvm::SmallVector<mlir::Value> &foldIndex);
  void combineMoments(const MomentsRows &total, const MomentsRows &block, Tile tile);

  // Elements.
  mlir::Value emitValue(mlir::Value value, llvm::ArrayRef<mlir::Value> index);
  mlir::Value emitConstant(ConstantOp constant, llvm::ArrayRef<mlir::Value> index);
  mlir::Value emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value emitFold(ReductionOpInterface op, llvm::ArrayRef<unsigned> loops,
                       llvm::SmallVector<mlir::Value> &foldIndex);
  mlir::Value narrow(mlir::Value accumulator, mlir::Operation *op);
  mlir::Value emitLoad(const Memory &memory, mlir::Type elementType, llvm::ArrayRef<mlir::Value> index);
  mlir::Value emitOffset(const Memory &memory, llvm::ArrayRef<mlir::Value> index);
  /// The range of loop `loop` of `op`.
  Range getRange(mlir::Operation *op, unsigned loop);

  // Values already emitted.
  unsigned getNumber(mlir::Value value);
  bool isVisible(mlir::Value value);

  plan::KernelOp kernel;
  mlir::OpBuilder &builder;
  ElementBuilder elements;
  KernelAnalysis analysis;
  llvm::SmallVector<int64_t> extents;
  unsigned rank;
  int parallelLoop;
  llvm::SmallVector<unsigned> order;

  llvm::SmallVector<Memory> arguments, results;
  llvm::SmallVector<Range> ranges;
  /// What `@k.body` takes after the pointers: positions in the runtime's numbers.
  llvm::SmallVector<unsigned> numbers;
  mlir::Block *entry = nullptr;

  /// The coordinates of the element that is being generated.
  llvm::SmallVector<mlir::Value> index;
  /// Position of the row loop in `order`.
  unsigned rowDepth;
  llvm::SmallVector<mlir::Operation *> rowReductions;
  int64_t copies = 1; ///< How often the loops around the current one repeat the code.
  llvm::DenseMap<mlir::Operation *, Row> rows;
  llvm::DenseMap<mlir::Operation *, MomentsRows> moments;
  llvm::DenseMap<mlir::Operation *, mlir::Value> globals;

  llvm::DenseMap<mlir::Value, unsigned> valueNumbers;
  std::map<std::vector<uintptr_t>, unsigned> expressionNumbers;
  unsigned nextNumber = 0;
  std::map<std::vector<uintptr_t>, mlir::Value> emitted;
  bool failed = false;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_KERNELEMITTER_H
