//===- DovetailToPlan.cpp - Lower the graph to the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits buffers and steps as the groups, formats and storage of a function say.
//
//===----------------------------------------------------------------------===//

#include "CheckChoices.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/Feedback.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Library/Calls.h"

namespace dovetail {
#define GEN_PASS_DEF_DOVETAILTOPLAN
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Emits the program of one function.
class PlanEmitter {
public:
  PlanEmitter(func::FuncOp function, MeshOp mesh, plan::ProgramOp program)
      : function(function), context(function.getContext()), mesh(mesh.getMesh()), program(program), buffers(context),
        steps(context) {}

  LogicalResult run();

private:
  /// Reads where values lie; an error if that has not been decided, or cannot be right.
  LogicalResult readStorage();
  LogicalResult checkView(ReshardOp op);
  LogicalResult checkGroup(plan::GroupOp group);
  /// The loops of operations of groups, and how they are split.
  LogicalResult readLoops(plan::GroupOp group);

  void emitPorts();
  void emitEnd(plan::EndLoopOp end);
  LogicalResult emitCall(plan::GroupOp group);
  void emitKernel(plan::GroupOp group);

  /// The view of a value in its buffer; both are made when first asked for.
  Value getView(Value value);
  SmallVector<Value> getViews(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return getView(value); });
  }
  plan::BufferOp getBuffer(Value value);
  plan::StorageOp getStorage(Value value) const { return storageOf.lookup(value); }
  /// Where the step for an operation goes: steps, or the prologue.
  OpBuilder &getSteps(Operation *op) { return op->hasAttr(plan::kPrologueAttrName) ? *prologue : steps; }
  StringAttr getStepName(Operation *op);
  /// The loops of an operation, as `plan::LoopAttr`.
  ArrayRef<Attribute> getLoops(Operation *op) const { return loopsOf.find(op)->second; }

  func::FuncOp function;
  MLIRContext *context;
  layout::Mesh mesh;
  plan::ProgramOp program;

  /// Buffers and views come before all steps.
  OpBuilder buffers, steps;
  std::optional<OpBuilder> prologue;
  DenseMap<Value, plan::StorageOp> storageOf;
  DenseMap<Operation *, plan::BufferOp> bufferOf;
  DenseMap<Value, Value> viewOf;
  DenseMap<Operation *, SmallVector<Attribute>> loopsOf;
  unsigned numKernels = 0;
};

struct DovetailToPlan : dovetail::impl::DovetailToPlanBase<DovetailToPlan> {
  using DovetailToPlanBase::DovetailToPlanBase;

  void runOnOperation() override;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

plan::BufferOp PlanEmitter::getBuffer(Value value) {
  plan::StorageOp storage = getStorage(value);
  plan::BufferOp &buffer = bufferOf[storage];
  if (buffer)
    return buffer;
  auto constant = storage.getValues().front().getDefiningOp<ConstantOp>();
  return buffer = plan::BufferOp::create(buffers, storage.getLoc(), storage.getKind(), storage.getTensorType(),
                                         storage.getFormat(), constant ? constant.getValue() : ElementsAttr());
}

Value PlanEmitter::getView(Value value) {
  if (Value view = viewOf.lookup(value))
    return view;
  auto type = plan::RefType::get(cast<RankedTensorType>(value.getType()));
  Value view = plan::ViewOp::create(buffers, value.getLoc(), type, getBuffer(value).getBuffer(), StringAttr());
  return viewOf[value] = view;
}

StringAttr PlanEmitter::getStepName(Operation *op) {
  StringRef name = getNodeName(op->getLoc());
  if (name.empty())
    return {};
  return StringAttr::get(context, name);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void PlanEmitter::emitPorts() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "dovetail.name");
    auto input = plan::InputOp::create(steps, argument.getLoc(),
                                       name ? name : StringAttr::get(context, "input" + Twine(argument.getArgNumber())),
                                       getView(argument));
    for (StringRef attribute : {kCountAttrName, kCountsAttrName})
      if (Attribute given = function.getArgAttr(argument.getArgNumber(), attribute))
        input->setAttr(attribute, given);
  }
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(index, "dovetail.name");
    auto output = plan::OutputOp::create(
        steps, value.getLoc(), name ? name : StringAttr::get(context, "output" + Twine(index)), getView(value));
    for (StringRef attribute : {kCountAttrName, kCountsAttrName, kFeedbackAttrName})
      if (Attribute given = function.getResultAttr(index, attribute))
        output->setAttr(attribute, given);
  }
}

