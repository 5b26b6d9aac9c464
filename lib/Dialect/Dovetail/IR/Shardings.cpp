//===- Shardings.cpp - Shardings of values and loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the shardings of an operation's values and loops are verified.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/DefinitionFaults.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace dovetail;

/// The mesh over which `what` of `op` is cut; an error if there is none.
static FailureOr<layout::Mesh> getMesh(Operation *op, StringRef what, FlatSymbolRefAttr name) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, name);
  if (!mesh)
    return op->emitOpError("has ") << what << " cut over mesh " << name << ", which the module does not have";
  return mesh.getMesh();
}

static LogicalResult verifyAxis(Operation *op, StringRef what, FlatSymbolRefAttr name, const layout::Mesh &mesh,
                                StringAttr axis) {
  if (mesh.axisIndex({axis.data(), axis.size()}))
    return success();
  return op->emitOpError("has ") << what << " cut over axis " << axis << ", which mesh " << name << " lacks";
}

/// Checks that the axes are there, and that each combination of their coordinates has a piece.
static LogicalResult verifyPieces(Operation *op, StringRef what, StringRef dimension, FlatSymbolRefAttr name,
                                  const layout::Mesh &mesh, ArrayRef<DimShardingAttr> dims) {
  for (auto [index, dim] : llvm::enumerate(dims)) {
    int64_t coordinates = 1;
    for (StringAttr axis : dim.getAxes()) {
      if (failed(verifyAxis(op, what, name, mesh, axis)))
        return failure();
      coordinates *= mesh.axisSize(*mesh.axisIndex({axis.data(), axis.size()}));
    }
    if (dim.isSplit() && dim.getNumPieces() != coordinates)
      return op->emitOpError("has ") << what << " with " << dim.getNumPieces() << " pieces" << dimension << index
                                     << ", whose axes have " << coordinates << " coordinates";
  }
  return success();
}

LogicalResult dovetail::verifyExtents(Operation *op, const Twine &what, Type type) {
  BoundedAttr bounds = getBounds(type);
  if (!bounds)
    return success();
  size_t dim =
      llvm::find_if(bounds.getCounts(), [](StringAttr count) { return !count.empty(); }) - bounds.getCounts().begin();
  return op->emitOpError("has ") << what << " of " << type << ", dimension " << dim << " of which is bounded by count "
                                 << bounds.getCounts()[dim]
                                 << "; extents that vary from run to run are not supported yet";
}

/// Checks one type of `op`, apart from its extents.
static LogicalResult verifyCuts(Operation *op, Type type) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding)
    return success();
  FailureOr<layout::Mesh> mesh = getMesh(op, "a value", sharding.getMesh());
  if (failed(mesh) ||
      failed(verifyPieces(op, "a value", " in dimension ", sharding.getMesh(), *mesh, sharding.getDims())))
    return failure();
  for (StringAttr axis : sharding.getPartialAxes())
    if (failed(verifyAxis(op, "a value", sharding.getMesh(), *mesh, axis)))
      return failure();
  return success();
}

/// Checks that the loops may be split so.
static LogicalResult verifyLoops(SplitOpInterface op, ArrayRef<Loop> loops, ArrayRef<DimShardingAttr> shardings) {
  if (shardings.size() != loops.size())
    return op.emitOpError("has ") << loops.size() << " loops, but " << shardings.size() << " loop shardings";
  llvm::SmallSet<StringRef, 4> used;
  for (auto [index, loop, sharding] : llvm::enumerate(loops, shardings)) {
    if (!sharding.isSplit())
      continue;
    for (StringAttr axis : sharding.getAxes())
      if (!used.insert(axis.getValue()).second)
        return op.emitOpError("splits two loops over mesh axis ") << axis;
    if (!sharding.isInside(loop.extent))
      for (layout::Interval piece : sharding.getIntervals())
        if (!layout::Interval{0, loop.extent}.contains(piece))
          return op.emitOpError("runs piece ")
                 << piece.str() << " of loop " << index << ", whose extent is " << loop.extent;
    switch (loop.kind) {
    case LoopKind::Scan:
      for (unsigned i = 0; i < sharding.getNumPieces(); ++i)
        if (!isBetweenRestarts(*op.getDefinition().scan, sharding.getPiece(i)))
          return op.emitOpError("runs piece ") << sharding.getPiece(i).str() << " of loop " << index
                                               << ", but the accumulation along it does not restart there";
      [[fallthrough]];
    case LoopKind::Parallel:
      if (!sharding.covers(loop.extent))
        return op.emitOpError("splits loop ")
               << index << " into " << sharding << ", which leaves elements of its extent of " << loop.extent
               << " to no rank";
      break;
    case LoopKind::Reduction:
      if (!loop.reduction)
        return op.emitOpError("splits loop ")
               << index << ", over which exchanges cannot combine results of ranks; decompose the operation first";
      if (!sharding.coversOnce(loop.extent))
        return op.emitOpError("splits loop ")
               << index << " into " << sharding << ", which does not cover it exactly once, but it is a reduction";
      break;
    case LoopKind::Whole:
    case LoopKind::Part:
    case LoopKind::Tap:
      return op.emitOpError("splits loop ") << index << ", which must stay whole";
    }
  }
  return success();
}

