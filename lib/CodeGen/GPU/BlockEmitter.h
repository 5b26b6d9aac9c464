//===- BlockEmitter.h - Generates a kernel for thread blocks -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares BlockEmitter.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_BLOCKEMITTER_H
#define DOVETAIL_LIB_CODEGEN_GPU_BLOCKEMITTER_H

#include "../Kernel/KernelBody.h"
#include "dovetail/CodeGen/GPU/DeviceDescription.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

namespace dovetail {

/// Generates a `gpu.func` for a kernel. Its items are divided among *teams*: a thread, a warp or a block. Values that
/// all elements of an item share are computed once, by the whole team: threads fold every n-th term and combine their
/// results by shuffles, those of warps through shared memory. The elements of an item are divided among the team's
/// threads.
///
/// Where neighbouring items, and not neighbouring terms, are neighbours in memory, a team is a *column* of a block:
/// neighbouring threads have neighbouring items, and all parts of a team's values meet in shared memory.
///
/// Where a kernel reads memory in another order than it writes, an item is a *tile* of two loops, and values pass
/// through shared memory: threads compute them in the order of reads, and pick them up in the order of writes.
///
/// Where an operation goes through lines of the result itself, an item is a line, and a thread writes all of it.
///
/// Where a kernel sums up products of two operands, each of which depends on result loops that the other one does not
/// depend on (a matrix product, a convolution), an item is a *tile*: a run of iterations of these loops for each
/// operand. Operands go through shared memory, some terms at a time, and a thread computes several elements.
class BlockEmitter : public KernelBody {
public:
  BlockEmitter(plan::KernelOp kernel, mlir::OpBuilder &builder, KernelAnalysis &analysis,
               const DeviceDescription &device);

  /// Creates the function at the insertion point. Fails, after an error, if the kernel cannot be generated.
  llvm::LogicalResult emit();

  /// How the function is to be launched.
  plan::BlocksAttr getBlocks();

  /// How many blocks have work when no rank splits anything, and how many threads share an item.
  int64_t countBlocks() const;
  int64_t getTeamSize() const { return team; }

  /// Whether all operations of a kernel, but for `other`, are cheap to compute again.
  static bool isCheap(plan::KernelOp kernel, mlir::Operation *other = nullptr);
  /// What computes the only result of a kernel all other operations of which are cheap; null if nothing does.
  static mlir::Operation *getOnlyResult(plan::KernelOp kernel);

private:
  // Mapping.
  void chooseTeam();
  void chooseColumns();
  /// Whether threads compute elements, each its own, that share nothing. Brings a loop of several iterations to the
  /// innermost place.
  bool isElementwise();
  bool chooseTile();
  bool chooseProduct();
  /// Finds the values to stage for `value`, an element of which is needed at `index`.
  void stage(mlir::Value value, llvm::ArrayRef<Coordinate> index);
  void chooseVector();
  /// The dimension of which neighbours are neighbours in memory; -1 for tensors of one element.
  static int getInnermost(plan::LayoutAttr layout, mlir::Type type);
  /// Whether vectors along the innermost dimension are aligned.
  bool isAligned(plan::LayoutAttr layout, mlir::Type type) const;

  // Function.
  void createFunction();
  void emitItems();
  void emitItem(mlir::Value item);
  void emitElements();
  void emitTile();
  /// The coordinate of `loop` at `offset` in a tile that begins at `first`, or the last one of the rank; whether it is
  /// one of the rank is added to `isItem`.
  mlir::Value emitTileCoordinate(unsigned loop, mlir::Value first, mlir::Value offset, int64_t size);
  void emitStores();
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

  /// A value that passes through shared memory.
  struct Staged {
    mlir::Value value;
    llvm::SmallVector<int> loops; ///< For each dimension the result loop that is its coordinate; -1: it is zero.
    mlir::Type type;
    int64_t offset = 0; ///< In the block's shared memory, in elements.
  };
  /// The element of `value` at `index` that lies in shared memory, if it does.
  mlir::Value readStaged(mlir::Value value, llvm::ArrayRef<mlir::Value> index);