void PlanEmitter::emitEnd(plan::EndLoopOp end) {
  // All other next values have places of their own, so that none is written over before it has been read.
  for (auto [carried, next] : llvm::zip_equal(end.getCarried(), end.getNext()))
    if (getStorage(carried) != getStorage(next))
      plan::ReorderOp::create(steps, end.getLoc(), getView(next), getView(carried), getStepName(next.getDefiningOp()));
  plan::EndOp::create(steps, end.getLoc(), getStepName(end));
}

void PlanEmitter::emitKernel(plan::GroupOp group) {
  Operation *root = group.getRoot();
  auto getLayout = [&](Value value) -> Attribute {
    plan::BufferOp buffer = getBuffer(value);
    return plan::LayoutAttr::getFor(buffer.getFormat(), buffer.getTensorType());
  };
  SmallVector<Attribute> layouts = llvm::map_to_vector(group.getInputs(), getLayout);
  SmallVector<Attribute> resultLayouts = llvm::map_to_vector(group.getOutputs(), getLayout);
  // The dimensions of the results, then the reductions of all operations.
  auto getRank = [](Operation *op) { return cast<RankedTensorType>(op->getResult(0).getType()).getRank(); };
  SmallVector<Attribute> loops(getLoops(root).take_front(getRank(root)));
  for (auto op : group.getBlock()->getOps<DefinitionOpInterface>())
    llvm::append_range(loops, getLoops(op).drop_front(getRank(op)));
  SmallVector<int64_t> staticLoops;
  for (auto [index, loop] : llvm::enumerate(loops))
    if (!cast<plan::LoopAttr>(loop).isSplit())
      staticLoops.push_back(index);

  OpBuilder builder(program);
  auto kernel = plan::KernelOp::create(builder, root->getLoc(), builder.getStringAttr("kernel" + Twine(numKernels++)),
                                       builder.getArrayAttr(layouts), builder.getArrayAttr(resultLayouts),
                                       builder.getDenseI64ArrayAttr(staticLoops), IntegerAttr(), plan::BlocksAttr(),
                                       group.getInPlaceAttr(), /*counts=*/nullptr);
  // One kernel serves all ranks; the launch says who runs what.
  kernel.getBody().takeBody(group.getBody());
  auto strip = [](Value value) { value.setType(withSharding(cast<RankedTensorType>(value.getType()), {})); };
  llvm::for_each(kernel.getArguments(), strip);
  for (auto op : kernel.getBlock()->getOps<DefinitionOpInterface>()) {
    llvm::for_each(op->getResults(), strip);
    op->removeAttr(kLoopsAttrName);
  }
  SmallVector<Attribute> checks;
  for (const plan::IndexCheck &check : kernel.getIndexChecks()) {
    StringAttr name = getStepName(check.op);
    checks.push_back(name ? name : builder.getStringAttr(""));
  }

  SmallVector<Value> reads = getViews(group.getInputs());
  SmallVector<Value> writes = getViews(group.getOutputs());
  plan::LaunchOp::create(getSteps(group), root->getLoc(), FlatSymbolRefAttr::get(kernel), reads, writes,
                         builder.getArrayAttr(loops), getStepName(root),
                         checks.empty() ? ArrayAttr() : builder.getArrayAttr(checks));
}

/// The loop over the terms of parts as that of a call, of which a rank has one part: it has the terms of that.
static plan::LoopAttr getTerms(const Loop &loop, plan::LoopAttr parts) {
  MLIRContext *context = parts.getContext();
  if (!parts.isSplit())
    return plan::LoopAttr::get(context, loop.extent);
  SmallVector<layout::Interval> windows;
  for (layout::Interval piece : parts.getDim().getIntervals())
    windows.push_back({loop.ends[piece.lo], loop.ends[piece.hi]});
  return plan::LoopAttr::get(context, loop.extent, DimShardingAttr::getWindows(parts.getDim().getAxes(), windows));
}

/// Has the terms of parts read at the index of their loop, number `number`.
static void readTerms(Definition &definition, unsigned number) {
  for (Access &access : definition.reads)
    for (layout::AccessDim &dim : access.dims)
      if (dim.index.hasUnknown() && dim.index.dependsOn(static_cast<int>(definition.loops[number].dim)))
        dim.index = Definition::at(number);
}

/// True for an index of which nothing is known: an operation reads all of that dimension.
static bool isUnknown(const layout::AccessDim &dim) {
  ArrayRef<layout::IndexExpr::Term> terms = dim.index.getTerms();
  return terms.size() == 1 && terms[0].kind == layout::IndexExpr::Kind::Unknown && !terms[0].hasOperand();
}

