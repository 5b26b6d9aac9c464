//===- PlanBuilder.cpp - The plan section of an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a plan.program becomes a FlatBuffer.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace dovetail;

static FailureOr<artifact::ElementType> getElementType(Operation *op, Type tensor) {
  using artifact::ElementType;
  Type type = getElementTypeOrSelf(tensor);
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (isa<Float8E4M3FNType>(type))
    return ElementType::F8E4M3FN;
  if (isa<Float8E4M3FNUZType>(type))
    return ElementType::F8E4M3FNUZ;
  if (isa<Float8E5M2Type>(type))
    return ElementType::F8E5M2;
  if (isa<Float8E5M2FNUZType>(type))
    return ElementType::F8E5M2FNUZ;
  if (isa<Float8E8M0FNUType>(type))
    return ElementType::F8E8M0;
  if (isa<Float4E2M1FNType>(type))
    return ElementType::F4E2M1;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return ElementType::Bool;
    case 2:
      return isUnsigned ? ElementType::U2 : ElementType::I2;
    case 4:
      return isUnsigned ? ElementType::U4 : ElementType::I4;
    case 8:
      return isUnsigned ? ElementType::U8 : ElementType::I8;
    case 16:
      return isUnsigned ? ElementType::U16 : ElementType::I16;
    case 32:
      return isUnsigned ? ElementType::U32 : ElementType::I32;
    case 64:
      return isUnsigned ? ElementType::U64 : ElementType::I64;
    }
  }
  return op->emitOpError("has elements of ") << type << ", which artifacts do not have";
}

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

std::vector<uint8_t> PlanBuilder::makeAxes(ArrayRef<StringAttr> axes) {
  std::vector<uint8_t> numbers;
  for (StringAttr axis : axes)
    numbers.push_back(axisNumbers.lookup(axis.getValue()));
  return numbers;
}

std::unique_ptr<artifact::DimT> PlanBuilder::makeDim(DimShardingAttr dim) {
  auto result = std::make_unique<artifact::DimT>();
  result->axes = makeAxes(dim.getAxes());
  result->pieces.reserve(dim.getNumPieces());
  for (layout::Interval piece : dim.getIntervals())
    result->pieces.emplace_back(piece.lo, piece.hi);
  return result;
}

std::vector<std::unique_ptr<artifact::DimT>> PlanBuilder::makeDims(RankedTensorType type) {
  std::vector<std::unique_ptr<artifact::DimT>> dims;
  if (ShardingAttr sharding = getSharding(type)) {
    for (DimShardingAttr dim : sharding.getDims())
      dims.push_back(makeDim(dim));
    return dims;
  }
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(std::make_unique<artifact::DimT>());
  return dims;
}

//===----------------------------------------------------------------------===//
// Buffers and values
//===----------------------------------------------------------------------===//

LogicalResult PlanBuilder::addMesh(artifact::PlanT &plan) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
  if (!mesh)
    return program.emitOpError("is over ") << program.getMeshAttr() << ", which is not a dovetail.mesh";
  for (auto [name, size] : llvm::zip_equal(mesh.getAxes().getAsValueRange<StringAttr>(), mesh.getSizes())) {
    axisNumbers[name] = plan.mesh.size();
    auto axis = std::make_unique<artifact::MeshAxisT>();
    axis->name = name.str();
    axis->size = size;
    plan.mesh.push_back(std::move(axis));
  }
  return success();
}

LogicalResult PlanBuilder::addBuffer(artifact::PlanT &plan, plan::BufferOp op) {
  auto buffer = std::make_unique<artifact::BufferT>();
  RankedTensorType type = op.getTensorType();
  FailureOr<artifact::ElementType> elementType = getElementType(op, type);
  if (failed(elementType))
    return failure();
  buffer->kind = toSchema(op.getKind());
  buffer->type = *elementType;
  buffer->shape = toVector(type.getShape());
  buffer->dims = makeDims(type);
  buffer->format = std::make_unique<artifact::FormatT>();
  buffer->format->order.assign(op.getFormat().getOrder().begin(), op.getFormat().getOrder().end());
  if (op.getValue()) {
    // Devices have copies, in any order; on hosts weights are read where the artifact is mapped.
    bool isMapped = op->getParentOfType<plan::ProgramOp>().getMemory() == plan::ProgramMemory::Host;
    if (isMapped && op.getFormat() != plan::FormatAttr::getRowMajor(op.getContext(), type.getRank()))
      return op.emitOpError("is a constant of format ") << op.getFormat() << "; weights are row-major in artifacts";
    FailureOr<unsigned> piece = weights.add(op.getLoc(), *op.getValue());
    if (failed(piece))
      return failure();
    buffer->data_size = weights.getPieces()[*piece].size();
    constants.push_back({static_cast<uint32_t>(plan.buffers.size()), *piece});
  }
  buffers[op.getBuffer()] = plan.buffers.size();
  plan.buffers.push_back(std::move(buffer));
  return success();
}

LogicalResult PlanBuilder::addView(artifact::PlanT &plan, plan::ViewOp op) {
  auto tensor = std::make_unique<artifact::TensorT>();
  if (op.getName())
    tensor->name = op.getName()->str();
  tensor->buffer = buffers.lookup(op.getBuffer());
  tensor->dims = makeDims(op.getTensorType());
  if (ShardingAttr sharding = getSharding(op.getTensorType()); sharding && sharding.isPartial()) {
    tensor->partial_axes = makeAxes(sharding.getPartialAxes());
    tensor->partial_kind = toSchema(sharding.getPartialKind());
  }
  tensors[op.getRef()] = plan.tensors.size();
  plan.tensors.push_back(std::move(tensor));
  return success();
}

