//===- StepBuilder.cpp - Steps of the plan section of an artifact ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how steps of a program become tables of the schema.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

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
  } else if (!contents.hasCode && program.getMemory() == plan::ProgramMemory::Device) {
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

/// Of a `AccessAttr`.
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
