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
#include "PlanEnums.h"

#include "dovetail/Dialect/Dovetail/IR/Feedback.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/Version.h"
#include "dovetail/runtime/plan_generated.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// Walks a program into the object form of the schema.
class PlanBuilder {
public:
  PlanBuilder(plan::ProgramOp program, WeightsBuilder &weights, PlanContents contents)
      : program(program), weights(weights), contents(contents) {}

  LogicalResult build(artifact::PlanT &plan);

private:
  LogicalResult addMesh(artifact::PlanT &plan);
  LogicalResult addBuffer(artifact::PlanT &plan, plan::BufferOp op);
  LogicalResult addView(artifact::PlanT &plan, plan::ViewOp op);
  /// An output, or a count of those before it.
  using Ports = std::vector<std::unique_ptr<artifact::PortT>>;
  void addInput(artifact::PlanT &plan, plan::InputOp op);
  void addOutput(artifact::PlanT &plan, plan::OutputOp op);
  template <typename PortOp> void addPort(artifact::PlanT &plan, PortOp op, Ports &ports);
  /// The next count of the plan, in tensor `ref`, which bounds dimensions of `ports`.
  artifact::CountT &addCount(artifact::PlanT &plan, StringRef name, Value ref, const Ports &ports);
  LogicalResult addSteps(std::vector<std::unique_ptr<artifact::StepT>> &steps, Block &block);
  LogicalResult addStep(artifact::StepT &step, Operation *op);

  artifact::KernelStepT makeKernel(plan::LaunchOp op, plan::KernelOp kernel);
  artifact::ConvolutionT makeConvolution(plan::ConvolutionOp op);
  artifact::MatMulT makeMatMul(plan::MatMulOp op);
  artifact::AttentionT makeAttention(plan::AttentionOp op);
  artifact::TransformT makeTransform(plan::TransformOp op);
  artifact::PoolT makePool(plan::PoolOp op, artifact::PoolKind kind);
  std::vector<std::unique_ptr<artifact::PostOpT>> makePostOps(ArrayAttr postOps, OperandRange tensors);
  std::unique_ptr<artifact::PortT> makePort(StringRef name, Value ref);

  std::vector<std::unique_ptr<artifact::LoopT>> makeLoops(ArrayAttr loops);
  std::unique_ptr<artifact::DimT> makeDim(DimShardingAttr dim);
  std::vector<std::unique_ptr<artifact::DimT>> makeDims(RankedTensorType type);
  std::vector<uint8_t> makeAxes(ArrayRef<StringAttr> axes);
  uint32_t tensorOf(Value ref) { return tensors.lookup(ref); }