  /// A side of a tile of products.
  struct ProductSide {
    /// A result loop of which the other operand's factors are the same for `block` iterations; tiles lie inside of a
    /// block.
    struct SideLoop {
      unsigned loop;
      int64_t block;
      mlir::Value lo, count; ///< Of the block in which the tile is.
    };
    unsigned operand = 0;
    llvm::SmallVector<SideLoop> loops; ///< Those that only this operand depends on, outermost first.
    int64_t extent = 1;                ///< Iterations of all of them.
    mlir::Type type;
    mlir::Value first, count; ///< The tile's first iteration, and those of all tiles that lie in the same blocks.
    bool isGuarded = false;   ///< There are terms that it has no factors for.
    int64_t pitch = 0;        ///< Elements of a row of shared memory.
    int64_t offset = 0;       ///< Of the operand in shared memory, in elements.
    int64_t guards = 0;       ///< Of a byte for each factor: whether it is there.
  };
  /// A loop over terms of a product.
  struct TermLoop {
    unsigned position; ///< Among the coordinates of the loops and taps.
    int64_t extent;
    mlir::Value lo, count;
  };
  /// Elements of `width` bytes from one row of shared memory to the next.
  int64_t getPitch(int64_t width) const;
  void orderTerms();
  void placeOperands();
  /// Whether there may be terms that an operand has no factors for.
  bool mayBeMissing(const ProductSide &side);
  /// For each loop that tiles are counted by how many there are of it.
  llvm::SmallVector<mlir::Value> countTiles();
  /// Whether the numbers of an operand must be looked at, as some of its products do not count.
  bool mustBeFinite(unsigned number) const;
  /// Sets the coordinates of a side's loops at `offset` in the tile, or of the last ones. Returns whether it is one of
  /// the rank; null: it surely is.
  mlir::Value setCoordinates(const ProductSide &side, mlir::Value offset, llvm::MutableArrayRef<mlir::Value> at);
  /// Whether neighbouring terms of an operand are neighbours in memory.
  bool readsAlongTerms(const ProductSide &side);
  void stageOperand(unsigned number, mlir::Value firstTerm, llvm::ArrayRef<mlir::Value> at);
  llvm::SmallVector<mlir::Value> emitTerms(mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> place, bool guarded);
  void emitProduct(mlir::Value item);

