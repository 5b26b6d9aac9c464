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
/// there. While a block computes, it loads what comes next. ProductTiles.cpp has how large tiles are, and
/// ProductOperands.cpp the way of the operands into shared memory.
class ProductMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;
  int64_t countParts(int64_t terms) const override;
  bool takesEpilogues() const override { return !parts; }

private:
  /// The threads of a block along both sides of a tile, and the elements of each thread.
  struct TileShape {
    int64_t threads[2], perThread[2];

    int64_t getEdge(unsigned side) const { return threads[side] * perThread[side]; }
  };
  /// A side of a tile.
  struct Side {
    /// A result loop of which the other operand's factors are the same for `block` iterations; tiles lie inside of a
    /// block.
    struct SideLoop {
      unsigned loop;
      int64_t block;
      mlir::Value lo, count; ///< Of the block in which the tile is.
      int64_t stride = 1;    ///< Iterations are gone through by so many, from each of the first ones on.
    };
    unsigned operand = 0;
    llvm::SmallVector<SideLoop> loops; ///< Those that only this operand depends on, outermost first.
    int64_t extent = 1;                ///< Iterations of all of them.
    int64_t edge = 0, threads = 0, perThread = 0;
    mlir::Type type;
    mlir::Value first, count; ///< The tile's first iteration, and those of all tiles that lie in the same blocks.
    bool isGuarded = false;   ///< There are terms that it has no factors for.
    int64_t run = 1;          ///< Neighbours that a thread reads together from shared memory.
    int64_t pitch = 0;        ///< Elements of a row of shared memory.
    int64_t offset = 0;       ///< Of the operand in shared memory, in elements.
    int64_t guards = 0;       ///< Of bytes in shared memory: whether factors are there.
    int64_t guardRows = 1;    ///< Rows of them: one for each term, or one for all.
  };
  /// A loop over terms.
  struct TermLoop {
    unsigned position; ///< Among the coordinates of the loops and taps.
    int64_t extent;
    mlir::Value lo, count;
  };
  /// The part of an operand that a thread brings into shared memory for each chunk of terms.
  struct Staging {
    /// Neighbours that are loaded together.
    struct Run {
      mlir::Value inTerms, inSide;       ///< The first of them, in the chunk and in the tile.
      llvm::SmallVector<mlir::Value> at; ///< The coordinates of the side.
      mlir::Value offset;                ///< In memory, if it is that of the first terms, and another for later ones.
      llvm::SmallVector<mlir::Value> loaded; ///< Of the present chunk.
      mlir::Value isInside;                  ///< Whether there are factors.
    };
    bool alongTerms = false; ///< Neighbours are terms, or elements of the side.
    int64_t width = 1;       ///< How many there are in a run.
    llvm::SmallVector<Run> runs;
  };

  // Mapping.
  /// Finds the product, or that of which the kernel computes parts.
  bool findProduct();
  /// Finds the loops of both sides, and those of which a tile has one iteration. Returns how many tiles there were if
  /// each took a whole block of both sides.
  int64_t divideLoops();
  /// Finds loops that are better gone through by strides: elements of one tile then have the same taps.
  void findStrides();
  /// The shapes that tiles may have.
  llvm::SmallVector<TileShape> getShapes() const;
  /// The fastest of them if `parts` blocks share the terms of each tile, and an estimate of its time.
  std::optional<std::pair<double, TileShape>> chooseShape(int64_t parts) const;
  double estimate(const TileShape &shape, int64_t parts) const;
  /// Elements of `width` bytes from one row of shared memory to the next, for tiles of `edge` elements.
  int64_t getPitch(int64_t edge, int64_t width) const { return edge + device.accessBytes / width; }
  /// Bytes of shared memory that tiles take at most.
  int64_t boundBytes(const TileShape &shape) const;
  mlir::Type getType(const Side &side) const;
  /// Divides the loops of both sides into tiles.
  void countTileLoops();

  // What all tiles share.
  mlir::Value countTiles() override;
  void orderTerms();
  void placeOperands();
  /// Whether there may be terms that an operand has no factors for.
  bool mayBeMissing(const Side &side);
  /// Whether that differs between terms that lie in shared memory together.
  bool dependsOnNearTerms(const Side &side);
  /// For each loop that tiles are counted by how many there are of it.
  llvm::SmallVector<mlir::Value> countByLoop();
  /// Whether the numbers of an operand must be looked at, as some of its products do not count.
  bool mustBeFinite(unsigned number) const;

  // Tiles.
  void emitTile(mlir::Value tile) override;
  /// Finds the blocks and the first iterations of both sides, and sets the coordinates of all other loops. Returns the
  /// place of the thread along both sides.
  llvm::SmallVector<mlir::Value> beginTile(mlir::Value tile);
  /// The coordinates of the product's result, of which the kernel may compute parts.
  llvm::SmallVector<mlir::Value> getProductIndex();
  /// Where element `number` of a thread at `place` is along a side.
  mlir::Value getPosition(const Side &side, mlir::Value place, int64_t number);
  /// The sums of the elements of a thread at `place`.
  llvm::SmallVector<mlir::Value> emitSums(llvm::ArrayRef<mlir::Value> place);
  /// The sums over the chunks of terms from `begin` on, of `end` in all.
  llvm::SmallVector<mlir::Value> emitChunks(llvm::ArrayRef<mlir::Value> place, mlir::Value begin, mlir::Value end,
                                            int64_t mostChunks);
  /// Adds the terms of a chunk, which lie in shared memory, to the sums of a thread.
  llvm::SmallVector<mlir::Value> emitChunk(mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> place,
                                           mlir::Value buffer);
  /// Whether there are factors for the elements of a thread at `place` of a side, from a row of guards.
  llvm::SmallVector<mlir::Value> loadGuards(const Side &side, mlir::Value place, mlir::Value row);
  /// As above; if `guarded`, only those whose factors are there.
  llvm::SmallVector<mlir::Value> emitTerms(mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> place, mlir::Value buffer,
                                           bool guarded);
  void storeSums(llvm::ArrayRef<mlir::Value> place, llvm::ArrayRef<mlir::Value> sums);
  /// Whether runs of a side's elements in the tile are neighbours in the result, and begin at multiples of a run.
  bool storesRuns(const Side &side);
  Values emitOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> index) override;
  mlir::Value emitLoad(const Memory &memory, mlir::Type elementType, llvm::ArrayRef<mlir::Value> index) override;

  // Operands.
  /// Sets the coordinates of a side's loops at `offset` in the tile, of a run of `width`, or of the last one. Returns
  /// whether it is one of the rank; null: it surely is.
  mlir::Value setCoordinates(const Side &side, mlir::Value offset, llvm::MutableArrayRef<mlir::Value> at,
                             int64_t width = 1);
  /// Whether neighbouring terms of an operand are neighbours in memory.
  bool readsAlongTerms(const Side &side);
  /// The argument of the kernel that an operand is; null if it is none. Also null unless the offsets of factors are
  /// sums of one for the result loops and one for the terms.
  mlir::BlockArgument getSeparable(const Side &side);
  /// Whether runs of `width` factors, along the innermost loop of the terms or of the side, are neighbours in memory
  /// and aligned.
  bool hasRuns(const Side &side, bool alongTerms, int64_t width);
  /// Emits all of it that does not depend on terms.
  Staging prepareStaging(unsigned number);
  /// Loads an operand's factors of chunk number `chunk`.
  void loadChunk(unsigned number, Staging &staging, mlir::Value chunk);
  /// Brings what was loaded into shared memory.
  void storeChunk(unsigned number, const Staging &staging, mlir::Value buffer);

  /// Terms of which the operands lie in shared memory at a time.
  static constexpr int64_t depth = 16;
  /// Of what is computed and what comes next.
  static constexpr int64_t buffers = 2;

  DefinitionOpInterface product;         ///< What is computed.
  plan::PartsOp parts;                   ///< If parts of it are computed, these.
  Side sides[2];                         ///< Neighbouring threads have neighbouring elements of the second one.
  llvm::SmallVector<unsigned> batch;     ///< Result loops of which a tile has one iteration.
  int64_t blocks = 1;                    ///< How many tiles there were if each took a whole block of both sides.
  int64_t chunks = 1;                    ///< How often terms go into shared memory for a tile, if no block shares them.
  llvm::SmallVector<TermLoop> nearTerms; ///< Loops along which the terms in shared memory are neighbours.
  llvm::SmallVector<TermLoop> farTerms;  ///< The others.
  mlir::Type termType;                   ///< Of numbers of terms.
  mlir::Value numNear, numFar;           ///< Iterations of both.
  llvm::SmallVector<mlir::Value> tileCounts;
  int64_t notFinite = 0; ///< In shared memory, of each buffer, whether a factor was infinite or not a number.
  mlir::Value sum;       ///< Of the element that is being stored.
  mlir::Value runBegin;  ///< The innermost coordinate of that element, if a run of elements begins there.
};

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_MAPPING_PRODUCTMAPPING_H
