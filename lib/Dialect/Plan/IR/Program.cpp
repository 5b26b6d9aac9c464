//===- Program.cpp - Programs, buffers and values -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines program, prologue, buffer, view and the ports.
//
//===----------------------------------------------------------------------===//

#include "Containment.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Dialect/Plan/IR/PlanParts.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

BufferOp plan::getBufferOp(Value ref) {
  auto view = ref.getDefiningOp<ViewOp>();
  return view ? view.getBufferOp() : BufferOp();
}

RankedTensorType plan::getTensor(Value ref) { return cast<RefType>(ref.getType()).getTensor(); }

SmallVector<DimShardingAttr> plan::getDims(ArrayAttr loops) {
  return llvm::map_to_vector(loops.getAsRange<LoopAttr>(), [](LoopAttr loop) { return loop.getDim(); });
}

SmallVector<int64_t> plan::getExtents(ArrayAttr loops) {
  return llvm::map_to_vector(loops.getAsRange<LoopAttr>(), [](LoopAttr loop) { return loop.getExtent(); });
}

//===----------------------------------------------------------------------===//
// ProgramOp, PrologueOp
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verifyRegions() {
  bool prologue = false, steps = false;
  SmallVector<Operation *> open;
  for (Operation &op : *getBlock()) {
    if (isa<StepOpInterface>(op)) {
      steps = true;
      if (isa<RepeatOp, IfOp>(op))
        open.push_back(&op);
      if (isa<EndOp>(op) && open.empty())
        return op.emitOpError("ends no plan.repeat or plan.if");
      if (isa<EndOp>(op))
        open.pop_back();
    } else if (isa<PrologueOp>(op)) {
      if (prologue || steps)
        return op.emitOpError("must be the only one of its program, before all steps");
      prologue = true;
    } else if (!isa<BufferOp, ViewOp, InputOp, OutputOp>(op)) {
      return op.emitOpError("cannot be in a plan.program");
    }
  }
  if (!open.empty())
    return open.back()->emitOpError("has no plan.end");
  return success();
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto meshOp = symbols.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  if (!meshOp)
    return emitOpError("is over ") << getMeshAttr() << ", which is not a dovetail.mesh";
  return verifyParts(*getBlock(), meshOp.getMesh());
}

LogicalResult PrologueOp::verifyRegions() {
  for (Operation &op : *getBlock())
    if (!isa<StepOpInterface>(op))
      return op.emitOpError("cannot be in a plan.prologue, which holds steps only");
  return success();
}

//===----------------------------------------------------------------------===//
// BufferOp, ViewOp
//===----------------------------------------------------------------------===//

void BufferOp::build(OpBuilder &builder, OperationState &state, BufferKind kind, RankedTensorType type,
                     FormatAttr format, ElementsAttr value) {
  build(builder, state, BufferType::get(builder.getContext()), kind, type, format, value);
}

LogicalResult BufferOp::verify() {
  RankedTensorType type = getTensorType();
  if (failed(verifyExtents(*this, "memory", type)))
    return failure();
  if (!type.hasStaticShape())
    return emitOpError("has type ") << type << ", whose shape is not static";
  if (getFormat().getRank() != type.getRank())
    return emitOpError("has type ") << type << ", but a format of " << getFormat().getRank() << " dimensions";
  if (isPartial(type))
    return emitOpError("is partial; that is a property of the values in a buffer");
  if ((getKind() == BufferKind::Constant) != getValue().has_value())
    return emitOpError() << (getValue() ? "has a value, but is not constant" : "is constant, but has no value");
  if (getValue() && !equalUpToSharding(type, getValue()->getType()))
    return emitOpError("has type ") << type << ", but a value of type " << getValue()->getType();
  return success();
}

