//===- KernelBody.h - Generates the elements of a kernel -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares KernelBody, what the generators of kernels for all targets share: elements of values, loads and folds. A
// target adds the loops around them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_KERNEL_KERNELBODY_H
#define DOVETAIL_LIB_CODEGEN_KERNEL_KERNELBODY_H

#include "KernelAnalysis.h"

#include <map>

namespace dovetail {

class KernelBody {
public:
  /// `analysis` is that of `kernel`, and outlives this.
  KernelBody(plan::KernelOp kernel, mlir::OpBuilder &builder, KernelAnalysis &analysis);
  virtual ~KernelBody() = default;

protected:
  /// Where a tensor lies: the address of coordinate 0, and the strides of its dimensions in elements.
  struct Memory {
    mlir::Value base;
    llvm::SmallVector<mlir::Value> strides;
  };
  /// A range of a loop, of type `index`.
  struct Range {
    mlir::Value lo, hi;
  };
  using Values = llvm::SmallVector<mlir::Value>;
  /// What is folded: what accumulators start from, the term at the coordinates at hand, and how accumulators combine.
  struct Fold {
    std::function<Values()> emitInit, emitTerm;
    std::function<Values(mlir::ValueRange, mlir::ValueRange)> emitCombine;
  };

  /// The number of the stride of dimension `dim` of a tensor is not known before the kernel runs.
  static bool hasDynamicStride(plan::LayoutAttr layout, mlir::Type type, unsigned dim);
  /// Memory at `base`. Strides that are not known come from `next`, in the order of the dimensions.
  Memory createMemory(mlir::Value base, plan::LayoutAttr layout, mlir::Type type,
                      llvm::function_ref<mlir::Value()> next);

  /// The element of `value` at `index`, at the insertion point, or as it was emitted before.
  mlir::Value emitValue(mlir::Value value, llvm::ArrayRef<mlir::Value> index);
  /// The elements of the results of `op` at `index`. Targets compute some of them in their own way.
  virtual Values emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  /// Writes, at the coordinates of `index`, the elements of the kernel's results that are lines of `op`, for all
  /// coordinates of `inner` together.
  void emitLine(mlir::Operation *op, llvm::ArrayRef<unsigned> inner = {});
  /// Reads an element.
  virtual mlir::Value emitLoad(const Memory &memory, mlir::Type elementType, llvm::ArrayRef<mlir::Value> index);
  /// The accumulators of a reduction over `loops`, each in the one before. `foldIndex` has the coordinates of the
  /// result and room for those of the reduction.
  Values emitReduction(DefinitionOpInterface op, llvm::ArrayRef<unsigned> loops,
                       llvm::SmallVector<mlir::Value> &foldIndex);
  Values emitFold(mlir::Operation *op, const Fold &fold, llvm::ArrayRef<unsigned> loops,
                  llvm::SmallVector<mlir::Value> &foldIndex);
  /// The terms of a reduction, at the coordinates in `foldIndex`, or those of pass number `pass` over them, to which
  /// `emitFound` gives what earlier passes have found.
  Fold getFold(DefinitionOpInterface op, llvm::SmallVector<mlir::Value> &foldIndex);
  Fold getPass(DefinitionOpInterface op, unsigned pass, llvm::SmallVector<mlir::Value> &foldIndex,
               std::function<Values()> emitFound);
  /// Sets the coordinates of loops of one iteration, and returns the other ones.
  llvm::SmallVector<unsigned> dropSingles(mlir::Operation *op, llvm::ArrayRef<unsigned> loops,
                                          llvm::MutableArrayRef<mlir::Value> foldIndex);
  /// How many of `loops` go through blocks of terms: all iterations of the others make up a block, which passes after
  /// the first find in a cache. `rows`: of so many elements together.
  unsigned countOuter(llvm::ArrayRef<unsigned> loops, int64_t rows = 1);
  /// How many iterations there are of `loops`, of type `index`.
  mlir::Value emitCount(llvm::ArrayRef<unsigned> loops);
  /// Where `op` has its read number `read` at the coordinates `loops` of all of its loops, and whether (i1) it is
  /// there.
  llvm::SmallVector<mlir::Value> emitReadIndex(mlir::Operation *op, unsigned read, llvm::ArrayRef<mlir::Value> loops);
  mlir::Value emitIsInside(mlir::Operation *op, unsigned read, llvm::ArrayRef<mlir::Value> loops);
  /// The elements at `index` of the results of a reduction, from its accumulators.
  Values emitFinish(DefinitionOpInterface op, llvm::ArrayRef<mlir::Value> index, mlir::ValueRange accumulators);
  /// Gives the loops of `op` that go through parts, until it is called again, the ranges of those that `index`, of the
  /// result, asks for.
  void setPartRanges(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index);
  /// The position of the kernel's loop `loop` among the coordinates of `op`, which it reduces.
  unsigned getFoldPosition(mlir::Operation *op, unsigned loop);
  /// Memory of the kernel's own for `size` scalars of `type`, and its scalars.
  mlir::Value createBuffer(mlir::Type type, int64_t size);
  mlir::Value loadFrom(mlir::Value buffer, mlir::Type type, mlir::Value position);
  void storeTo(mlir::Value buffer, mlir::Value position, mlir::Value scalar);
  mlir::Value emitOffset(const Memory &memory, llvm::ArrayRef<mlir::Value> index);
  /// The range of loop `loop` of `op`.
  Range getRange(mlir::Operation *op, unsigned loop);
  /// Whether the range of `loop` is all of its extent on every call.
  virtual bool isStatic(unsigned loop);
  /// True if `value` can be used at the end of `block`.
  bool isVisible(mlir::Value value, mlir::Block *block) { return encloses(value.getParentBlock(), block); }
  /// True if whatever executes `block` has executed what is in `outer`.
  bool encloses(mlir::Block *outer, mlir::Block *block);
  /// Reports `given`, the index of the lookup `loop` of `op`, where `isWrong` holds, if `op` is to check its indices.
  void emitIndexCheck(mlir::Operation *op, unsigned loop, mlir::Value isWrong, mlir::Value given);

