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
  mlir::Value placeThread(mlir::Value first) override;
  void emitTile(mlir::Value tile) override;
  /// Combines the accumulators that the threads of a group have; every thread gets the result.
  virtual Values combineGroup(Values values, const Fold &fold);
  /// Puts a thread's accumulators into shared memory, at `position` in arrays of `size` for each of them.
  void storeShared(mlir::ValueRange values, mlir::Value position, int64_t size);
  /// Combines `count` accumulators of `types` in such arrays, `stride` elements from one another.
  Values combineShared(mlir::TypeRange types, mlir::Value first, int64_t stride, int64_t count, int64_t size,
                       const Fold &fold);
  /// Whether the thread is to write what it computed; null: it is.
  virtual mlir::Value emitStoreCondition();

  /// The parts of a reduction, if that is what the kernel computes; of several, the first.
  plan::PartsOp findParts();

  mlir::Value lane; ///< The number of the thread in its group.

private:
  // Mapping.
  void chooseGroup();
  void emitElements();

  // Values.
  /// One of several equal parts of what is reduced.
  struct Part {
    mlir::Value number;
    int64_t count;
  };
  Values emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;
  /// The results of a reduction if they are the same for the whole tile; null otherwise. With `part`, the accumulators
  /// of that part.
  const Values *emitShared(DefinitionOpInterface op, llvm::ArrayRef<mlir::Value> index, std::optional<Part> part = {});
  mlir::Value emitPart(plan::PartsOp op, llvm::ArrayRef<mlir::Value> index);
  /// The iterations of `loops` that belong to the current part, or all.
  Range getTerms(llvm::ArrayRef<unsigned> loops);
  /// Moves the insertion point to the tile's block, before all that needs what is emitted next. False if that is not
  /// possible.
  bool hoist();
  /// `value` computed again from what is visible in the tile's block; null if it cannot.
  mlir::Value rematerialize(mlir::Value value);
  /// The accumulators of `op`, whose terms are divided among the group's threads.
  Values emitGroupReduction(DefinitionOpInterface op, llvm::SmallVector<mlir::Value> &foldIndex);
  Values emitGroupFold(mlir::Operation *op, const Fold &fold, llvm::SmallVector<mlir::Value> &foldIndex);
  mlir::Value shuffle(mlir::Value value, int64_t mask);

  llvm::SmallVector<unsigned> groupLoops;              ///< Result loops inside of a tile, divided among a group.
  mlir::Block *tileBlock = nullptr;                    ///< Of the code for a tile.
  std::map<std::vector<uintptr_t>, Values> tileValues; ///< What was computed for the whole tile.
  std::optional<Part> part;                            ///< What is being computed, if it is a part.
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_GROUPMAPPING_H
