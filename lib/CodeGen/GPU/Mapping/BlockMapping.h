//===- BlockMapping.h - How a kernel is divided among threads ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares BlockMapping, what all ways to divide a kernel among blocks of threads share, and chooseMapping.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_MAPPING_BLOCKMAPPING_H
#define DOVETAIL_LIB_CODEGEN_GPU_MAPPING_BLOCKMAPPING_H

#include "../../Kernel/KernelBody.h"
#include "SharedMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace dovetail {

/// A kernel for which a function is to be generated.
struct BlockKernel {
  plan::KernelOp kernel;
  mlir::OpBuilder &builder; ///< Where the function is to be.
  KernelAnalysis &analysis; ///< Of `kernel`.
  DeviceDescription device;
};

/// A way to divide a kernel among the threads of a device; generates a `gpu.func` for it.
///
/// Iterations of result loops are divided into *tiles*: one or several iterations of each of some of the loops, and all
/// of the others. Threads are divided into *groups*: a thread, a warp, a block, or some threads of a block. In a loop,
/// each group computes every n-th tile, so a launch may have any number of blocks. What a group's threads do with a
/// tile is the mapping's business.
class BlockMapping : public KernelBody {
public:
  explicit BlockMapping(const BlockKernel &kernel)
      : KernelBody(kernel.kernel, kernel.builder, kernel.analysis), device(kernel.device),
        shared(elements, KernelBody::kernel.getSymName(), device) {}

  /// Divides the loops if the mapping takes the kernel, and otherwise returns false. Called once, before all else.
  virtual bool take() = 0;

  /// Creates the function at the insertion point. Fails, after an error, if the kernel cannot be generated.
  llvm::LogicalResult emit();

  /// How the function is to be launched, once it is there.
  plan::BlocksAttr getBlocks();

  /// How many blocks have work when no rank splits anything, and how many threads share a tile.
  int64_t countBlocks() const;
  int64_t getGroupThreads() const { return groupThreads; }
  /// Into how many parts its reduction, of `terms` terms besides taps, is best divided among blocks. 1: none.
  virtual int64_t countParts(int64_t terms) const;
  /// Whether the kernel is better for what else is done to each of its elements.
  virtual bool takesEpilogues() const { return false; }

protected:
  /// What a thread is to write: a value for each result, at an address that the type or `alignment` aligns.
  struct Store {
    unsigned result;
    mlir::Value value, offset;
    mlir::IntegerAttr alignment;
  };

  /// Finds the place of `thread` in its block, the first tile of which is `first`. Returns the first tile of its group.
  virtual mlir::Value placeThread(mlir::Value first);
  /// How many tiles there are.
  virtual mlir::Value countTiles() { return countIterations(tileLoops, tileSteps); }
  /// Emits what a group does with tile number `tile`.
  virtual void emitTile(mlir::Value tile) = 0;

  /// Makes every element a tile, neighbours along an innermost loop of several iterations one after another. Returns
  /// whether all operations of the kernel are cheap, so that elements share nothing, and there are several elements.
  bool divideElements();

  /// Sets the coordinates of `index` in the tile loops, where tile number `tile` begins.
  void setIndex(mlir::Value tile);
  /// The coordinates of iteration `linear` of `loops`, the last one fastest.
  void delinearize(mlir::Value linear, llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<int64_t> steps,
                   llvm::function_ref<void(unsigned loop, mlir::Value coordinate)> set);
  /// The digits of `linear` in a system of numbers with `counts` digits each, the last one fastest.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<mlir::Value> counts);
  /// The number of iterations of a loop, and of several.
  mlir::Value countSteps(unsigned loop, int64_t step);
  mlir::Value countIterations(llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<int64_t> steps);
  /// Type of numbers of iterations of `loops`: i32 where it is wide enough, as its divisions are much faster.
  mlir::Type getCounterType(llvm::ArrayRef<unsigned> loops);
  mlir::Value castIndex(mlir::Type type, mlir::Value value);
  mlir::Value multiplyAll(llvm::ArrayRef<mlir::Value> factors);

  /// Whether runs of `width` elements along the innermost dimension are aligned.
  bool isAligned(plan::LayoutAttr layout, mlir::Type type, int64_t width) const;
  /// Says that the element `value` of `memory` at `index` is aligned, if it surely is. A run of `width` elements begins
  /// at the innermost coordinate `first`.
  void alignLoad(mlir::Value value, const Memory &memory, llvm::ArrayRef<mlir::Value> index, mlir::Value first,
                 int64_t width);
  /// Computes the kernel's results at `index`, and writes what was computed if `condition`, if it is not null, holds.
  llvm::SmallVector<Store> emitResults();
  void emitStores(llvm::ArrayRef<Store> stores, mlir::Value condition = {});

  /// The argument of the kernel that lies in `memory`; null if it is none.
  mlir::BlockArgument getArgument(const Memory &memory);

  const DeviceDescription device;
  SharedMemory shared;
  llvm::SmallVector<unsigned> tileLoops; ///< Result loops over which tiles are counted, outermost first.
  llvm::SmallVector<int64_t> tileSteps;  ///< Iterations of each of them in a tile.
  int64_t groupThreads = 1;
  int64_t blocksAtOnce = 1; ///< That a processor should have registers for.
  mlir::Value thread;       ///< The number of the thread in its block.
  mlir::Value tileCount;    ///< How many tiles there are.

private:
  void createFunction();
  void emitTiles();
};

/// The product of the extents of `loops`, those without iterations aside; no more than the largest number.
int64_t multiplyExtents(llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<int64_t> extents);
/// Whether all operations of a kernel, but for `other`, are cheap to compute again.
bool isCheap(plan::KernelOp kernel, mlir::Operation *other = nullptr);
/// What computes the only result of a kernel all other operations of which are cheap; null if nothing does.
mlir::Operation *getOnlyResult(plan::KernelOp kernel);

/// The mapping of a kernel, ready to be emitted.
std::unique_ptr<BlockMapping> chooseMapping(const BlockKernel &kernel);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_BLOCKMAPPING_H
