//===- WitnessReads.cpp - Records what operations read and write ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates operations as each rank does, and checks that what they read is what the rank holds.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Mesh.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/IR/Matchers.h"

#include <random>

namespace dovetail {
#define GEN_PASS_DEF_WITNESSREADS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::Interval;

namespace {

/// What one rank has of an operation.
struct RankView {
  int rank;
  Box loops;                  ///< The ranges that it runs of the loops but taps.
  SmallVector<Box> operands;  ///< What it holds.
  SmallVector<Interval> part; ///< Of the ranges of reductions, those that are gone through now.
};

/// Gives operations elements that nobody knows, unless they are constants, or indices of lookups, which are anywhere;
/// and records where they are.
class RecordingSource : public ElementSource {
public:
  RecordingSource(SplitOpInterface op, const Definition &definition, ElementBuilder &builder, RankView &view,
                  std::mt19937 &random)
      : op(op), definition(definition), builder(builder), view(view), random(random) {}

  Value read(unsigned operand, ArrayRef<Value> index) override;
  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    Interval range{0, definition.loops[loop].extent};
    if (loop >= definition.resultRank && definition.loops[loop].kind != LoopKind::Tap)
      range = view.part[loop - definition.resultRank];
    else if (definition.isLine(loop))
      range = view.loops[loop];
    return {builder.index(range.lo), builder.index(range.hi)};
  }

  /// What is wrong with a read; empty if nothing is.
  std::string problem;

private:
  SplitOpInterface op;
  const Definition &definition;
  ElementBuilder &builder;
  RankView &view;
  std::mt19937 &random;
};

/// Records which elements of results are written.
class RecordingSink : public ElementSink {
public:
  RecordingSink(SplitOpInterface op, ElementBuilder &builder, RankView &view) : op(op), builder(builder), view(view) {}

  void write(unsigned result, ArrayRef<Value> index, Value element) override;
  Value readBack(unsigned result, ArrayRef<Value> index) override;
  Value createScratch(Type, int64_t) override { return {}; }
  Value loadScratch(Value, Type type, Value) override;
  void storeScratch(Value, Value, Value) override {}

  /// For each result the elements that were written.
  std::set<std::pair<unsigned, std::vector<int64_t>>> written;
  std::string problem;

private:
  SplitOpInterface op;
  ElementBuilder &builder;
  RankView &view;
};

struct WitnessReads : MeshPass<dovetail::impl::WitnessReadsBase<WitnessReads>> {
  using MeshPass::MeshPass;

  LogicalResult run(MeshOp) override;
  LogicalResult check(SplitOpInterface op);
  LogicalResult check(SplitOpInterface op, const Definition &definition, RankView &view);
  /// Goes through one line, or one element, at `loops` of the result.
  LogicalResult checkAt(SplitOpInterface op, const Definition &definition, RankView &view, ArrayRef<int64_t> loops);

  std::mt19937 random;
};

} // namespace

/// A value that nobody knows.
static Value getUnknown(ElementBuilder &builder, Type type) {
  return builder.getBuilder().getBlock()->addArgument(ElementBuilder::scalarType(type), builder.getLoc());
}

static std::string describe(ArrayRef<Value> index) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(index, stream, [&](Value coordinate) {
    if (std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate))
      stream << *constant;
    else
      stream << "any";
  });
  return text;
}

/// Whether an element at `index`, coordinates of which may be unknown, is surely in `box`, a part of `shape`.
static bool isSurelyIn(ArrayRef<Value> index, const Box &box, ArrayRef<int64_t> shape) {
  for (auto [dim, coordinate] : llvm::enumerate(index)) {
    std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate);
    Interval needed = constant ? Interval{*constant, *constant + 1} : Interval{0, shape[dim]};
    if (!box[dim].contains(needed))
      return false;
  }
  return true;
}

Value RecordingSource::read(unsigned operand, ArrayRef<Value> index) {
  auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
  if (problem.empty() && !isSurelyIn(index, view.operands[operand], type.getShape()))
    problem = "reads element (" + describe(index) + ") of operand " + std::to_string(operand) + ", of which rank " +
              std::to_string(view.rank) + " holds " + view.operands[operand].str();
  DenseElementsAttr constant;
  SmallVector<uint64_t> position;
  for (Value coordinate : index)
    position.push_back(ElementBuilder::getConstantIndex(coordinate).value_or(0));
  bool isKnown = llvm::all_of(index, [](Value c) { return ElementBuilder::getConstantIndex(c).has_value(); });
  Value source = op->getOperand(operand);
  while (auto reshard = source.getDefiningOp<ReshardOp>())
    source = reshard.getOperand();
  if (isKnown && problem.empty() && matchPattern(source, m_Constant(&constant)) &&
      isa<IntegerType>(type.getElementType()))
    return builder.constantInt(ElementBuilder::scalarType(type.getElementType()),
                               constant.getValues<APInt>()[position].getSExtValue());
  for (unsigned loop : definition.getLookups())
    if (definition.reads[definition.loops[loop].index].operand == operand) {
      // In range, or not quite.
      int64_t extent = definition.loops[loop].extent;
      if (isa<FloatType>(type.getElementType())) {
        // A position, or one as a fraction.
        double scale = random() % 2 == 0 ? 1 : static_cast<double>(extent);
        std::uniform_real_distribution<double> anywhere(-1.25, 1.25);
        return builder.constant(type.getElementType(), scale * anywhere(random));
      }
      int64_t index = std::uniform_int_distribution<int64_t>(-extent - 1, extent)(random);
      return builder.constantInt(ElementBuilder::scalarType(type.getElementType()),
                                 llvm::SignExtend64(index, type.getElementTypeBitWidth()));
    }
  return getUnknown(builder, type.getElementType());
}

