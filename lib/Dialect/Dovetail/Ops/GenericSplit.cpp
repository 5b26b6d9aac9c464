//===- GenericSplit.cpp - How generics are divided ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how GenericOp gives way to generics of parts and one that combines them, where only its own regions can.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "GenericRegions.h"
#include "Restarts.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;
using layout::Interval;

/// An access with other expressions for its loops.
static SmallVector<AccessDim> substitute(ArrayRef<AccessDim> dims, ArrayRef<IndexExpr> replacements) {
  SmallVector<AccessDim> replaced(dims);
  for (AccessDim &dim : replaced)
    dim.index = dim.index.substitute({replacements.data(), replacements.size()});
  return replaced;
}

static bool dependsOn(const Access &read, unsigned loop) {
  return llvm::any_of(read.dims, [&](const AccessDim &dim) { return dim.index.dependsOn(loop); });
}

/// Whether terms of `loop` can be read by parts of it. Indices then have an unknown value in its place, and code cannot
/// ask whether there is an element.
static bool canBeParts(GenericOp op, unsigned loop) {
  const Definition &definition = op.getStatement().getDefinition();
  SmallVector<Interval> ranges = definition.getRanges();
  for (const Access &read : definition.reads)
    for (auto [number, dim] : llvm::enumerate(read.dims)) {
      int64_t extent = cast<RankedTensorType>(op.getOperand(read.operand).getType()).getDimSize(number);
      bool isInside = dim.border != layout::Border::None || Interval{0, extent}.contains(dim.need(ranges));
      if (dim.index.dependsOn(loop) && (dim.divisor != 1 || !isInside))
        return false;
    }
  bool isMoved = false;
  op->walk([&](Operation *code) {
    auto loops = code->getAttrOfType<ArrayAttr>("loops");
    if (isa<ReadOp, InsideOp, PositionOp>(code))
      isMoved |=
          llvm::is_contained(loops.getAsRange<StringAttr>(), StringAttr::get(op.getContext(), op.getNames()[loop]));
  });
  return !isMoved;
}

/// Whether what folds give can be made of parts elsewhere.
static bool finishesAnywhere(GenericOp op) {
  bool asks = false;
  op.getFinish().walk([&](Operation *code) { asks |= isa<ReadOp, InsideOp, PositionOp, BoundsOp>(code); });
  return !asks;
}

bool GenericOp::dividesTerms() {
  const Definition &definition = getStatement().getDefinition();
  if (!definition.isFold || !finishesAnywhere(*this))
    return false;
  for (auto [number, loop] : llvm::enumerate(definition.loops))
    if (loop.kind == LoopKind::Part ||
        (loop.kind == LoopKind::Reduction && !loop.reduction && !canBeParts(*this, number)))
      return false;
  return true;
}

namespace {
/// Makes of a generic others that have its regions.
class Divider {
public:
  Divider(OpBuilder &builder, GenericOp op)
      : builder(builder), op(op), definition(op.getStatement().getDefinition()), names(op.getNames()) {
    for (auto [number, type] : llvm::enumerate(op.getAccumulatorTypes()))
      stored.push_back(getStoredType(number, type));
  }

  /// Tensors of `shape` of the accumulators of terms, which `parts` reads: loops that are `divided` are of kind part
  /// there, and unknown values in indices.
  SmallVector<Value> createParts(const Definition &parts, ArrayRef<std::string> partNames, ArrayRef<int64_t> shape,
                                 ArrayRef<unsigned> divided);
  /// The results from `parts`, tensors of accumulators, which are read at `dims`; `loops` go through parts.
  SmallVector<Value> combine(ValueRange parts, ArrayRef<AccessDim> dims, ArrayRef<int64_t> loops);
  /// For each part of a scan along `axis` what those before it come to, from what each comes to.
  Value scanTotals(Value totals);
  /// The scan, which begins anew at `restarts`, from `starts`.
  Value continueScan(Value starts, ArrayRef<int64_t> restarts);

private:
  /// The type of tensors of accumulator number `number`.
  Type getStoredType(unsigned number, Type accumulator);
  void copy(Region &from, Region &to) {
    IRMapping mapping;
    from.cloneInto(&to, mapping);
  }
  void copyCombiner(GenericOp to) {
    copy(op.getInit(), to.getInit());
    copy(op.getCombine(), to.getCombine());
  }

