//===- LoopOptions.h - Ways to split the loops of operations ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares LoopOption, a way to split the loops of an operation, and what follows from it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_PLANNER_LOOPOPTIONS_H
#define DOVETAIL_LIB_PLANNER_LOOPOPTIONS_H

#include "CutFamilies.h"
#include "ExchangeCosts.h"
#include "WorkModel.h"

namespace dovetail {

/// One way to split the loops of an operation.
struct LoopOption {
  LoopShardings loops;
  /// What ranks hold of the results.
  ShardingAttr result;
  /// What they need of each operand. Partial where a sum passes through.
  llvm::SmallVector<ShardingAttr> needs;
  /// Axes over which such an operand, and with it the result, stays partial.
  llvm::SmallVector<mlir::StringAttr> passedAxes;
  /// Estimated seconds of the slowest rank.
  double seconds = 0;
  /// Bytes of constants, and of results, of the rank that has most.
  double weightBytes = 0, resultBytes = 0;
  /// What ranks tell each other where only the operation itself can combine what they have.
  ExchangeCost inner;
  /// The largest share of the iterations that a rank has; of unequal devices, times how much slower than the average
  /// the rank's is.
  double share = 1;
  /// How many times the share of the most even option that may be, as what is stated is uneven.
  double imbalance = 1;
};

/// Finds the options of operations of one function.
class LoopOptions {
public:
  /// What is stated of cuts is to be known to `families`.
  LoopOptions(ExchangeCosts &costs, mlir::FlatSymbolRefAttr meshName, CutFamilies &families);

  /// All ways to split the loops of `op`, the one without splits last. `mayBePartial`: operands that sums may pass
  /// through.
  std::vector<LoopOption> get(DefinitionOpInterface op, const OpRelation &relation, const WorkModel &work,
                              llvm::ArrayRef<unsigned> mayBePartial);
  /// What follows where the loops are to be split so.
  LoopOption get(DefinitionOpInterface op, const OpRelation &relation, const WorkModel &work, LoopShardings loops);
  /// All ways to split a tensor whose places begin at `place`.
  std::vector<ShardingAttr> get(unsigned place, mlir::RankedTensorType type);

private:
  /// Ways to split several places at once.
  struct Split {
    LoopShardings loops;
    /// Of each loop that is split, whether its cuts follow from what is stated.
    llvm::SmallVector<bool> isStated;
    double imbalance = 1;
  };
  /// All ways to give mesh axes to those of the places from `place` on that `maySplit` says.
  std::vector<Split> getSplits(unsigned place, size_t count,
                               llvm::function_ref<bool(unsigned loop, int64_t parts)> maySplit);
  /// The orders in which axes may split one loop.
  llvm::SmallVector<llvm::SmallVector<mlir::StringAttr>, 1> getOrders(llvm::ArrayRef<mlir::StringAttr> axes) const;

  ExchangeCosts &costs;
  const layout::Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  CutFamilies &families;
  llvm::SmallVector<mlir::StringAttr> axisNames;
  DimShardingAttr unsplit;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_PLANNER_LOOPOPTIONS_H
