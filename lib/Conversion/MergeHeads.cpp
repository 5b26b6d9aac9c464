//===- MergeHeads.cpp - Leave heads of attention where they are -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes attention read and write heads that follow each other in columns, in place of what moves them apart and back.
//
//===----------------------------------------------------------------------===//

#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

namespace dovetail {
#define GEN_PASS_DEF_MERGEHEADS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

namespace {
/// Where the heads of an operand are.
struct HeadsPlace {
  Value source;
  int64_t offset = -1; ///< As in `dovetail.attention`.
};

struct MergeHeads : LibraryPass<dovetail::impl::MergeHeadsBase<MergeHeads>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override;
};
} // namespace

/// The columns where heads of `value`, [batch..., heads, rows, columns], begin in `source`, which is read at `dims`, in
/// the loops over the dimensions of `value`: heads have to follow each other in its last dimension.
static std::optional<int64_t> findOffset(Value value, Value source, ArrayRef<IndexExpr> dims) {
  ArrayRef<int64_t> shape = shapeOf(value), from = shapeOf(source);
  int rank = static_cast<int>(shape.size()), head = rank - 3;
  if (from.size() + 1 != shape.size())
    return std::nullopt;
  auto isAt = [&](int dim, int loop) {
    return shape[loop] == from[dim] && (from[dim] == 1 || dims[dim] == IndexExpr::loop(loop));
  };
  for (int dim = 0; dim < head; ++dim)
    if (!isAt(dim, dim))
      return std::nullopt;
  // Rows may be a part of those of the source only where that is all of them.
  if (!isAt(head, rank - 2))
    return std::nullopt;
  IndexExpr rest = dims.back() - IndexExpr(dims.back().getConstant());
  for (auto [loop, factor] : {std::pair(head, shape[rank - 1]), std::pair(rank - 1, int64_t(1))}) {
    std::optional<int64_t> actual = rest.getFactor(loop);
    if (!actual || (shape[loop] > 1 && *actual != factor))
      return std::nullopt;
    rest = rest - IndexExpr::loop(loop) * *actual;
  }
  // Loops of one iteration are at 0.
  for (int loop = 0; loop < rank; ++loop)
    if (shape[loop] == 1)
      if (std::optional<int64_t> factor = rest.getFactor(loop))
        rest = rest - IndexExpr::loop(loop) * *factor;
  if (rest != IndexExpr() || dims.back().getConstant() < 0)
    return std::nullopt;
  return dims.back().getConstant();
}

/// Follows `value` through what moves elements, to the farthest source whose columns have the heads.
static HeadsPlace findHeads(Value value) {
  HeadsPlace place{value};
  SmallVector<IndexExpr> dims;
  for (unsigned dim = 0; dim < shapeOf(value).size(); ++dim)
    dims.push_back(Definition::at(dim));
  Value source = value;
  while (isa_and_present<TransposeOp, ReshapeOp, SliceOp>(source.getDefiningOp()) && source.getParentBlock()) {
    auto op = cast<SplitOpInterface>(source.getDefiningOp());
    Definition definition = op.getDefinition();
    SmallVector<IndexExpr> next;
    for (const layout::AccessDim &dim : definition.reads.front().dims)
      next.push_back(dim.index.substitute(dims));
    dims = std::move(next);
    source = op->getOperand(0);
    if (std::optional<int64_t> offset = findOffset(value, source, dims))
      place = {source, *offset};
  }
  return place;
}