  OpBuilder &builder;
  GenericOp op;
  const Definition &definition;
  SmallVector<std::string> names;
  SmallVector<Type> stored;
};
} // namespace

Type Divider::getStoredType(unsigned number, Type accumulator) {
  // Whether integers have a sign says how they are combined.
  if (op.getKind() && isa<IntegerType>(accumulator))
    return getElementTypeOrSelf(op.getResult(number).getType());
  return accumulator;
}

SmallVector<Value> Divider::createParts(const Definition &parts, ArrayRef<std::string> partNames,
                                        ArrayRef<int64_t> shape, ArrayRef<unsigned> divided) {
  SmallVector<Type> types =
      llvm::map_to_vector(stored, [&](Type type) -> Type { return RankedTensorType::get(shape, type); });
  auto generic = GenericOp::create(builder, op.getLoc(), types, op.getOperands(), parts, partNames, op.getKind());
  copyCombiner(generic);
  copy(op.getBody(), generic.getBody());
  copy(op.getBlockRegion(), generic.getBlockRegion());
  for (auto [from, to] : llvm::zip_equal(op.getPasses(), generic.getPasses()))
    copy(from, to);
  SmallVector<Type> accumulators = op.getAccumulatorTypes();
  // Results are accumulators: terms that a kind widens are so wide themselves.
  if (!generic.getBody().empty()) {
    OpBuilder::InsertionGuard guard(builder);
    Operation *end = generic.getBody().front().getTerminator();
    builder.setInsertionPoint(end);
    for (auto [operand, type] : llvm::zip_equal(end->getOpOperands(), accumulators))
      if (operand.get().getType() != type)
        operand.set(arith::ExtFOp::create(builder, op.getLoc(), type, operand.get()));
  }
  // Where indices had a loop they have an unknown value now, which is the loop.
  generic->walk([&](Operation *code) {
    if (!isa<ReadOp, PositionOp>(code))
      return;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(code);
    auto append = [&](auto read) {
      for (unsigned loop : divided)
        if (dependsOn(definition.reads[read.getNumber()], loop))
          read.getUnknownsMutable().append(
              IndexOp::create(builder, code->getLoc(), builder.getStringAttr(names[loop])).getResult());
    };
    if (auto read = dyn_cast<ReadOp>(code))
      append(read);
    else
      append(cast<PositionOp>(code));
  });
  generic.setFlags();
  return SmallVector<Value>(generic.getResults());
}