LogicalResult plan::verifyContained(Operation *op, const layout::Mesh &mesh, RankedTensorType buffer,
                                    RankedTensorType value) {
  ShardingAttr whole = getSharding(buffer), part = getSharding(value);
  if (!whole)
    return success();
  ArrayRef<int64_t> shape = value.getShape();
  for (auto [number, wholeDim] : llvm::enumerate(whole.getDims())) {
    if (!wholeDim.isSplit())
      continue;
    DimShardingAttr partDim = part ? part.getDims()[number] : DimShardingAttr::getUnsplit(op->getContext());
    auto check = [&](int64_t index, layout::Interval holds, layout::Interval needs) -> LogicalResult {
      if (holds.contains(needs))
        return success();
      return op->emitOpError("reaches outside of its buffer: in dimension ")
             << number << ", piece " << index << " of the value is " << needs.str() << ", but the buffer holds "
             << holds.str();
    };
    layout::Interval everything{0, shape[number]};
    if (!partDim.isSplit() || partDim.getAxes() == wholeDim.getAxes()) {
      for (unsigned i = 0; i < wholeDim.getNumPieces(); ++i)
        if (failed(check(i, wholeDim.getPiece(i), partDim.isSplit() ? partDim.getPiece(i) : everything)))
          return failure();
      continue;
    }
    auto getAxes = [&](DimShardingAttr dim) {
      return llvm::map_to_vector(dim.getAxes(), [&](StringAttr axis) { return *mesh.axisIndex(axis.getValue()); });
    };
    for (auto [wholePiece, partPiece] : layout::coordinatePairs(mesh, getAxes(wholeDim), getAxes(partDim)))
      if (failed(check(partPiece, wholeDim.getPiece(wholePiece), partDim.getPiece(partPiece))))
        return failure();
  }
  return success();
}

LogicalResult ViewOp::verify() {
  BufferOp buffer = getBufferOp();
  if (!buffer)
    return emitOpError("is not of a plan.buffer");
  if (failed(verifyExtents(*this, "a value", getTensorType())))
    return failure();
  if (!equalUpToSharding(buffer.getTensorType(), getTensorType()))
    return emitOpError("has type ") << getTensorType() << ", but its buffer has type " << buffer.getTensorType();
  return success();
}

/// Checks that a sharding fits the mesh: its axes exist, and it has a piece for each coordinate.
static LogicalResult verifyOverMesh(Operation *op, MeshOp mesh, ShardingAttr sharding) {
  layout::Mesh axes = mesh.getMesh();
  if (sharding.getMesh().getAttr() != mesh.getSymNameAttr())
    return op->emitOpError("has a sharding over ")
           << sharding.getMesh() << ", but the program's mesh is @" << mesh.getSymName();
  auto sizeOf = [&](StringAttr axis) -> FailureOr<int64_t> {
    if (auto number = axes.axisIndex(axis.getValue()))
      return axes.axisSize(*number);
    op->emitOpError("has a sharding over axis ") << axis << ", which mesh @" << mesh.getSymName() << " does not have";
    return failure();
  };
  for (auto [number, dim] : llvm::enumerate(sharding.getDims())) {
    int64_t coordinates = 1;
    for (StringAttr axis : dim.getAxes()) {
      FailureOr<int64_t> size = sizeOf(axis);
      if (failed(size))
        return failure();
      coordinates *= *size;
    }
    if (dim.isSplit() && dim.getNumPieces() != coordinates)
      return op->emitOpError("splits dimension ")
             << number << " into " << dim.getNumPieces() << " pieces over axes of " << coordinates << " coordinates";
  }
  for (StringAttr axis : sharding.getPartialAxes())
    if (failed(sizeOf(axis)))
      return failure();
  return success();
}

LogicalResult ViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto program = cast<ProgramOp>((*this)->getParentOp());
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
  if (!mesh)
    return emitOpError("is in a program without a mesh");
  RankedTensorType buffer = getBufferOp().getTensorType();
  for (RankedTensorType type : {buffer, getTensorType()})
    if (ShardingAttr sharding = getSharding(type); sharding && failed(verifyOverMesh(*this, mesh, sharding)))
      return failure();
  return verifyContained(*this, mesh.getMesh(), buffer, getTensorType());
}

LogicalResult InputOp::verify() {
  BufferOp buffer = plan::getBufferOp(getRef());
  if (buffer && buffer.getKind() == BufferKind::Constant)
    return emitOpError() << getNameAttr() << " would overwrite a constant";
  return success();
}
