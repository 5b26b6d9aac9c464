//===- EndAnalysis.h - What runs need of values -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares EndAnalysis, which finds out how much of each value a run needs, given its lengths.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SCHEDULE_ENDANALYSIS_H
#define DOVETAIL_LIB_SCHEDULE_ENDANALYSIS_H

#include "EndForm.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace dovetail {

/// Finds out, from the outputs backward, how much is needed of each dimension of each value. Accesses of steps say
/// that. The analysis also knows operations that choose by a position, and those that compute counts and indices.
class EndAnalysis {
public:
  using Ends = llvm::SmallVector<End>;

  EndAnalysis(plan::ProgramOp program, const mlir::SymbolTable &symbols);

  /// False if there are no lengths, on which something could depend.
  bool run();
  /// Where the loops over the dimensions of the results of a launch or a library call end.
  Ends getLoopEnds(plan::StepOpInterface step) const;

private:
  void visit(plan::StepOpInterface step);
  void visitLaunch(plan::LaunchOp launch);
  void visitCall(plan::CallOpInterface call);
  void visitOperation(DefinitionOpInterface op, llvm::DenseMap<mlir::Value, Ends> &needs, plan::LaunchOp launch);
  /// Notes that so much of a value is needed, and of what else lies where it does, if no step makes it.
  void need(mlir::Value ref, llvm::ArrayRef<End> ends);
  void add(mlir::Value ref, const Ends &ends);
  Ends getNeed(mlir::Value ref) const;
  /// How much of a dimension an access needs if loops go up to `loops`, and over
  /// `ranges` at most.
  End getNeed(const layout::AccessDim &dim, llvm::ArrayRef<End> loops, llvm::ArrayRef<layout::Interval> ranges) const;
  /// The same where one loop that ends adds to an index which may be divided; nothing for other indices.
  std::optional<End> getAffineNeed(const layout::IndexExpr &index, int64_t divisor, llvm::ArrayRef<End> loops,
                                   llvm::ArrayRef<layout::Interval> ranges) const;
  std::optional<EndForm> getLast(const layout::IndexExpr &index, llvm::ArrayRef<End> loops,
                                 llvm::ArrayRef<layout::Interval> ranges) const;

  /// A bound of all elements of a value, of a program or of the kernel that `launch` runs.
  std::optional<EndForm> getMost(mlir::Value ref);
  std::optional<EndForm> getMost(mlir::Value value, plan::LaunchOp launch);
  std::optional<EndForm> computeMost(mlir::Value value, plan::LaunchOp launch);
  /// Whether no element is below 0.
  bool isNeverNegative(mlir::Value value, plan::LaunchOp launch);
  /// The launch that makes a value, alone, and what its kernel yields for it.
  std::pair<plan::LaunchOp, mlir::Value> findMaker(mlir::Value ref);
  /// The operation that gives a value, and whose launch that is: arguments of kernels are made by others.
  std::pair<plan::LaunchOp, mlir::Value> resolve(mlir::Value value, plan::LaunchOp launch);
  /// If `value`, of booleans, holds for positions below a count alone: the dimension, counted from the last, and the
  /// count.
  std::optional<std::pair<int64_t, EndForm>> getMask(mlir::Value value, plan::LaunchOp launch);
  bool isPosition(mlir::Value value, plan::LaunchOp launch);

  plan::ProgramOp program;
  const mlir::SymbolTable &symbols;
  llvm::DenseMap<mlir::Value, unsigned> lengths;                           ///< By what they lie in.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> views; ///< Of each buffer.
  llvm::DenseMap<mlir::Value, Ends> needs;
  llvm::DenseMap<mlir::Value, mlir::Operation *> makers; ///< Of each value that one step writes; else null.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Operation *>, std::optional<EndForm>> bounds;
  bool hasChanged = false, isWidening = false;
};

/// The counts of a program as `dovetail.counts` numbers them: of inputs, then of outputs.
llvm::SmallVector<mlir::Value> getCounts(plan::ProgramOp program);

/// Whether a kernel reports extents that differ, or are below 0, which it does in each iteration.
bool checksExtents(plan::KernelOp kernel);

/// Whether `step` may leave out what lies behind ends of its loops.
bool mayEnd(plan::StepOpInterface step);

/// The steps in which a call is prepared for the ends of loop `dim`, of those that have ends; 1: it does not end there.
int64_t getCallStep(plan::StepOpInterface call, unsigned dim, llvm::ArrayRef<End> needs);

} // namespace dovetail

#endif // DOVETAIL_LIB_SCHEDULE_ENDANALYSIS_H