SmallVector<Value> Divider::combine(ValueRange parts, ArrayRef<AccessDim> dims, ArrayRef<int64_t> loops) {
  Definition combination;
  combination.resultRank = definition.resultRank;
  combination.loops.assign(definition.loops.begin(), definition.loops.begin() + definition.resultRank);
  SmallVector<std::string> loopNames(ArrayRef(names).take_front(definition.resultRank));
  for (auto [number, extent] : llvm::enumerate(loops)) {
    combination.addLoop(extent, LoopKind::Whole, std::nullopt);
    std::string name = "part" + std::to_string(number);
    while (llvm::is_contained(loopNames, name))
      name += "_";
    loopNames.push_back(name);
  }
  for (unsigned operand = 0; operand < parts.size(); ++operand)
    combination.addRead(operand).assign(dims.begin(), dims.end());
  Location loc = op.getLoc();
  auto generic = GenericOp::create(builder, loc, op->getResultTypes(), parts, combination, loopNames, op.getKind());
  copyCombiner(generic);
  copy(op.getFinish(), generic.getFinish());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&generic.getBody());
  SmallVector<Value> values;
  ArrayAttr here = builder.getArrayAttr({});
  for (auto [number, type] : llvm::enumerate(op.getAccumulatorTypes()))
    values.push_back(ReadOp::create(builder, loc, type, number, ValueRange(), here, ValueRange()));
  ReturnOp::create(builder, loc, values);
  generic.setFlags();
  return SmallVector<Value>(generic.getResults());
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<Value>> decomposeFold(OpBuilder &builder, GenericOp op, ArrayRef<DimShardingAttr> loops) {
  const Definition &definition = op.getStatement().getDefinition();
  unsigned rank = definition.resultRank;
  SmallVector<unsigned> divided;
  SmallVector<SmallVector<int64_t>> ends;
  for (auto [number, sharding] : llvm::enumerate(loops)) {
    const Loop &loop = definition.loops[number];
    if (number < rank || !mustDecompose(op, loop, sharding))
      continue;
    std::optional<SmallVector<int64_t>> starts = getRestarts(sharding, loop.extent);
    if (!starts)
      return failure();
    // Where one rank has all terms, there is nothing to combine.
    if (starts->empty())
      continue;
    divided.push_back(number);
    ends.push_back(getPartEnds(*starts, loop.extent));
  }
  if (divided.empty() || !op.dividesTerms())
    return failure();

  // Parts are numbered by further dimensions of the results.
  Definition parts;
  SmallVector<std::string> names = op.getNames(), partNames(ArrayRef(names).take_front(rank));
  SmallVector<int64_t> shape(op.getType().getShape()), counts;
  parts.loops.assign(definition.loops.begin(), definition.loops.begin() + rank);
  for (auto [loop, positions] : llvm::zip_equal(divided, ends)) {
    counts.push_back(static_cast<int64_t>(positions.size()) - 1);
    parts.loops.push_back({counts.back()});
    partNames.push_back(names[loop] + "_part");
    while (llvm::count(names, partNames.back()) > 0 || llvm::count(partNames, partNames.back()) > 1)
      partNames.back() += "_";
  }
  llvm::append_range(shape, counts);
  parts.resultRank = shape.size();
  for (unsigned number = rank; number < definition.loops.size(); ++number) {
    Loop &loop = parts.loops.emplace_back(definition.loops[number]);
    partNames.push_back(names[number]);
    if (const unsigned *place = llvm::find(divided, number); place != divided.end()) {
      loop.kind = LoopKind::Part;
      loop.dim = rank + (place - divided.begin());
      loop.ends = ends[place - divided.begin()];
    }
  }
  for (const Access &read : definition.reads) {
    SmallVector<IndexExpr> replacements;
    unsigned unknown = countUnknowns(read);
    for (unsigned number = 0; number < definition.loops.size(); ++number) {
      const unsigned *place = llvm::find(divided, number);
      replacements.push_back(Definition::at(number < rank ? number : number + divided.size()));
      if (place == divided.end() || !dependsOn(read, number))
        continue;
      ArrayRef<int64_t> positions = ends[place - divided.begin()];
      std::vector<int64_t> first(positions.begin(), positions.end() - 1), last(positions.begin() + 1, positions.end());
      for (int64_t &position : last)
        --position;
      replacements.back() =
          IndexExpr::unknown(unknown++, Definition::at(rank + (place - divided.begin())), first, last);
    }
    parts.addRead(read.operand) = substitute(read.dims, replacements);
  }
  parts.passes = definition.passes;

  Divider divider(builder, op);
  SmallVector<Value> values = divider.createParts(parts, partNames, shape, divided);
  SmallVector<AccessDim> dims;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    dims.push_back(Definition::at(dim));
  return divider.combine(values, dims, counts);
}

SmallVector<Value> GenericOp::combineParts(OpBuilder &builder, ValueRange parts, int64_t dim) {
  SmallVector<AccessDim> dims;
  unsigned rank = getStatement().getDefinition().resultRank;
  for (unsigned number = 0; number < rank; ++number)
    dims.push_back(Definition::at(number == dim ? rank : number));
  int64_t count = cast<RankedTensorType>(parts.front().getType()).getDimSize(dim);
  return Divider(builder, *this).combine(parts, dims, count);
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

Value Divider::scanTotals(Value totals) {
  auto type = cast<RankedTensorType>(totals.getType());
  unsigned axis = definition.scan->loop;
  Definition scan = Definition::over(type);
  SmallVector<AccessDim> &dims = scan.addRead(0);
  for (unsigned dim = 0; dim < scan.resultRank; ++dim)
    dims.push_back(Definition::at(dim));
  scan.setScan({axis, {0, type.getDimSize(axis)}, definition.scan->isReversed, /*isExclusive=*/true});
  auto generic = GenericOp::create(builder, op.getLoc(), type, totals, scan, names, op.getKind());
  copyCombiner(generic);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&generic.getBody());
  Value element = ReadOp::create(builder, op.getLoc(), op.getAccumulatorTypes().front(), 0, ValueRange(),
                                 builder.getArrayAttr({}), ValueRange());
  ReturnOp::create(builder, op.getLoc(), element);
  return generic.getResult(0);
}

