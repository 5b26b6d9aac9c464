//===- Definition.h - What an operator states about itself -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Definition, the loops of an operation and where it reads its operands, from which needs, kernels and folding
// follow, and BodyBuilder, with which an operation emits what it computes from the elements that it reads.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITION_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITION_H

#include "dovetail/Calls/ContractionRoles.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementBuilder.h"
#include "dovetail/Dialect/Dovetail/Definition/Enums.h"
#include "dovetail/Layout/IndexExpr.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace dovetail {

/// What a loop is for, and what splitting it means.
enum class LoopKind {
  /// A dimension of the result: every rank computes its part.
  Parallel,
  /// A loop over which terms are combined: every rank gets a partial result or, where exchanges cannot combine those
  /// (`Loop::reduction`), may be split after the operation has been decomposed.
  Reduction,
  /// A loop over which terms are combined, those of one part of a dimension (`Loop::ends`). Never split: ranks divide
  /// parts.
  Part,
  /// A dimension of the result, or a loop over which terms are combined, that cannot be split.
  Whole,
  /// A loop over the elements of a window, for each term. Never split: every rank goes through all of it.
  Tap,
  /// A dimension of the result along which terms accumulate (`Definition::scan`). May be split where the accumulation
  /// begins anew; elsewhere after the operation has been decomposed.
  Scan
};

/// One loop of an operation, over [0, extent).
struct Loop {
  int64_t extent;
  LoopKind kind = LoopKind::Parallel;
  /// For reductions, how results of ranks combine; none: only the operation's own `emitCombine` can say.
  std::optional<ReduceKind> reduction = ReduceKind::Sum;
  /// Of a lookup, the number of the read that gives the index. If its own last index is unknown, lookups take turns.
  int index = -1;
  /// Of kind `Part`: iteration p of loop `dim`, of the result, goes through [ends[p], ends[p + 1]), which may be empty.
  unsigned dim = 0;
  llvm::SmallVector<int64_t> ends = {};

  /// A lookup is a loop of which no code goes through but the iterations that data name: one, by an index, or several,
  /// by a position that is no integer. Where it is split, ranks combine what those that they have give by `reduction`
  /// (`Owner`: the one rank that has it): ranks need no more of what is indexed than they have of the loop.
  bool isLookup() const { return index >= 0; }

  bool operator==(const Loop &other) const = default;
};

/// The extent of each.
llvm::SmallVector<int64_t> getExtents(llvm::ArrayRef<Loop> loops);

/// Where an operation reads one of its operands: an element for each iteration, or none where an index leaves the
/// tensor.
struct Access {
  unsigned operand;
  llvm::SmallVector<layout::AccessDim> dims;

  bool operator==(const Access &other) const = default;
};

/// How terms accumulate along a loop, of kind `Scan`: an element of the result is what all terms from the last restart
/// up to it come to.
struct Scan {
  unsigned loop = 0;
  /// Where the accumulation begins anew: ascending, from 0 to the loop's extent.
  llvm::SmallVector<int64_t> restarts;
  /// Goes from the last term to the first.
  bool isReversed = false;
  /// Leaves out the term of the element itself.
  bool isExclusive = false;
  /// The read of what accumulators start from in place of `emitInit`: the number of the restart is its unknown 0.
  std::optional<unsigned> start = std::nullopt;

  bool operator==(const Scan &other) const = default;
};

/// An index that is read from data.
struct DataIndex {
  unsigned loop; ///< The lookup, or dimension of the result, that it is of.
  unsigned read; ///< The read that gives it.
  /// The last index of that read, where elements take turns at several loops.
  std::optional<unsigned> component = std::nullopt;
};

/// One of the ways through a block of terms: accumulators of elements of this type, combined by this kind.
struct FoldPass {
  ReduceKind kind;
  mlir::Type elementType;

  bool operator==(const FoldPass &other) const = default;
};

/// Whether what accumulates in `piece` depends on nothing outside of it.
bool isBetweenRestarts(const Scan &scan, layout::Interval piece);