/// Has what `access` reads of all of a dimension of `operand` read at the index of a loop over it, behind `loops`.
static void readWhole(Access &access, Value operand, SmallVectorImpl<Attribute> &loops) {
  for (auto [dim, extent] : llvm::zip_equal(access.dims, cast<RankedTensorType>(operand.getType()).getShape())) {
    if (!isUnknown(dim))
      continue;
    dim = layout::IndexExpr::loop(static_cast<int>(loops.size()));
    loops.push_back(plan::LoopAttr::get(operand.getContext(), extent));
  }
}

LogicalResult PlanEmitter::emitCall(plan::GroupOp group) {
  auto call = cast<DefinitionOpInterface>(group.getCall());
  OpBuilder &builder = getSteps(group);
  // The view of what an operation of the group reads from outside of it.
  auto getOperandView = [&](Value operand) {
    return getView(group.getInputs()[cast<BlockArgument>(operand).getArgNumber()]);
  };
  CallParts parts;
  SmallVector<Attribute> postOps;
  for (OpOperand *use : group.getEpilogue()) {
    Value tensor;
    postOps.push_back(*plan::getPostOp(*use, tensor));
    if (tensor)
      parts.postTensors.push_back(getOperandView(tensor));
  }
  parts.postOps = builder.getArrayAttr(postOps);
  parts.result = getView(group.getOutputs().front());
  parts.name = getStepName(call);
  // Loops and accesses are the operation's own; taps are never split.
  Definition definition = call.getDefinition();
  SmallVector<Attribute> loops(getLoops(call));
  for (const Loop &tap : llvm::drop_begin(definition.loops, loops.size()))
    loops.push_back(plan::LoopAttr::get(context, tap.extent));
  for (auto [number, loop] : llvm::enumerate(definition.loops))
    if (loop.kind == LoopKind::Part) {
      loops[number] = getTerms(loop, cast<plan::LoopAttr>(loops[loop.dim]));
      readTerms(definition, number);
    }
  SmallVector<Attribute> reads;
  for (auto [access, operand] : llvm::zip_equal(definition.reads, call->getOperands())) {
    // What libraries have themselves is a constant within the group.
    if (!isa<BlockArgument>(operand))
      continue;
    parts.operands.push_back(getOperandView(operand));
    readWhole(access, operand, loops);
    auto fail = [&] { return call->emitOpError("has no library call: "); };
    auto read = AccessAttr::getChecked(fail, context, AccessDims(access.dims));
    if (!read || failed(plan::verifyAccess(fail, read)))
      return failure();
    reads.push_back(read);
  }
  parts.loops = builder.getArrayAttr(loops);
  parts.reads = builder.getArrayAttr(reads);
  return createCall(builder, call, parts);
}

//===----------------------------------------------------------------------===//
// What has been decided
//===----------------------------------------------------------------------===//

LogicalResult PlanEmitter::checkView(ReshardOp op) {
  ShardingAttr from = getBoxSharding(op.getOperand()), to = getBoxSharding(op.getResult());
  if (op.isReduction() || !covers(from, to, cast<RankedTensorType>(op.getOperand().getType()), mesh))
    return op.emitOpError("is a view, but ranks lack elements of its result");
  return success();
}

LogicalResult PlanEmitter::checkGroup(plan::GroupOp group) {
  for (Value output : group.getOutputs())
    for (auto [number, input] : llvm::enumerate(group.getInputs())) {
      bool isShared = getStorage(input) == getStorage(output);
      bool isInPlace = group.getInPlace() == number;
      if (isShared != isInPlace)
        return group.emitOpError(isShared ? "writes over operand " : "is in place, but does not write over operand ")
               << number;
    }
  return success();
}

LogicalResult PlanEmitter::readLoops(plan::GroupOp group) {
  for (auto op : group.getBlock()->getOps<SplitOpInterface>()) {
    FailureOr<LoopShardings> loops = readLoopShardings(op);
    if (failed(loops))
      return failure();
    SmallVector<Attribute> &attributes = loopsOf[op];
    for (auto [loop, sharding] : llvm::zip_equal(op.getRelation().loops, *loops))
      attributes.push_back(plan::LoopAttr::get(context, loop.extent, sharding));
  }
  return success();
}

