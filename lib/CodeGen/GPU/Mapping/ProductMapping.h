//===- ProductMapping.h - Sums of products through shared memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ProductMapping.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_MAPPING_PRODUCTMAPPING_H
#define DOVETAIL_LIB_CODEGEN_GPU_MAPPING_PRODUCTMAPPING_H

#include "Mappings.h"

namespace dovetail {

/// A block computes a tile of a sum of products of two operands, such as a matrix product or a convolution: both
/// operands' parts of the tile go through shared memory, and a thread has several elements, which share what it reads
/// there. ProductOperands.cpp has the way of the operands into shared memory.
class ProductMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;
  int64_t countParts(int64_t terms) const override;

private:
  /// A side of a tile.
  struct Side {
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
  /// A loop over terms.
  struct TermLoop {
    unsigned position; ///< Among the coordinates of the loops and taps.
    int64_t extent;
    mlir::Value lo, count;
  };

  // Mapping.
  /// Elements of `width` bytes from one row of shared memory to the next.
  int64_t getPitch(int64_t width) const;
  /// Finds the product, or that of which the kernel computes parts.
  bool findProduct();
  /// Finds the loops of both sides, and those of which a tile has one iteration. Returns how many tiles there were if
  /// each took a whole block of both sides.
  int64_t divideLoops();
  /// An estimate of how long tiles of `perThread` by `perThread` elements for a thread take, if `parts` blocks share
  /// the terms of each.
  double estimate(int64_t perThread, int64_t parts) const;
  /// Bytes of shared memory that tiles take at most.
  int64_t boundBytes();
  /// Divides the loops of both sides into tiles.
  void countTileLoops();

  // What all tiles share.
  mlir::Value countTiles() override;
  void orderTerms();
  void placeOperands();
  /// Whether there may be terms that an operand has no factors for.
  bool mayBeMissing(const Side &side);
  /// For each loop that tiles are counted by how many there are of it.
  llvm::SmallVector<mlir::Value> countByLoop();
  /// Whether the numbers of an operand must be looked at, as some of its products do not count.
  bool mustBeFinite(unsigned number) const;

  // Tiles.
  void emitTile(mlir::Value tile) override;
  /// Finds the blocks and the first iterations of both sides, and sets the coordinates of all other loops. Returns
  /// where in the tile the elements of the thread begin, along both sides.
  llvm::SmallVector<mlir::Value> beginTile(mlir::Value tile);
  /// The coordinates of the product's result, of which the kernel may compute parts.
  llvm::SmallVector<mlir::Value> getProductIndex();
  /// The sums of a thread's elements, which begin at `place`.
  llvm::SmallVector<mlir::Value> emitSums(llvm::ArrayRef<mlir::Value> place);
  /// Adds the terms in shared memory to the sums of a thread; if `guarded`, only those whose factors are there.
  llvm::SmallVector<mlir::Value> emitTerms(mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> place, bool guarded);
  /// Sets the coordinates of a side's loops at `offset` in the tile, or of the last ones. Returns whether it is one of
  /// the rank; null: it surely is.
  mlir::Value setCoordinates(const Side &side, mlir::Value offset, llvm::MutableArrayRef<mlir::Value> at);
  /// Whether neighbouring terms of an operand are neighbours in memory.
  bool readsAlongTerms(const Side &side);
  /// Brings an operand's factors for the terms from `firstTerm` on, which are otherwise at `at`, into shared memory.
  void stageOperand(unsigned number, mlir::Value firstTerm, llvm::ArrayRef<mlir::Value> at);
  Values emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;

  /// Terms of which the operands lie in shared memory at a time.
  static constexpr int64_t depth = 16;
  /// Threads along a side.
  const int64_t threads = int64_t(1) << llvm::Log2_64(device.blockThreads) / 2;

  DefinitionOpInterface product;     ///< What is computed.
  plan::PartsOp parts;               ///< If parts of it are computed, these.
  Side sides[2];                     ///< Neighbouring threads have neighbouring elements of the second one.
  llvm::SmallVector<unsigned> batch; ///< Result loops of which a tile has one iteration.
  int64_t blocks = 1;                ///< How many tiles there were if each took a whole block of both sides.
  int64_t chunks = 1;                ///< How often terms go into shared memory for a tile, if no block shares them.
  int64_t perThread = 4;             ///< Elements of a thread along a side.
  int64_t edge = threads * perThread;
  llvm::SmallVector<TermLoop> nearTerms; ///< Loops along which the terms in shared memory are neighbours.
  llvm::SmallVector<TermLoop> farTerms;  ///< The others.
  mlir::Type termType;                   ///< Of numbers of terms.
  llvm::SmallVector<mlir::Value> tileCounts;
  int64_t notFinite = 0; ///< In shared memory, whether a factor was infinite or not a number.
  mlir::Value sum;       ///< Of the element that is being stored.
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_PRODUCTMAPPING_H
