//===- StepSplitter.h - Parts of launches and library calls -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a step becomes several: what can be computed without a halo, and the rest.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SCHEDULE_STEPSPLITTER_H
#define DOVETAIL_LIB_SCHEDULE_STEPSPLITTER_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

#include <memory>

namespace dovetail {

/// The windows of a dimension: of each piece, where the interior is. Before it and behind it are the boundaries.
struct SplitDim {
  unsigned dim;
  llvm::SmallVector<layout::Interval> low, interior, high;
};

/// The first loops of a launch or library call, which are the dimensions of its results.
llvm::SmallVector<DimShardingAttr> getResultLoops(plan::StepOpInterface step, unsigned numDims);

/// Adds to `parts` a copy of `step` in front of it, of the iterations `dims` of its results, unless no rank has any.
/// Its name says `what` it is.
void addPart(plan::StepOpInterface step, llvm::StringRef what, llvm::ArrayRef<DimShardingAttr> dims,
             llvm::SmallVectorImpl<plan::StepOpInterface> &parts);

/// Adds parts for the boundaries of `splits`: those of a dimension within the interior of those before it. `dims` are
/// the iterations of the whole step, and `interior` those of the interior.
void addBoundaries(plan::StepOpInterface step, llvm::StringRef what, llvm::ArrayRef<SplitDim> splits,
                   llvm::ArrayRef<DimShardingAttr> dims, llvm::ArrayRef<DimShardingAttr> interior,
                   llvm::SmallVectorImpl<plan::StepOpInterface> &parts);

/// Whether no piece has anything.
bool isEmpty(DimShardingAttr dim);

/// A launch or library call that reads halos: for each read, what ranks own of it where an exchange brings the rest,
/// else null.
class StepSplitter {
public:
  StepSplitter(plan::StepOpInterface step, unsigned numDims, const layout::Mesh &mesh, mlir::FlatSymbolRefAttr meshName,
               llvm::SmallVector<mlir::Value> own);
  virtual ~StepSplitter() = default;

  /// Adds the parts of the step in front of it, the interior first, if there is something to compute without the
  /// exchange; else none. Either they or the step are to go.
  llvm::SmallVector<plan::StepOpInterface> split();

protected:
  /// True if iterations of the results' dimensions `dims` read nothing but what ranks own.
  virtual bool readsOwn(llvm::ArrayRef<DimShardingAttr> dims) const = 0;
  /// What accumulates along dimension `dim` begins anew where ranks do, and nowhere else.
  virtual bool isScan(unsigned /*dim*/) const { return false; }
  mlir::ArrayAttr getLoops() const { return step->getAttrOfType<mlir::ArrayAttr>("loops"); }

  plan::StepOpInterface step;
  const layout::Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  llvm::SmallVector<mlir::Value> own;
  /// How the results' dimensions are split.
  llvm::SmallVector<DimShardingAttr> dims;

private:
  /// The interior of dimension `dim`, where no other dimension reads anything.
  SplitDim findInterior(unsigned dim) const;
};

/// Whether dimension `dim` of what `kernel` yields accumulates, so that parts cannot begin anywhere.
bool isScan(plan::KernelOp kernel, unsigned dim);

std::unique_ptr<StepSplitter> createLaunchSplitter(plan::LaunchOp launch, plan::KernelOp kernel,
                                                   const layout::Mesh &mesh, mlir::FlatSymbolRefAttr meshName,
                                                   llvm::SmallVector<mlir::Value> own);
/// `numDims`: of the call's result.
std::unique_ptr<StepSplitter> createCallSplitter(plan::StepOpInterface call, unsigned numDims, const layout::Mesh &mesh,
                                                 mlir::FlatSymbolRefAttr meshName, llvm::SmallVector<mlir::Value> own);

} // namespace dovetail

#endif // DOVETAIL_LIB_SCHEDULE_STEPSPLITTER_H