/// The loops of an operation and its accesses. Results have one shape, and are written at the indices of the first
/// loops, one for each of its dimensions. The others are reductions, then taps.
struct Definition {
  llvm::SmallVector<Loop> loops;
  llvm::SmallVector<Access> reads;
  unsigned resultRank = 0;
  /// The body gives terms, which are folded over the reductions and taps (`emitInit`, `emitCombine`, `emitFinish`).
  /// Iterations at which a read has no element count nothing. Otherwise it gives elements of the result.
  bool isFold = false;
  /// A fold that goes through terms more than once, a block at a time: what a pass finds (`emitPass`, `emitFound`) is
  /// known to those after it, and all of it makes the accumulators of the block (`emitBlock`). Its body gives no terms.
  llvm::SmallVector<FoldPass> passes;
  /// A fold that adds, from zero, products of the elements of two reads, of operands 0 and 1, as accumulators are:
  /// there is no other body.
  bool isProduct = false;
  /// The body gives terms, which accumulate along a loop (`emitInit`, `emitCombine`, `emitFinish`).
  std::optional<Scan> scan;
  /// An access of the result that depends on data: it has the elements of the read of operand 0 at its own loops, but
  /// for those that are written over. For each iteration of the taps the body gives an element, read number 1 unless it
  /// says otherwise, and `emitCombine` makes one of what is there and the element. What lies outside of the result, or
  /// of what a rank computes of it, is not written.
  std::optional<llvm::SmallVector<layout::AccessDim>> writes;
  /// Of `writes`, the number of the read that gives their unknown indices: one for each iteration or, if its own last
  /// index is unknown, one for each of them.
  unsigned indexRead = 0;
  /// The loops of the result that the operation goes through itself, a *line* at a time, ascending: `emitLine` writes
  /// all elements of the line. None: elements are asked for one by one.
  llvm::SmallVector<unsigned> lines;

  /// Parallel loops over the dimensions of `result`, and no reads.
  static Definition over(mlir::RankedTensorType result);

  /// Adds a loop, and returns its index. Taps come last.
  layout::IndexExpr addLoop(int64_t extent, LoopKind kind, std::optional<ReduceKind> reduction = ReduceKind::Sum);
  /// Adds a loop over the terms of parts, of which loop `dim` of the result has one for each iteration, and returns the
  /// index of the terms: its unknown number `unknown` is the loop added. `ends`: see `Loop`.
  layout::IndexExpr addPartLoop(unsigned dim, llvm::ArrayRef<int64_t> ends, unsigned unknown);
  /// Adds a lookup, a loop whose iteration the element at read number `index` names. That read has to come.
  layout::IndexExpr addLookup(int64_t extent, unsigned index);
  /// The index of the loop over dimension `dim` of the result.
  static layout::IndexExpr at(unsigned dim) { return layout::IndexExpr::loop(static_cast<int>(dim)); }
  /// Adds a read and returns its dimensions, none so far.
  llvm::SmallVector<layout::AccessDim> &addRead(unsigned operand) {
    return reads.emplace_back(Access{operand, {}}).dims;
  }

  /// Of a product, the role of each loop.
  calls::ContractionRoles getRoles() const;

  /// Makes loop `scan.loop` one along which terms accumulate.
  void setScan(Scan scan);
  /// The loop is one of `lines`.
  bool isLine(unsigned loop) const { return llvm::is_contained(lines, loop); }

  /// The numbers of the loops that are lookups.
  llvm::SmallVector<unsigned, 1> getLookups() const;
  /// Those of lookups, and of `writes`.
  llvm::SmallVector<DataIndex, 1> getDataIndices() const;

  /// Whether an element is one term, computed apart from others, which reads each operand at most once.
  bool isCheap() const;

  unsigned getNumTaps() const;
  unsigned getNumReductions() const { return loops.size() - resultRank - getNumTaps(); }
  /// [0, extent) of each loop; [0, 1) where that is empty.
  llvm::SmallVector<layout::Interval> getRanges() const;

  bool operator==(const Definition &other) const = default;
};

/// Where emitted code finds its operands.
class ElementSource {
public:
  virtual ~ElementSource() = default;

  /// The element of operand number `operand` at global coordinates `index`, a signless scalar. The coordinates must be
  /// inside the tensor, and inside the box that the operation's definition says is needed.
  virtual mlir::Value read(unsigned operand, llvm::ArrayRef<mlir::Value> index) = 0;

  /// The range of loop number `loop` that this rank executes: all of it unless the loop is split.
  virtual std::pair<mlir::Value, mlir::Value> getLoopRange(unsigned loop) = 0;

  /// Says that the index `given`, of type index, for the lookup `loop` is out of range where `isWrong` (i1) holds, and
  /// that this rank is the one to say so.
  virtual void checkIndex(unsigned loop, mlir::Value isWrong, mlir::Value given) {}
};

/// With what an operation emits its body: the loops' coordinates, and the elements at its accesses. Emitted code goes
/// through `elements`, which folds: with constant coordinates and operands it yields constants. Short-lived.
///
/// Its questions about reads and lookups are virtual, so that a body can be recorded in place of being computed.
class BodyBuilder {
public:
  /// `loops`: global coordinates, of type index, of the loops, of those that are known so far (null for others).
  BodyBuilder(ElementBuilder &elements, mlir::Operation *op, const Definition &definition,
              llvm::ArrayRef<mlir::Value> loops, ElementSource &source);
  virtual ~BodyBuilder() = default;

  ElementBuilder &elements;