std::unique_ptr<artifact::PortT> PlanBuilder::makePort(StringRef name, Value ref) {
  auto port = std::make_unique<artifact::PortT>();
  RankedTensorType type = cast<plan::RefType>(ref.getType()).getTensor();
  port->name = name.str();
  port->tensor = tensorOf(ref);
  port->type = *getElementType(ref.getDefiningOp(), type);
  port->shape = toVector(type.getShape());
  return port;
}

template <typename PortOp> void PlanBuilder::addPort(artifact::PlanT &plan, PortOp op, Ports &ports) {
  auto &port = ports.emplace_back(makePort(op.getName(), op.getRef()));
  std::vector<int32_t> counts;
  if (auto attribute = op->template getAttrOfType<DenseI64ArrayAttr>(kCountsAttrName))
    counts.assign(attribute.asArrayRef().begin(), attribute.asArrayRef().end());
  // Ports of one tensor may be bounded by different counts: a transpose, say, moves nothing where extents are 1.
  bool isShared = llvm::any_of(llvm::ArrayRef(ports).drop_back(), [&](const std::unique_ptr<artifact::PortT> &other) {
    return other->tensor == port->tensor;
  });
  if (isShared && plan.tensors[port->tensor]->counts != counts) {
    plan.tensors.push_back(std::make_unique<artifact::TensorT>(*plan.tensors[port->tensor]));
    port->tensor = plan.tensors.size() - 1;
  }
  if (!counts.empty() || isShared)
    plan.tensors[port->tensor]->counts = std::move(counts);
}

artifact::CountT &PlanBuilder::addCount(artifact::PlanT &plan, StringRef name, Value ref, const Ports &ports) {
  auto &count = plan.counts.emplace_back(std::make_unique<artifact::CountT>());
  count->name = name.str();
  count->tensor = tensorOf(ref);
  for (const std::unique_ptr<artifact::PortT> &port : ports)
    for (auto [number, extent] : llvm::zip(plan.tensors[port->tensor]->counts, port->shape))
      if (number + 1 == static_cast<int32_t>(plan.counts.size()))
        count->bound = extent;
  return *count;
}

void PlanBuilder::addInput(artifact::PlanT &plan, plan::InputOp op) {
  if (op->hasAttr(kCountAttrName))
    addCount(plan, op.getName(), op.getRef(), plan.inputs).given = true;
  else
    addPort(plan, op, plan.inputs);
}

void PlanBuilder::addOutput(artifact::PlanT &plan, plan::OutputOp op) {
  if (auto feedback = op->getAttrOfType<DenseI64ArrayAttr>(kFeedbackAttrName)) {
    artifact::PortT &input = *plan.inputs[feedback[0]];
    input.fed_by = static_cast<int32_t>(feedback[1]);
    input.next = tensorOf(op.getRef());
    return;
  }
  if (op->hasAttr(kCountAttrName)) {
    addCount(plan, op.getName(), op.getRef(), plan.outputs);
    return;
  }
  addPort(plan, op, plan.outputs);
}

LogicalResult PlanBuilder::build(artifact::PlanT &plan) {
  plan.model = program.getModel().str();
  plan.target = program.getTarget().str();
  plan.math = toSchema(program.getMath());
  if (failed(addMesh(plan)))
    return failure();
  for (auto op : program.getBlock()->getOps<plan::BufferOp>())
    if (failed(addBuffer(plan, op)))
      return failure();
  for (auto op : program.getBlock()->getOps<plan::ViewOp>())
    if (failed(addView(plan, op)))
      return failure();
  for (auto op : program.getBlock()->getOps<plan::InputOp>())
    addInput(plan, op);
  for (auto op : program.getBlock()->getOps<plan::OutputOp>())
    addOutput(plan, op);
  for (auto op : program.getBlock()->getOps<plan::PrologueOp>())
    if (failed(addSteps(plan.prologue, *op.getBlock())))
      return failure();
  if (failed(addSteps(plan.steps, *program.getBlock())))
    return failure();

  std::vector<uint64_t> sizes;
  for (ArrayRef<char> piece : weights.getPieces())
    sizes.push_back(piece.size());
  std::vector<uint64_t> offsets = runtime::pieceOffsets(sizes);
  for (auto [buffer, piece] : constants)
    plan.buffers[buffer]->data_offset = offsets[piece];
  return success();
}

LogicalResult dovetail::buildPlan(plan::ProgramOp program, const ProgramCode &code, WeightsBuilder &weights,
                                  flatbuffers::FlatBufferBuilder &buffer, PlanContents contents) {
  artifact::PlanT plan;
  plan.producer = std::string("dovetail ") + runtime::version();
  plan.cpu = code.cpu;
  plan.cpu_features = code.features;
  for (const runtime::KernelUse &use : code.uses) {
    auto &entry = plan.kernel_uses.emplace_back(std::make_unique<artifact::KernelUseT>());
    entry->symbol = use.symbol;
    std::optional<uint32_t> arch = runtime::archNumber(use.arch);
    if (!arch)
      return program.emitError("has kernels for architecture '") << use.arch << "', for which artifacts have no number";
    entry->arch = *arch;
    entry->registers = use.registers;
    entry->shared_bytes = use.sharedBytes;
    entry->spill_stores = use.spillStores;
    entry->spill_loads = use.spillLoads;
  }
  if (failed(PlanBuilder(program, weights, contents).build(plan)))
    return failure();
  artifact::FinishPlanBuffer(buffer, artifact::Plan::Pack(buffer, &plan));
  return success();
}