void RecordingSink::write(unsigned result, ArrayRef<Value> index, Value) {
  Box own = view.loops;
  std::vector<int64_t> position;
  for (auto [dim, coordinate] : llvm::enumerate(index)) {
    std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate);
    // Where data decide, the guard around this asks for what the rank has.
    if (!constant)
      return;
    if (problem.empty() && !own[dim].contains({*constant, *constant + 1}))
      problem = "writes element (" + describe(index) + ") of result " + std::to_string(result) + ", which rank " +
                std::to_string(view.rank) + " does not compute";
    position.push_back(*constant);
  }
  written.insert({result, std::move(position)});
}

Value RecordingSink::readBack(unsigned result, ArrayRef<Value>) {
  return getUnknown(builder, getElementTypeOrSelf(op->getResult(result).getType()));
}

Value RecordingSink::loadScratch(Value, Type type, Value) { return getUnknown(builder, type); }

LogicalResult WitnessReads::checkAt(SplitOpInterface op, const Definition &definition, RankView &view,
                                    ArrayRef<int64_t> loops) {
  Block scratch;
  OpBuilder ops(op.getContext());
  ops.setInsertionPointToStart(&scratch);
  ElementBuilder builder(ops, op.getLoc(), /*unrollLoops=*/true);
  RecordingSource source(op, definition, builder, view, random);
  RecordingSink sink(op, builder, view);
  SmallVector<Value> coordinates;
  for (int64_t loop : loops)
    coordinates.push_back(builder.index(loop));
  if (definition.lines.empty()) {
    emitElement(op, definition, builder, coordinates, source);
  } else {
    for (unsigned loop : definition.lines)
      coordinates[loop] = {};
    LineBuilder line(builder, op, definition, coordinates, source, sink);
    op.emitLine(line);
    size_t expected = op->getNumResults();
    for (unsigned loop : definition.lines)
      expected *= view.loops[loop].size();
    if (sink.problem.empty() && sink.written.size() < expected)
      sink.problem = "writes " + std::to_string(sink.written.size()) + " elements of a line of " +
                     std::to_string(expected) + " on rank " + std::to_string(view.rank);
  }
  for (const std::string &problem : {source.problem, sink.problem})
    if (!problem.empty())
      return op->emitError(problem);
  return success();
}

LogicalResult WitnessReads::check(SplitOpInterface op, const Definition &definition, RankView &view) {
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    if (view.loops[dim].empty())
      return success();
  // All places, or the corners and some in between.
  for (int64_t sample = 0; sample < samples; ++sample) {
    SmallVector<int64_t> loops;
    for (unsigned dim = 0; dim < definition.resultRank; ++dim) {
      Interval range = view.loops[dim];
      bool isCorner = sample < int64_t(1) << std::min(definition.resultRank, 5u);
      int64_t offset = isCorner ? (sample >> (dim % 5) & 1) * (range.size() - 1)
                                : std::uniform_int_distribution<int64_t>(0, range.size() - 1)(random);
      loops.push_back(range.lo + offset);
    }
    // Of reductions, what comes first and what comes last.
    constexpr int64_t maxTerms = 3;
    for (bool first : {true, false}) {
      view.part.clear();
      for (unsigned loop = definition.resultRank; loop < static_cast<unsigned>(view.loops.rank()); ++loop) {
        Interval range = view.loops[loop];
        // Nothing goes through a lookup.
        int64_t count = definition.loops[loop].isLookup() ? range.size() : std::min(range.size(), maxTerms);
        view.part.push_back(first ? Interval{range.lo, range.lo + count} : Interval{range.hi - count, range.hi});
      }
      if (failed(checkAt(op, definition, view, loops)))
        return failure();
    }
  }
  return success();
}

LogicalResult WitnessReads::check(SplitOpInterface op) {
  FailureOr<LoopShardings> shardings = readLoopShardings(op);
  if (failed(shardings))
    return failure();
  Definition definition = op.getDefinition();
  layout::Sharding split = toLayout(*shardings, mesh);
  SmallVector<int64_t> extents = getExtents(op.getRelation().loops);
  for (int rank = 0; rank < mesh.numRanks(); ++rank) {
    RankView view{rank, split.boxOf(mesh, extents, rank), {}, {}};
    for (Value operand : op->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType());
      view.operands.push_back(toLayout(getSharding(type), mesh, type.getRank()).boxOf(mesh, type.getShape(), rank));
    }
    if (failed(check(op, definition, view)))
      return failure();
  }
  return success();
}

LogicalResult WitnessReads::run(MeshOp) {
  random.seed(static_cast<uint32_t>(seed));
  WalkResult result = getOperation().walk(
      [&](SplitOpInterface op) { return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
  return failure(result.wasInterrupted());
}
