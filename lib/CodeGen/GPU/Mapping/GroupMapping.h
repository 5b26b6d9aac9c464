//===- GroupMapping.h - Values that threads compute together ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares GroupMapping.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_MAPPING_GROUPMAPPING_H
#define DOVETAIL_LIB_CODEGEN_GPU_MAPPING_GROUPMAPPING_H

#include "Mappings.h"

namespace dovetail {

/// Values that all elements of a tile share are computed once, by the whole group: threads fold every n-th term and
/// combine their results. The elements of a tile are divided among the group's threads. GroupMapping.cpp has how loops
/// are divided, GroupValues.cpp the values. A group is a thread, a warp or a block.
class GroupMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;

protected:
  using Combine = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;

  mlir::Value placeThread(mlir::Value first) override;
  void emitTile(mlir::Value tile) override;
  /// Combines the values that the threads of a group have; every thread gets the result.
  virtual mlir::Value combineGroup(mlir::Value value, Combine combine);
  /// Combines `count` values of `type` in shared memory, `stride` elements from one another.
  mlir::Value combineShared(mlir::Type type, mlir::Value first, int64_t stride, int64_t count, Combine combine);
  /// Whether the thread is to write what it computed; null: it is.
  virtual mlir::Value emitStoreCondition();

  /// Whether the result's last dimension has the three moments of an element, which are computed together.
  static bool hasMoments(mlir::Operation *op) { return llvm::isa<MomentsOp, plan::CombineMomentsOp>(op); }
  /// The parts of a reduction, if that is what the kernel computes.
  plan::PartsOp findParts();

  mlir::Value lane; ///< The number of the thread in its group.

private:
  // Mapping.
  void chooseGroup();
  void emitElements();

  // Values.
  using Values = llvm::SmallVector<mlir::Value, 3>;
  /// One of several equal parts of what is reduced.
  struct Part {
    mlir::Value number;
    int64_t count;
  };
  mlir::Value emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;
  /// The value of a reduction, or the three moments, if they are the same for the whole tile; null otherwise. With
  /// `part`, of that part.
  const Values *emitShared(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index, std::optional<Part> part = {});
  mlir::Value emitPart(plan::PartsOp op, llvm::ArrayRef<mlir::Value> index);
  /// The one that `index` asks for.
  mlir::Value selectValue(const Values &values, llvm::ArrayRef<mlir::Value> index);
  /// The iterations of `loops` that belong to the current part, or all.
  Range getTerms(llvm::ArrayRef<unsigned> loops);
  /// Moves the insertion point to the tile's block, before all that needs what is emitted next. False if that is not
  /// possible.
  bool hoist();
  /// `value` computed again from what is visible in the tile's block; null if it cannot.
  mlir::Value rematerialize(mlir::Value value);
  /// Folds over the loops of `op`, divided among the group's threads. `term` finds its coordinates in `foldIndex`.
  mlir::Value emitGroupFold(mlir::Operation *op, mlir::Value init, llvm::SmallVector<mlir::Value> &foldIndex,
                            llvm::function_ref<mlir::Value()> term, Combine combine);
  Values emitMoments(MomentsOp op, llvm::SmallVector<mlir::Value> &foldIndex);
  Values emitCombinedMoments(plan::CombineMomentsOp op, llvm::SmallVector<mlir::Value> &foldIndex);
  mlir::Value shuffle(mlir::Value value, int64_t mask);

  llvm::SmallVector<unsigned> groupLoops;              ///< Result loops inside of a tile, divided among a group.
  llvm::SmallVector<unsigned> serialLoops;             ///< Short result loops inside of everything else.
  mlir::Block *tileBlock = nullptr;                    ///< Of the code for a tile.
  std::map<std::vector<uintptr_t>, Values> tileValues; ///< What was computed for the whole tile.
  std::optional<Part> part;                            ///< What is being computed, if it is a part.
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_GROUPMAPPING_H