  // Values that a team shares.
  using Values = llvm::SmallVector<mlir::Value, 3>;
  mlir::Value emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;
  mlir::Value emitLoad(const Memory &memory, mlir::Type elementType, llvm::ArrayRef<mlir::Value> index) override;
  /// One of several equal parts of what is reduced.
  struct Part {
    mlir::Value number;
    int64_t count;
  };
  /// The value of a reduction, or the three moments, if they are the same for the whole item; null otherwise. With
  /// `part`, of that part.
  const Values *emitShared(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index, std::optional<Part> part = {});
  mlir::Value emitPart(plan::PartsOp op, llvm::ArrayRef<mlir::Value> index);
  /// The one that `index` asks for.
  mlir::Value selectValue(const Values &values, llvm::ArrayRef<mlir::Value> index);
  /// The iterations of `loops` that belong to the current part, or all.
  Range getTerms(llvm::ArrayRef<unsigned> loops);
  /// Moves the insertion point to the item's block, before all that needs what is emitted next. False if that is not
  /// possible.
  bool hoist();
  /// `value` computed again from what is visible in the item's block; null if it cannot.
  mlir::Value rematerialize(mlir::Value value);
  /// Folds over the loops of `op`, divided among the team's threads. `term` finds its coordinates in `foldIndex`.
  mlir::Value emitTeamFold(mlir::Operation *op, mlir::Value init, llvm::SmallVector<mlir::Value> &foldIndex,
                           llvm::function_ref<mlir::Value()> term,
                           llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  Values emitTeamMoments(MomentsOp op, llvm::SmallVector<mlir::Value> &foldIndex);
  Values emitCombinedMoments(plan::CombineMomentsOp op, llvm::SmallVector<mlir::Value> &foldIndex);
  /// Whether the result's last dimension has the three moments of an element, which are computed together.
  static bool hasMoments(mlir::Operation *op) { return llvm::isa<MomentsOp, plan::CombineMomentsOp>(op); }
  mlir::Value combineTeam(mlir::Value value, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  mlir::Value shuffle(mlir::Value value, int64_t mask);
  mlir::Value combineWarps(mlir::Value value, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  /// Combines `count` values of `type` in shared memory, `stride` elements from one another.
  mlir::Value combineShared(mlir::Type type, mlir::Value first, int64_t stride, int64_t count,
                            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  /// Writes element `position` of the block's shared memory, taken as an array of `size` elements.
  void storeShared(mlir::Value value, mlir::Value position, int64_t size);
  mlir::Value loadShared(mlir::Type type, mlir::Value position);
  /// The address of an element of shared memory, taken as an array of `type`.
  mlir::Value getSharedAddress(mlir::Type type, mlir::Value position);

  /// Bytes that an element takes in memory, where booleans are bytes.
  static int64_t getByteWidth(mlir::Type scalar) { return llvm::divideCeil(scalar.getIntOrFloatBitWidth(), 8); }
  /// Terms of a product of which the operands lie in shared memory at a time.
  static constexpr int64_t productDepth = 16;

  const DeviceDescription device;
  /// Iterations of both loops of a tile. A row of a tile is one element longer, so that neither its rows nor its
  /// columns lie in one bank of shared memory.
  const int64_t tileSize = device.sharedBanks, tilePitch = tileSize + 1;
  /// Threads along a side of a tile of products.
  const int64_t productThreads = int64_t(1) << llvm::Log2_64(device.blockThreads) / 2;
  int64_t team = 1;    ///< Threads of a team: 1, of a warp, of a block, or those of a column.
  int64_t columns = 0; ///< Columns of a block; 0: the threads of a team are neighbours.
  int64_t vector = 1;  ///< Elements along the innermost item loop that a thread computes together.
  int reads = -1;      ///< With tiles, the loop along which memory is read.
  int writes = -1;     ///< With tiles, the loop along which memory is written.
  llvm::SmallVector<Staged> staged;
  mlir::Value stagedPosition;            ///< In a tile, of the element that is computed; null while it is filled.
  llvm::SmallVector<unsigned> itemLoops; ///< Result loops that make up items, outermost first.
  llvm::SmallVector<int64_t> itemSteps;
  llvm::SmallVector<unsigned> teamLoops;   ///< Result loops inside of an item, divided among a team.
  llvm::SmallVector<unsigned> serialLoops; ///< Short result loops inside of everything else.
  int64_t sharedBytes = 0;                 ///< Shared memory of a block.
  mlir::LLVM::GlobalOp sharedMemory;

  mlir::Value thread, lane, column;
  mlir::Value isItem; ///< Whether the thread has an element of its own; null: it surely has.
  mlir::Block *itemBlock = nullptr;
  mlir::Value vectorBase; ///< The innermost coordinate of the first of the elements computed together.
  int64_t vectorElement = 0;
  std::map<std::vector<uintptr_t>, Values> shared;
  mlir::Operation *product = nullptr;       ///< What tiles of products compute.
  ProductSide productSides[2];              ///< Neighbouring threads have neighbouring elements of the second one.
  llvm::SmallVector<unsigned> productBatch; ///< Result loops of which a tile has one iteration.
  int64_t productElements = 4;              ///< Of a thread along a side.
  int64_t productTile = 64;                 ///< Elements along a side.
  llvm::SmallVector<TermLoop> nearTerms;    ///< Loops along which the terms in shared memory are neighbours.
  llvm::SmallVector<TermLoop> farTerms;     ///< The others.
  mlir::Type termType;                      ///< Of numbers of terms.
  llvm::SmallVector<mlir::Value> tileCounts;
  int64_t notFinite = 0;    ///< In shared memory, whether a factor was infinite or not a number.
  mlir::Value productValue; ///< The element that is being stored.
  int partsLoop = -1;       ///< The result loop that numbers the parts of a reduction.
  std::optional<Part> part;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_BLOCKEMITTER_H
