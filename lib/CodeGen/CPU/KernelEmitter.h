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

#include "../Kernel/KernelBody.h"
#include "SplitLoops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {

/// Generates the functions of one kernel: `@k.body`, with its memory and its loops' ranges as arguments, and `@k`,
/// which takes them from the arrays that the runtime passes.
class KernelEmitter : public KernelBody {
public:
  KernelEmitter(plan::KernelOp kernel, mlir::OpBuilder &builder, KernelAnalysis &analysis);

  /// Creates the functions at the insertion point. Fails, after an error, if the kernel needs what a CPU kernel cannot
  /// do.
  llvm::LogicalResult emit();

  int getParallelLoop() const { return parallelLoop; }

  /// Adds those of the loops' ranges.
  void addBounds(IndexBounds &bounds) const;

private:
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
  /// Those of a reduction with several accumulators.
  using Rows = llvm::SmallVector<Row>;

  // Functions.
  bool isStatic(unsigned loop) override;
  mlir::func::FuncOp emitBodyFunction();
  void emitEntryFunction(mlir::func::FuncOp body);

  /// Has loops end at counts.
  void endRanges();

  // Loops.
  void emitLoops(unsigned depth);
  void emitTiles();
  void emitTile(Tile tile);
  void emitStores();
  void forEach(mlir::Value lo, mlir::Value hi, llvm::function_ref<void(mlir::Value)> body);

  // Results in the memory of an argument.
  /// Emits what elements of the row inside of the current loops have from all of it, as `reads` say.
  void emitRowValues(const plan::InPlaceReads &reads);
  /// Writes the kept value into the row inside of the current loops.
  void emitKept(const KernelAnalysis::KeptValue &kept, unsigned depth);
  mlir::Value emitLoad(const Memory &memory, mlir::Type elementType, llvm::ArrayRef<mlir::Value> index) override;

  // Tiles of what is read across what is written.
  /// Finds the loop along which most of what is read lies in memory, if it is another one than the innermost. A short
  /// one becomes the innermost instead.
  void chooseTransposedLoop();
  /// Iterations of such a tile, in each of its two loops: with 4 bytes for each element some lines of a cache both
  /// ways, of which the nearest cache holds all.
  static constexpr int64_t transposedExtent = 64;
  /// `body` for ranges of `loop`, in tiles of `size`.
  void emitTilesOf(unsigned loop, int64_t size, llvm::function_ref<void(Tile tile)> body);
  /// The innermost loop, in tiles, each with the iterations of the transposed loop outside of its own.
  void emitTransposedTiles();

  // Products with a factor that is computed.
  /// Finds such a product, if the kernel is one whose results share what is computed.
  void chooseProduct();
  /// The loops over its columns and rows, and all inside of them.
  void emitProduct();
  /// The results of `width` columns from `first` on.
  void emitProductTile(mlir::Value first, mlir::Value width);
  /// Those of a block of at most `size` rows.
  void emitProductTile(mlir::Value first, mlir::Value width, Tile block, int64_t size);

  // Rows of accumulators.
  /// Whether rows of `op` are long, as what they accumulate streams from memory.
  bool hasLongRows(mlir::Operation *op);
  Rows createRows(Tile tile, mlir::ValueRange like);
  Values loadRows(const Rows &rows, mlir::Value coordinate);
  void storeRows(const Rows &rows, mlir::Value coordinate, mlir::ValueRange values);
  /// The accumulators of a reduction for all coordinates of a tile.
  Rows emitRows(DefinitionOpInterface op, Tile tile);
  /// The same of what `fold` says, over `loops`, each in the one before. `emitInner` makes the innermost terms; none:
  /// they are the fold's.
  Rows emitRows(mlir::Operation *op, const Fold &fold, llvm::ArrayRef<unsigned> loops, Tile tile,
                llvm::SmallVector<mlir::Value> &foldIndex, std::function<Rows()> emitInner = {});
  /// The accumulators of a block of terms, all iterations of `loops`, gone through in passes.
  Rows emitBlock(DefinitionOpInterface op, llvm::ArrayRef<unsigned> loops, Tile tile,
                 llvm::SmallVector<mlir::Value> &foldIndex);

  Values emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;

  /// A product whose read number `factor` is computed, for all iterations of the result's loop `row` together.
  struct Product {
    DefinitionOpInterface op;
    unsigned factor, row;
  };

  int parallelLoop;
  llvm::SmallVector<unsigned> order;
  /// What `@k.body` takes after the pointers: positions in the runtime's numbers.
  llvm::SmallVector<unsigned> numbers;
  /// Position of the row loop in `order`.
  unsigned rowDepth;
  /// Elements of a row that accumulate together, at most.
  int64_t tileSize;
  llvm::SmallVector<mlir::Operation *> rowReductions;
  int transposedLoop = -1; ///< -1: none.
  Tile transposed;         ///< Of that loop, where tiles are emitted.
  bool isInRow = false;    ///< Elements are emitted that may be written over.
  bool isKept = false;     ///< The row has the kept value, or elements of the result.
  std::optional<Product> product;
  /// What has been computed of an operation at the coordinates at hand; null: nothing.
  std::pair<mlir::Operation *, mlir::Value> computed;
  bool isPrefetching = false; ///< What would be read is asked for only.
  int64_t copies = 1;         ///< How often the loops around the current one repeat the code.
  llvm::DenseMap<mlir::Operation *, Rows> rows;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_KERNELEMITTER_H
