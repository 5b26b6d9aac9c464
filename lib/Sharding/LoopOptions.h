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

#ifndef DOVETAIL_LIB_SHARDING_LOOPOPTIONS_H
#define DOVETAIL_LIB_SHARDING_LOOPOPTIONS_H

#include "CutFamilies.h"
#include "dovetail/Cost/ExchangeCosts.h"
#include "dovetail/Cost/OpCosts.h"

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
  /// How often that changes which mesh axes split, from one axis to the next: what is stated is not counted.
  unsigned changes = 0;
};

/// Finds the options of operations of one function.
class LoopOptions {
public:
  /// What is stated of cuts is to be known to `families`.
  LoopOptions(ExchangeCosts &costs, mlir::FlatSymbolRefAttr meshName, CutFamilies &families);

  /// The ways to split the loops of `op`, the one without splits last: all of them, or on meshes of many axes those in
  /// which at most `kMaxChanges` changes take place. `mayBePartial`: sets of operands that sums may pass
  /// through together.
  std::vector<LoopOption> get(SplitOpInterface op, const OpRelation &relation, const OpCosts &work,
                              llvm::ArrayRef<llvm::SmallVector<unsigned>> mayBePartial);
  /// Whether these were all ways.
  bool hasFoundAll() const { return isComplete; }
  /// What follows where the loops are to be split so.
  LoopOption get(SplitOpInterface op, const OpRelation &relation, const OpCosts &work, LoopShardings loops);
  /// The ways to split a tensor whose places begin at `place`.
  std::vector<ShardingAttr> get(unsigned place, mlir::RankedTensorType type);

  /// Axes that follow each other in the mesh split the same loop, or one of two: 2 x 4 ranks may do on a mesh of three
  /// axes of 2 what they would on one of two. What changes more often is not tried before all of that.
  static constexpr unsigned kMaxChanges = 1;

private:
  /// The loop that each axis splits: `kNone` for none, `kPartial` where a sum stays partial over it.
  using Assignment = llvm::SmallVector<unsigned, 4>;
  static constexpr unsigned kNone = ~0u, kPartial = kNone - 1;

  /// Ways to split several places at once.
  struct Split {
    LoopShardings loops;
    Assignment assignment;
    /// Of each loop that is split, whether its cuts follow from what is stated.
    llvm::SmallVector<bool> isStated;
    double imbalance = 1;
  };
  /// All assignments to `loops`, which may be split, of the places from `place` on; or those that are tried.
  std::vector<Assignment> getAssignments(unsigned place, llvm::ArrayRef<unsigned> loops);
  /// How often what axes split changes from one to the next, of those that `isCounted`.
  static unsigned countChanges(llvm::ArrayRef<unsigned> assignment, llvm::function_ref<bool(unsigned loop)> isCounted);
  /// All of `getAssignments`, with the cuts of each.
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
  bool isComplete = true;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_LOOPOPTIONS_H