/// Checks that the types of the results, unless they are still to be decided, are split as the loops are.
static LogicalResult verifyResult(SplitOpInterface op, ArrayRef<Loop> loops, LoopShardingsAttr shardings) {
  ShardingAttr result = getSharding(op->getResult(0));
  for (Value other : llvm::drop_begin(op->getResults()))
    if (getSharding(other) != result)
      return op.emitOpError("has results split as ") << result << " and as " << getSharding(other);
  if (!result)
    return success();
  ArrayRef<DimShardingAttr> parallel = shardings.getLoops().take_front(result.getDims().size());
  if (result.getMesh() != shardings.getMesh() || result.getDims() != parallel)
    return op.emitOpError("has loops split as ") << shardings << ", but a result split as " << result;
  for (auto [loop, sharding] :
       llvm::zip_equal(loops.drop_front(parallel.size()), shardings.getLoops().drop_front(parallel.size())))
    for (StringAttr axis : sharding.getAxes())
      if (!llvm::is_contained(result.getPartialAxes(), axis) || result.getPartialKind() != loop.reduction)
        return op.emitOpError("splits a reduction over mesh axis ")
               << axis << ", but its result is not partial over it";
  return success();
}

static LogicalResult verifyLoopShardings(Operation *op) {
  Attribute attribute = op->getAttr(kLoopsAttrName);
  auto partitionable = dyn_cast<SplitOpInterface>(op);
  if (!attribute || !partitionable)
    return success();
  auto shardings = dyn_cast<LoopShardingsAttr>(attribute);
  if (!shardings)
    return op->emitOpError("has ") << kLoopsAttrName << " = " << attribute
                                   << ", which is not a #dovetail.loop_shardings";
  FailureOr<layout::Mesh> mesh = getMesh(op, "loops", shardings.getMesh());
  if (failed(mesh) || failed(verifyPieces(op, "loops", " in loop ", shardings.getMesh(), *mesh, shardings.getLoops())))
    return failure();
  SmallVector<Loop> loops = partitionable.getRelation().loops;
  if (failed(verifyLoops(partitionable, loops, shardings.getLoops())))
    return failure();
  return verifyResult(partitionable, loops, shardings);
}

LogicalResult dovetail::verifySharding(Operation *op, Type type) {
  return failure(failed(verifyExtents(op, "a value", type)) || failed(verifyCuts(op, type)));
}

LogicalResult dovetail::verifyShardings(Operation *op) {
  auto verify = [&](StringRef what, TypeRange types) {
    for (auto [number, type] : llvm::enumerate(types))
      if (failed(verifyExtents(op, what + " " + Twine(number), type)) || failed(verifyCuts(op, type)))
        return failure();
    return success();
  };
  if (failed(verify("operand", op->getOperandTypes())) || failed(verify("result", op->getResultTypes())))
    return failure();
#ifndef NDEBUG
  if (auto defined = dyn_cast<DefinitionOpInterface>(op))
    if (std::string fault = findFault(op, defined.getDefinition()); !fault.empty())
      return op->emitOpError() << fault;
#endif
  return verifyLoopShardings(op);
}

LogicalResult DovetailDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kLoopsAttrName && !isa<SplitOpInterface>(op))
    return op->emitOpError("has ") << kLoopsAttrName << ", but is not an operation with loops that can be split";
  return success();
}