Value Divider::continueScan(Value starts, ArrayRef<int64_t> restarts) {
  Definition scan = definition;
  SmallVector<Value> operands(op.getOperands());
  operands.push_back(starts);
  scan.scan->start = scan.reads.size();
  scan.scan->restarts.assign(restarts.begin(), restarts.end());
  SmallVector<AccessDim> &dims = scan.addRead(operands.size() - 1);
  for (unsigned dim = 0; dim < scan.resultRank; ++dim)
    dims.push_back(dim == scan.scan->loop ? IndexExpr::unknown(0) : Definition::at(dim));
  auto generic = GenericOp::create(builder, op.getLoc(), op->getResultTypes(), operands, scan, names, op.getKind());
  copyCombiner(generic);
  copy(op.getFinish(), generic.getFinish());
  copy(op.getBody(), generic.getBody());
  return generic.getResult(0);
}

/// Each rank folds its parts, all know what these come to, and scan it for where theirs start.
static FailureOr<SmallVector<Value>> decomposeScan(OpBuilder &builder, GenericOp op, ArrayRef<DimShardingAttr> loops) {
  const Definition &definition = op.getStatement().getDefinition();
  const Scan &scan = *definition.scan;
  int64_t extent = definition.loops[scan.loop].extent;
  SmallVector<Type> accumulators = op.getAccumulatorTypes();
  // Ranks have parts of dimension `scan.loop` of the results: it numbers them. A part starts from one element.
  if (loops.empty() || scan.start || scan.restarts.size() > 2 || accumulators.size() != 1 || !canBeParts(op, scan.loop))
    return failure();
  std::optional<SmallVector<int64_t>> starts = getRestarts(loops[scan.loop], extent);
  if (!starts)
    return failure();
  SmallVector<int64_t> ends = getPartEnds(*starts, extent), shape(op.getType().getShape());
  shape[scan.loop] = static_cast<int64_t>(ends.size()) - 1;
  Definition parts;
  for (int64_t count : shape)
    parts.loops.push_back({count});
  parts.resultRank = shape.size();
  SmallVector<std::string> names = op.getNames();
  names.push_back(names[scan.loop]);
  do
    names[scan.loop] += "_part";
  while (llvm::count(names, names[scan.loop]) > 1);
  SmallVector<IndexExpr> own;
  for (unsigned loop = 0; loop < definition.loops.size(); ++loop)
    own.push_back(Definition::at(loop));
  unsigned part = parts.loops.size();
  parts.loops.push_back({extent, LoopKind::Part});
  parts.loops[part].dim = scan.loop;
  parts.loops[part].ends = ends;
  std::vector<int64_t> first(ends.begin(), ends.end() - 1), last(ends.begin() + 1, ends.end());
  for (int64_t &position : last)
    --position;
  for (const Access &read : definition.reads) {
    SmallVector<IndexExpr> replacements(own);
    replacements[scan.loop] = IndexExpr::unknown(countUnknowns(read), own[scan.loop], first, last);
    parts.addRead(read.operand) = substitute(read.dims, replacements);
  }
  Divider divider(builder, op);
  Value totals = divider.createParts(parts, names, shape, scan.loop).front();
  return SmallVector<Value>{divider.continueScan(divider.scanTotals(totals), ends)};
}

FailureOr<SmallVector<Value>> GenericOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  if (getStatement().getDefinition().scan)
    return decomposeScan(builder, *this, loops);
  return decomposeFold(builder, *this, loops);
}