  plan::ProgramOp program;
  SymbolTableCollection symbols;
  WeightsBuilder &weights;
  PlanContents contents;
  llvm::StringMap<uint8_t> axisNumbers;
  DenseMap<Value, uint32_t> buffers, tensors;
  /// For each event, the position of its step in its list.
  DenseMap<Value, uint32_t> events;
  /// For each constant buffer of the plan, the piece of the weights that it is.
  std::vector<std::pair<uint32_t, unsigned>> constants;
};
} // namespace

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

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
  buffer->format->block_dim = op.getFormat().getBlockDim();
  buffer->format->block = op.getFormat().getBlock();
  if (op.getValue()) {
    // Devices have copies, in any order; on hosts weights are read where the artifact is mapped.
    bool isMapped = op->getParentOfType<plan::ProgramOp>().getMemory() == plan::ProgramMemory::Host;
    if (op.getFormat().isBlocked() ||
        (isMapped && op.getFormat() != plan::FormatAttr::getRowMajor(op.getContext(), type.getRank())))
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

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

std::vector<std::unique_ptr<artifact::LoopT>> PlanBuilder::makeLoops(ArrayAttr loops) {
  std::vector<std::unique_ptr<artifact::LoopT>> result;
  for (auto loop : loops.getAsRange<plan::LoopAttr>()) {
    auto &entry = result.emplace_back(std::make_unique<artifact::LoopT>());
    entry->extent = loop.getExtent();
    entry->dim = makeDim(loop.getDim());
    if (plan::EndAttr end = loop.getEnd()) {
      entry->end = std::make_unique<artifact::LoopEndT>();
      entry->end->factors.assign(end.getFactors().begin(), end.getFactors().end());
      entry->end->added = end.getAdded();
      entry->end->divisor = end.getDivisor();
      entry->end->least = end.getLeast();
      entry->end->step = end.getStep();
      entry->end->beyond = end.getBeyond();
    }
  }
  return result;
}

artifact::KernelStepT PlanBuilder::makeKernel(plan::LaunchOp op, plan::KernelOp kernel) {
  artifact::KernelStepT step;
  step.symbol = op.getKernel().str();
  for (Value read : op.getReads())
    step.reads.push_back(tensorOf(read));
  for (Value write : op.getWrites())
    step.writes.push_back(tensorOf(write));
  step.loops = makeLoops(op.getLoops());
  for (auto [loop, info] : llvm::zip_equal(kernel.getLoops(), step.loops))
    info->lookup = loop.isLookup();
  for (auto [number, check] : llvm::enumerate(kernel.getIndexChecks())) {
    auto &entry = step.checks.emplace_back(std::make_unique<artifact::IndexCheckT>());
    entry->node = cast<StringAttr>((*op.getChecks())[number]).str();
    entry->extent = check.extent;
    entry->dim = check.dim;
    entry->is_unsigned = check.isUnsigned;
    if (check.argument)
      entry->tensor = tensorOf(op.getReads()[*check.argument]);
  }
  step.parallel_loop = kernel.getParallelLoop().value_or(-1);
  if (std::optional<plan::BlocksAttr> blocks = kernel.getBlocks()) {
    step.blocks = std::make_unique<artifact::BlocksT>();
    step.blocks->threads = blocks->getThreads();
    step.blocks->tiles_per_block = blocks->getTiles();
    step.blocks->shared_bytes = blocks->getShared();
    for (auto [loop, size] : llvm::zip_equal(blocks->getLoops(), blocks->getSteps())) {
      auto &tile = step.blocks->tiles.emplace_back(std::make_unique<artifact::TileLoopT>());
      tile->loop = loop;
      tile->step = size;
    }
  } else if (!contents.hasCode && program.getTarget() != runtime::hostTarget) {
    // Some blocks or other: those of a device are found when code is generated.
    step.blocks = std::make_unique<artifact::BlocksT>();
    step.blocks->threads = step.blocks->tiles_per_block = 1;
  }
  // Without an element of the result there is nothing to write; an empty reduction still writes where it starts from.
  for (unsigned loop = 0; loop < kernel.getShape().size(); ++loop)
    step.skip_loops.push_back(loop);
  return step;
}

std::vector<std::unique_ptr<artifact::PostOpT>> PlanBuilder::makePostOps(ArrayAttr postOps, OperandRange operands) {
  std::vector<std::unique_ptr<artifact::PostOpT>> result;
  auto next = operands.begin();
  for (auto postOp : postOps.getAsRange<plan::PostOpAttr>()) {
    auto &entry = result.emplace_back(std::make_unique<artifact::PostOpT>());
    entry->kind = toSchema(postOp.getKind());
    if (postOp.readsTensor())
      entry->tensor = tensorOf(*next++);
    entry->alpha = postOp.getAlphaValue();
    entry->beta = postOp.getBetaValue();
  }
  return result;
}

static std::unique_ptr<artifact::IndexExprT> makeIndex(const layout::IndexExpr &index) {
  auto result = std::make_unique<artifact::IndexExprT>();
  result->constant = index.getConstant();
  for (const layout::IndexExpr::Term &term : index.getTerms()) {
    auto &entry = result->terms.emplace_back(std::make_unique<artifact::IndexTermT>());
    entry->factor = term.factor;
    switch (term.kind) {
    case layout::IndexExpr::Kind::Loop:
      entry->kind = artifact::IndexTermKind::Loop;
      entry->loop = term.number;
      break;
    case layout::IndexExpr::Kind::Quotient:
    case layout::IndexExpr::Kind::Remainder:
      entry->kind = term.kind == layout::IndexExpr::Kind::Quotient ? artifact::IndexTermKind::Quotient
                                                                   : artifact::IndexTermKind::Remainder;
      entry->divisor = term.divisor;
      entry->operand = makeIndex(term.getOperand());
      break;
    case layout::IndexExpr::Kind::Unknown:
      llvm_unreachable("the verifier of accesses refuses unknown values");
    }
  }
  return result;
}

/// Of a `plan::AccessAttr`.
static std::unique_ptr<artifact::AccessT> makeAccess(Attribute access) {
  auto result = std::make_unique<artifact::AccessT>();
  for (const layout::AccessDim &dim : cast<plan::AccessAttr>(access).getDims().get()) {
    auto &entry = result->dims.emplace_back(std::make_unique<artifact::AccessDimT>());
    entry->index = makeIndex(dim.index);
    entry->divisor = dim.divisor;
  }
  return result;
}

artifact::ConvolutionT PlanBuilder::makeConvolution(plan::ConvolutionOp op) {
  artifact::ConvolutionT call;
  call.input = tensorOf(op.getInput());
  call.weights = tensorOf(op.getWeights());
  call.output = tensorOf(op.getOutput());
  call.post_ops = makePostOps(op.getPostOps(), op.getPostTensors());
  call.loops = makeLoops(op.getLoops());
  call.input_access = makeAccess(op.getReads()[0]);
  call.weights_access = makeAccess(op.getReads()[1]);
  call.algorithm = toSchema(op.getAlgorithm());
  return call;
}

artifact::MatMulT PlanBuilder::makeMatMul(plan::MatMulOp op) {
  artifact::MatMulT call;
  call.a = tensorOf(op.getA());
  call.b = tensorOf(op.getB());
  call.output = tensorOf(op.getOutput());
  call.row_dims = op.getRowDims();
  call.post_ops = makePostOps(op.getPostOps(), op.getPostTensors());
  call.loops = makeLoops(op.getLoops());
  call.a_access = makeAccess(op.getReads()[0]);
  call.b_access = makeAccess(op.getReads()[1]);
  return call;
}

artifact::PoolT PlanBuilder::makePool(plan::PoolOp op, artifact::PoolKind kind) {
  artifact::PoolT call;
  call.kind = kind;
  call.input = tensorOf(op.getInput());
  call.output = tensorOf(op.getOutput());
  call.loops = makeLoops(op.getLoops());
  call.input_access = makeAccess(op.getReads()[0]);
  return call;
}

artifact::AttentionT PlanBuilder::makeAttention(plan::AttentionOp op) {
  artifact::AttentionT call;
  call.query = tensorOf(op.getQuery());
  call.key = tensorOf(op.getKey());
  call.value = tensorOf(op.getValue());
  call.output = tensorOf(op.getOutput());
  call.loops = makeLoops(op.getLoops());
  call.query_access = makeAccess(op.getReads()[0]);
  call.key_access = makeAccess(op.getReads()[1]);
  call.value_access = makeAccess(op.getReads()[2]);
  if (op.getMask()) {
    call.mask = tensorOf(op.getMask());
    call.mask_access = makeAccess(op.getReads()[3]);
  }
  call.scale = op.getScale().convertToFloat();
  call.fill = op.getFill().convertToFloat();
  call.parts = op.getParts();
  return call;
}

artifact::TransformT PlanBuilder::makeTransform(plan::TransformOp op) {
  artifact::TransformT call;
  call.input = tensorOf(op.getInput());
  call.output = tensorOf(op.getOutput());
  call.loops = makeLoops(op.getLoops());
  call.input_access = makeAccess(op.getReads()[0]);
  call.inverse = op.getInverse();
  return call;
}

LogicalResult PlanBuilder::addStep(artifact::StepT &step, Operation *op) {
  step.name = plan::getStepName(op).str();
  if (contents.hasSourceNames)
    step.source = plan::getStepSource(op);
  auto setLibraryCall = [&](auto call, plan::CallMemoryAttr memory = {}) {
    artifact::LibraryStepT library;
    library.call.Set(std::move(call));
    if (memory) {
      library.memory = std::make_unique<artifact::CallMemoryT>();
      library.memory->packed = toVector(memory.getPacked());
      library.memory->scratch = toVector(memory.getScratch());
      library.memory->thread_scratch = toVector(memory.getThreadScratch());
      library.memory->thread_packed = toVector(memory.getThreadPacked());
    }
    if (auto division = op->getAttrOfType<plan::DivisionAttr>("division")) {
      library.division = std::make_unique<artifact::DivisionT>();
      library.division->loop = division.getLoop();
      library.division->step = division.getStep();
      library.division->grain = division.getGrain();
    }
    step.action.Set(std::move(library));
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::LaunchOp launch) -> LogicalResult {
        auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(program, launch.getKernelAttr());
        if (!kernel)
          return launch.emitOpError() << launch.getKernelAttr() << " is not a plan.kernel";
        step.action.Set(makeKernel(launch, kernel));
        return success();
      })
      .Case([&](plan::ConvolutionOp call) { return setLibraryCall(makeConvolution(call), call.getMemoryAttr()); })
      .Case([&](plan::MatMulOp call) { return setLibraryCall(makeMatMul(call), call.getMemoryAttr()); })
      .Case([&](plan::AttentionOp call) { return setLibraryCall(makeAttention(call), call.getMemoryAttr()); })
      .Case([&](plan::TransformOp call) { return setLibraryCall(makeTransform(call), call.getMemoryAttr()); })
      .Case([&](plan::PoolOp call) -> LogicalResult {
        std::optional<artifact::PoolKind> kind = toSchema(call.getKind());
        if (!kind)
          return call.emitOpError("is a pool of a kind that artifacts do not have");
        return setLibraryCall(makePool(call, *kind), call.getMemoryAttr());
      })
      .Case([&](plan::ReorderOp call) {
        artifact::ReorderT reorder;
        reorder.source = tensorOf(call.getSource());
        reorder.target = tensorOf(call.getTarget());
        return setLibraryCall(std::move(reorder));
      })
      .Case([&](plan::ExchangeOp call) {
        artifact::ExchangeStepT exchange;
        exchange.kind = toSchema(call.getKind());
        for (auto [number, source, target] : llvm::enumerate(call.getSources(), call.getTargets())) {
          auto &move = exchange.moves.emplace_back(std::make_unique<artifact::MoveT>());
          move->source = tensorOf(source);
          move->target = tensorOf(target);
          SmallVector<int64_t> order = call.getOrder(number);
          move->order.assign(order.begin(), order.end());
        }
        step.action.Set(std::move(exchange));
        return success();
      })
      .Case([&](plan::WaitOp wait) {
        artifact::WaitStepT call;
        for (Value event : wait.getComplete())
          call.complete.push_back(events.at(event));
        for (Value event : wait.getRead())
          call.read.push_back(events.at(event));
        step.action.Set(std::move(call));
        return success();
      })
      .Case([&](plan::RepeatOp repeat) {
        artifact::RepeatStepT call;
        call.condition = tensorOf(repeat.getCondition());
        step.action.Set(std::move(call));
        return success();
      })
      .Case([&](plan::IfOp choose) {
        artifact::ChooseStepT call;
        call.condition = tensorOf(choose.getCondition());
        call.when = !choose.getNegated();
        step.action.Set(std::move(call));
        return success();
      })
      .Case([&](plan::EndOp) {
        step.action.Set(artifact::EndStepT());
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("is a step that artifacts do not have"); });
}

LogicalResult PlanBuilder::addSteps(std::vector<std::unique_ptr<artifact::StepT>> &steps, Block &block) {
  for (auto op : block.getOps<plan::StepOpInterface>()) {
    for (Value event : op->getResults())
      events[event] = steps.size();
    if (failed(addStep(*steps.emplace_back(std::make_unique<artifact::StepT>()), op)))
      return failure();
  }
  return success();
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
    entry->arch = use.arch;
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