  const Definition &getDefinition() const { return definition; }
  mlir::Value getLoop(unsigned loop) const { return loops[loop]; }
  llvm::ArrayRef<mlir::Value> getLoops() const { return loops; }
  /// For bodies that go through loops themselves.
  void setLoop(unsigned loop, mlir::Value coordinate) { loops[loop] = coordinate; }
  std::pair<mlir::Value, mlir::Value> getRange(unsigned loop) { return source.getLoopRange(loop); }

  /// i1: read number `read` has an element. Only what some iteration can violate is tested. `dim`: in this dimension.
  virtual mlir::Value isInside(unsigned read);
  virtual mlir::Value isInside(unsigned read, unsigned dim);
  /// The element at read number `read`, which there must be. `unknowns`: the values of the unknown ones in its indices.
  virtual mlir::Value read(unsigned read, llvm::ArrayRef<mlir::Value> unknowns = {});
  /// As above, or `otherwise` where there is none.
  mlir::Value readOr(unsigned read, llvm::function_ref<mlir::Value()> otherwise);
  /// Reads the index of the lookup `loop`, tells the source where it is out of range, and sets the loop to the
  /// iteration that it names: negative ones count from the end, and what is out of range is clamped. Returns whether
  /// (i1) this rank has that iteration.
  virtual mlir::Value lookUp(unsigned loop);
  /// An index, of type index, the position that it means, negative ones counted from the end, and whether (i1) that is
  /// out of range.
  struct Position {
    mlir::Value given, position, isWrong;
  };
  Position readPosition(const DataIndex &index);
  /// Tells the source that an index is out of range, where (i1) `reports` holds.
  void report(const DataIndex &index, const Position &found, mlir::Value reports);
  /// Where that is.
  virtual llvm::SmallVector<mlir::Value> getIndex(unsigned read, llvm::ArrayRef<mlir::Value> unknowns = {});

private:
  /// The value of an index, and where it then is in the tensor.
  mlir::Value emit(const layout::IndexExpr &index, llvm::ArrayRef<mlir::Value> unknowns);
  mlir::Value emitPosition(const layout::AccessDim &dim, llvm::ArrayRef<mlir::Value> unknowns);
  /// What is known of the coordinates.
  llvm::SmallVector<layout::Interval> getKnownRanges() const;

  mlir::Operation *op;
  const Definition &definition;
  llvm::SmallVector<mlir::Value> loops;
  ElementSource &source;
};

/// The terms of a loop of kind `Part` for iteration `part` of its dimension: [lo, hi).
std::pair<mlir::Value, mlir::Value> emitPartRange(ElementBuilder &builder, const Loop &loop, mlir::Value part);
/// What pass number `pass` starts from, and what it makes of two values.
mlir::Value emitPassInit(ElementBuilder &builder, const FoldPass &pass);
mlir::Value emitPassCombine(ElementBuilder &builder, const FoldPass &pass, mlir::Value a, mlir::Value b);
/// The accumulators of a block of `count` (of type index) terms, which a fold goes through in passes. `emitFold` gives
/// what pass number `pass` makes of all terms of the block, which know what those before it have `found`.
llvm::SmallVector<mlir::Value>
emitPasses(mlir::Operation *op, const Definition &definition, ElementBuilder &builder, mlir::Value count,
           llvm::function_ref<mlir::Value(unsigned pass, mlir::ValueRange found)> emitFold);
/// The term of a fold at the coordinates of all loops but taps, over which it is folded here.
llvm::SmallVector<mlir::Value> emitTerm(mlir::Operation *op, const Definition &definition, ElementBuilder &builder,
                                        llvm::ArrayRef<mlir::Value> loops, ElementSource &source);
/// The elements of the results at `index`: see `DefinitionOpInterface::emitElement`.
llvm::SmallVector<mlir::Value> emitElement(mlir::Operation *op, const Definition &definition, ElementBuilder &builder,
                                           llvm::ArrayRef<mlir::Value> index, ElementSource &source);

/// The iteration of a loop of `extent` iterations, not 0, that a constant index names, as `BodyBuilder::lookUp` finds
/// it; none if it is out of range, unless it is to be clamped.
std::optional<int64_t> lookUp(const llvm::APInt &index, bool isUnsigned, int64_t extent, bool clamp = false);

// What most operations do.

/// The element of the only read, or of the first one of several at the iterations of all lookups (zero bits where this
/// rank does not have them) or, where the definition is a product, that of both, as accumulators are.
llvm::SmallVector<mlir::Value> emitDefaultBody(mlir::Operation *op, BodyBuilder &body);
/// Zero, as accumulators are.
llvm::SmallVector<mlir::Value> emitZero(mlir::Operation *op, ElementBuilder &builder);
/// The accumulator as an element of the result.
mlir::Value emitNarrowed(mlir::Operation *op, BodyBuilder &body, mlir::Value accumulator);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_DEFINITION_H