  const Definition &getDefinition(mlir::Operation *op);
  /// Whether `op` folds over loops of the kernel.
  bool isReduction(mlir::Operation *op);

  /// A number that is the same for values that are computed alike.
  unsigned getNumber(mlir::Value value);

  plan::KernelOp kernel;
  mlir::OpBuilder &builder;
  ElementBuilder elements;
  KernelAnalysis &analysis;
  llvm::SmallVector<Loop> loops;
  llvm::SmallVector<int64_t> extents;
  unsigned rank;

  llvm::SmallVector<Memory> arguments, results;
  llvm::SmallVector<Range> ranges;
  /// What indices are checked, and the pointer to where they are reported; null if there are none.
  llvm::SmallVector<plan::IndexCheck> checks;
  mlir::Value records;
  /// Of the function that is being generated.
  mlir::Block *entry = nullptr;
  /// The coordinates of the element that is being generated.
  llvm::SmallVector<mlir::Value> index;
  bool failed = false;

private:
  mlir::Value getAddress(mlir::Value buffer, mlir::Type type, mlir::Value position);

  class Operands;
  class Results;

  mlir::Value emitConstant(ConstantOp constant, llvm::ArrayRef<mlir::Value> index);

  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Definition>> definitions;
  llvm::DenseMap<mlir::Operation *, mlir::Value> globals;
  llvm::DenseMap<mlir::Value, unsigned> valueNumbers;
  std::map<std::vector<uintptr_t>, unsigned> expressionNumbers;
  unsigned nextNumber = 0;
  std::map<std::vector<uintptr_t>, Values> emitted;
  std::map<std::vector<uintptr_t>, mlir::Block *> checked;
};

/// Reports what no kernel can be generated for.
llvm::LogicalResult checkKernel(plan::KernelOp kernel);

/// What the loops of all generated kernels go through: invariant code moves out, common code is shared, and arithmetic
/// says what may be assumed of it.
void simplifyKernels(mlir::Operation *code);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_KERNEL_KERNELBODY_H