LogicalResult PlanEmitter::readStorage() {
  Block &block = function.getBody().front();
  for (auto storage : block.getOps<plan::StorageOp>())
    for (Value value : storage.getValues())
      storageOf[value] = storage;
  auto lacksStorage = [&](Value value) { return !getStorage(value); };
  for (BlockArgument argument : block.getArguments())
    if (lacksStorage(argument))
      return function.emitError("argument ") << argument.getArgNumber() << " of " << function.getSymNameAttr()
                                             << " lies nowhere in memory; dovetail-share-storage decides where";
  for (Operation &op : block) {
    if (!isa<ConstantOp, ReshardOp, plan::GroupOp, plan::ConvertFormatOp, plan::StorageOp, plan::BeginLoopOp,
             plan::EndLoopOp, plan::BeginChoiceOp, plan::EndChoiceOp, func::ReturnOp>(op))
      return op.emitOpError("is in no group; dovetail-form-calls and dovetail-fuse-kernels form groups");
    if (llvm::any_of(op.getOperands(), lacksStorage) ||
        (!isa<ConstantOp>(op) && llvm::any_of(op.getResults(), lacksStorage)))
      return op.emitOpError("reads or gives a value that lies nowhere in memory; dovetail-share-storage decides where");
    auto reshard = dyn_cast<ReshardOp>(op);
    if (reshard && op.hasAttr(plan::kViewAttrName) && failed(checkView(reshard)))
      return failure();
    auto group = dyn_cast<plan::GroupOp>(op);
    if (group && (failed(checkGroup(group)) || failed(readLoops(group))))
      return failure();
  }
  return success();
}

LogicalResult PlanEmitter::run() {
  if (failed(readStorage()) || failed(checkChoices(function.getBody().front())))
    return failure();
  Block *body = program.getBlock();
  // Buffers and views, then the prologue, then ports and steps.
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(body);
  auto prologueOp = plan::PrologueOp::create(builder, function.getLoc());
  prologueOp.getBody().emplaceBlock();
  prologue.emplace(context);
  prologue->setInsertionPointToEnd(prologueOp.getBlock());
  buffers.setInsertionPoint(prologueOp);
  steps.setInsertionPointToEnd(body);

  emitPorts();
  for (Operation &op : function.getBody().front()) {
    if (auto reshard = dyn_cast<ReshardOp>(op); reshard && !op.hasAttr(plan::kViewAttrName)) {
      Value source = getView(reshard.getOperand()), target = getView(reshard.getResult());
      plan::ExchangeOp::create(getSteps(&op), op.getLoc(), source, target, getStepName(&op));
    } else if (auto copy = dyn_cast<plan::ConvertFormatOp>(op)) {
      Value source = getView(copy.getSource()), target = getView(copy.getResult());
      plan::ReorderOp::create(getSteps(&op), op.getLoc(), source, target, StringAttr());
    } else if (auto begin = dyn_cast<plan::BeginLoopOp>(op)) {
      plan::RepeatOp::create(steps, op.getLoc(), getView(begin.getCondition()), getStepName(&op));
    } else if (auto end = dyn_cast<plan::EndLoopOp>(op)) {
      emitEnd(end);
    } else if (auto choice = dyn_cast<plan::BeginChoiceOp>(op)) {
      plan::IfOp::create(steps, op.getLoc(), getView(choice.getCondition()), choice.getNegatedAttr(), getStepName(&op));
    } else if (isa<plan::EndChoiceOp>(op)) {
      // All that is needed may have become part of other kernels, or of the prologue.
      auto begin = dyn_cast<plan::IfOp>(steps.getInsertionBlock()->back());
      if (begin)
        begin.erase();
      else
        plan::EndOp::create(steps, op.getLoc(), getStepName(&op));
    } else if (auto group = dyn_cast<plan::GroupOp>(op)) {
      if (!group.getLibrary())
        emitKernel(group);
      else if (failed(emitCall(group)))
        return failure();
    }
  }
  if (prologueOp.getBlock()->empty())
    prologueOp.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

void DovetailToPlan::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<MeshOp> mesh = requireModuleMesh(module);
  if (failed(mesh))
    return signalPassFailure();
  auto functions = llvm::to_vector(getGraphs(module));
  for (func::FuncOp function : functions) {
    OpBuilder builder(function);
    StringAttr model = module->getAttrOfType<StringAttr>("dovetail.model");
    auto program = plan::ProgramOp::create(
        builder, function.getLoc(), function.getSymNameAttr(), FlatSymbolRefAttr::get(*mesh),
        builder.getStringAttr(target), plan::ProgramMemoryAttr::get(&getContext(), memory),
        plan::MathModeAttr::get(&getContext(), math), model ? model : builder.getStringAttr(""));
    program.getBody().emplaceBlock();
    if (failed(PlanEmitter(function, *mesh, program).run()))
      return signalPassFailure();
    function.erase();
  }
}