/// The reshape that merges the heads and columns of what a transpose made of the result of `op`; null if nothing else
/// but that is done with it.
static ReshapeOp findMerge(AttentionOp op) {
  int64_t rank = op.getType().getRank();
  if (rank < 3 || !op->hasOneUse())
    return {};
  Value merged = op;
  if (auto transpose = dyn_cast<TransposeOp>(*op->user_begin())) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(rank));
    std::swap(order[rank - 3], order[rank - 2]);
    if (!llvm::equal(transpose.getPermutation(), order) || !transpose->hasOneUse())
      return {};
    merged = transpose;
  } else if (shapeOf(op)[rank - 3] != 1 && shapeOf(op)[rank - 2] != 1) {
    return {};
  }
  auto reshape = dyn_cast<ReshapeOp>(*merged.user_begin());
  ArrayRef<int64_t> shape = shapeOf(op);
  SmallVector<int64_t> wanted(shape.drop_back(3));
  wanted.append({shape[rank - 2], shape[rank - 3] * shape[rank - 1]});
  return reshape && shapeOf(reshape) == ArrayRef(wanted) ? reshape : ReshapeOp();
}

/// Whether ranks have what `op` reads.
static bool hasOperands(AttentionOp op, MeshOp mesh) {
  FailureOr<LoopShardings> loops = readLoopShardings(op);
  if (failed(loops))
    return false;
  OpRelation relation = cast<SplitOpInterface>(*op).getRelation();
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    ShardingAttr need =
        mesh ? getNeededSharding(relation, number, type, *loops, FlatSymbolRefAttr::get(mesh)) : ShardingAttr();
    if (isPartial(operand) || (mesh && !covers(getSharding(operand), need, type, mesh.getMesh())))
      return false;
  }
  return true;
}

static void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<TransposeOp, ReshapeOp, SliceOp>(op) || !op->use_empty())
    return;
  Value operand = op->getOperand(0);
  op->erase();
  eraseUnused(operand);
}

/// Replaces `op` and what merges its heads.
static void mergeHeads(AttentionOp op, MeshOp mesh) {
  ReshapeOp merge = findMerge(op);
  if (!merge)
    return;
  int64_t head = op.getType().getRank() - 3;
  int64_t heads = shapeOf(op)[head], shared = shapeOf(op.getKey())[head];
  if (shared != shapeOf(op.getValue())[head] || shared == 0 || heads % shared != 0 ||
      op.getType().getNumElements() == 0)
    return;
  SmallVector<Value> operands(op->getOperands());
  SmallVector<int64_t> offsets;
  for (Value &operand : MutableArrayRef(operands).take_front(3)) {
    HeadsPlace place = findHeads(operand);
    operand = place.source;
    offsets.push_back(place.offset);
  }
  OpBuilder builder(merge);
  int64_t depth = shapeOf(op.getQuery()).back(), columns = shapeOf(op).back();
  auto merged = AttentionOp::create(builder, op.getLoc(), merge.getType(), operands[0], operands[1], operands[2],
                                    op.getMask(), op.getScaleAttr(), op.getFillAttr(),
                                    builder.getDenseI64ArrayAttr({heads, shared, depth, columns}),
                                    builder.getDenseI64ArrayAttr(offsets), /*restarts=*/DenseI64ArrayAttr());
  // Its keys are those of `op`, which no rank divides.
  if (auto loops = merge->getAttrOfType<LoopShardingsAttr>(kLoopsAttrName)) {
    LoopShardings all(loops.getLoops());
    all.push_back(DimShardingAttr::getUnsplit(builder.getContext()));
    merged->setAttr(kLoopsAttrName, LoopShardingsAttr::get(builder.getContext(), loops.getMesh(), all));
  }
  if (!hasOperands(merged, mesh)) {
    merged->erase();
    return;
  }
  merge.getResult().replaceAllUsesWith(merged.getResult());
  eraseUnused(merge);
  SmallVector<Value> before(op->getOperands());
  op->erase();
  llvm::for_each(before, eraseUnused);
}

LogicalResult MergeHeads::run(func::FuncOp function, const Libraries &callable) {
  auto module = function->getParentOfType<ModuleOp>();
  FailureOr<MeshOp> mesh = module ? getModuleMesh(module) : FailureOr<MeshOp>(MeshOp());
  if (failed(mesh))
    return failure();
  for (AttentionOp op : llvm::to_vector(function.getBody().front().getOps<AttentionOp>()))
    if (op.dividesTerms() && callable.findCall(op))
      mergeHeads(op, *mesh);
  return success();
}
