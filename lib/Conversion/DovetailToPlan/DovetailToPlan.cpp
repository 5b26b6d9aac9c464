//===- DovetailToPlan.cpp - Lower the graph to the plan -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits buffers and steps for the groups of a function.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dovetail {
#define GEN_PASS_DEF_DOVETAILTOPLAN
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::BufferKind;
using plan::FormatAttr;

namespace {

/// The values that depend on constants alone.
DenseSet<Value> findConstantValues(func::FuncOp function) {
  DenseSet<Value> values;
  for (Operation &op : function.getBody().front())
    if (llvm::all_of(op.getOperands(), [&](Value v) { return values.contains(v); }))
      values.insert(op.result_begin(), op.result_end());
  return values;
}

/// Emits the program of one function.
class PlanEmitter {
public:
  PlanEmitter(func::FuncOp function, MeshOp mesh, plan::ProgramOp program, const Formats &formats,
              ArrayRef<Group> groups)
      : function(function), context(function.getContext()), program(program), formats(formats), groups(groups),
        constantValues(findConstantValues(function)), storage(function, mesh.getMesh(), formats, constantValues),
        buffers(context), steps(context) {}

  LogicalResult run();

private:
  LogicalResult readLoops();
  void emitPorts();
  LogicalResult emitGroup(const Group &group);
  LogicalResult emitCall(const Group &group);
  void emitKernel(const Group &group);
  void emitExchange(ReshardOp op);

  /// The view of a value in its buffer; both are made when first asked for.
  Value getView(Value value);
  plan::BufferOp getBuffer(Value value);
  /// The view of a copy of `value` in `format`, or of the value itself if it has that format.
  Value getViewInFormat(Value value, FormatAttr format);
  plan::RefType getRefType(Value value) { return plan::RefType::get(cast<RankedTensorType>(value.getType())); }
  /// Where the step that computes `value` goes: steps, or the prologue.
  OpBuilder &getSteps(Value value) { return isConstantValue(value) ? *prologue : steps; }
  bool isConstantValue(Value value) const { return constantValues.contains(value); }
  StringAttr getStepName(Operation *op);
  /// The loops of an operation, as `plan::LoopAttr`.
  ArrayRef<Attribute> getLoops(Operation *op) const { return loopsOf.find(op)->second; }

  func::FuncOp function;
  MLIRContext *context;
  plan::ProgramOp program;
  const Formats &formats;
  ArrayRef<Group> groups;
  /// Values that depend on constants alone.
  DenseSet<Value> constantValues;
  Storage storage;

  /// Buffers and views come before all steps.
  OpBuilder buffers, steps;
  std::optional<OpBuilder> prologue;
  DenseMap<Value, plan::BufferOp> bufferOf;
  DenseMap<Value, Value> viewOf;
  DenseMap<std::pair<Value, Attribute>, Value> copies;
  /// The loops of operations, and how they are split.
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

LogicalResult PlanEmitter::readLoops() {
  for (auto op : function.getBody().front().getOps<DefinitionOpInterface>()) {
    FailureOr<LoopShardings> loops = readLoopShardings(op);
    if (failed(loops))
      return failure();
    SmallVector<Attribute> &attributes = loopsOf[op];
    for (auto [loop, sharding] : llvm::zip_equal(op.getRelation().loops, *loops))
      attributes.push_back(plan::LoopAttr::get(context, loop.extent, sharding));
  }
  return success();
}

plan::BufferOp PlanEmitter::getBuffer(Value value) {
  Value leader = storage.getLeader(value);
  plan::BufferOp &buffer = bufferOf[leader];
  if (buffer)
    return buffer;
  auto type = withSharding(cast<RankedTensorType>(leader.getType()), storage.getHeld(leader));
  ElementsAttr elements;
  BufferKind kind = BufferKind::Arena;
  if (auto constant = leader.getDefiningOp<ConstantOp>()) {
    kind = BufferKind::Constant;
    elements = constant.getValue();
  } else if (isConstantValue(leader)) {
    kind = BufferKind::Persistent;
  }
  buffer = plan::BufferOp::create(buffers, leader.getLoc(), kind, type, formats.lookup(leader), elements);
  return buffer;
}

Value PlanEmitter::getView(Value value) {
  if (Value view = viewOf.lookup(value))
    return view;
  Value view =
      plan::ViewOp::create(buffers, value.getLoc(), getRefType(value), getBuffer(value).getBuffer(), StringAttr());
  return viewOf[value] = view;
}

Value PlanEmitter::getViewInFormat(Value value, FormatAttr format) {
  if (formats.lookup(value) == format)
    return getView(value);
  Value &copy = copies[{value, format}];
  if (copy)
    return copy;
  auto type = cast<RankedTensorType>(value.getType());
  ShardingAttr sharding = getSharding(type);
  auto buffer = plan::BufferOp::create(
      buffers, value.getLoc(), isConstantValue(value) ? BufferKind::Persistent : BufferKind::Arena,
      withSharding(type, sharding ? sharding.withoutPartial() : sharding), format, ElementsAttr());
  copy = plan::ViewOp::create(buffers, value.getLoc(), getRefType(value), buffer.getBuffer(), StringAttr());
  plan::ReorderOp::create(getSteps(value), value.getLoc(), getView(value), copy, StringAttr());
  return copy;
}

StringAttr PlanEmitter::getStepName(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location location) {
    auto named = dyn_cast<NameLoc>(location);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
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
    plan::InputOp::create(steps, argument.getLoc(),
                          name ? name : StringAttr::get(context, "input" + Twine(argument.getArgNumber())),
                          getView(argument));
  }
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto name = function.getResultAttrOfType<StringAttr>(index, "dovetail.name");
    plan::OutputOp::create(steps, value.getLoc(), name ? name : StringAttr::get(context, "output" + Twine(index)),
                           getView(value));
  }
}

void PlanEmitter::emitExchange(ReshardOp op) {
  if (storage.isView(op))
    return;
  plan::ExchangeOp::create(getSteps(op.getResult()), op.getLoc(), getView(op.getOperand()), getView(op.getResult()),
                           getStepName(op));
}

void PlanEmitter::emitKernel(const Group &group) {
  Operation *root = group.getRoot();
  Value result = root->getResult(0);
  auto stripped = [](Value value) { return withSharding(cast<RankedTensorType>(value.getType()), {}); };
  auto isInline = [](Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    return elements && elements.isSplat();
  };
  // Arguments in order of use; uniform constants go into the kernel itself.
  llvm::SetVector<Value> arguments;
  DenseSet<Operation *> members(group.ops.begin(), group.ops.end());
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()) && !isInline(operand))
        arguments.insert(operand);

  auto getLayout = [&](Value value) -> Attribute {
    plan::BufferOp buffer = getBuffer(value);
    return plan::LayoutAttr::getFor(buffer.getFormat(), buffer.getTensorType());
  };
  SmallVector<Attribute> layouts = llvm::map_to_vector(arguments, getLayout);
  SmallVector<Attribute> resultLayouts = llvm::map_to_vector(root->getResults(), getLayout);

  OpBuilder builder(program);
  auto kernel = plan::KernelOp::create(builder, root->getLoc(), builder.getStringAttr("kernel" + Twine(numKernels++)),
                                       builder.getArrayAttr(layouts), builder.getArrayAttr(resultLayouts),
                                       DenseI64ArrayAttr(), IntegerAttr(), plan::BlocksAttr(), UnitAttr());
  Block *body = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value argument : arguments)
    mapping.map(argument, body->addArgument(stripped(argument), argument.getLoc()));
  builder.setInsertionPointToStart(body);
  SmallVector<Attribute> loops;
  llvm::append_range(loops, getLoops(root).take_front(cast<RankedTensorType>(result.getType()).getRank()));
  for (Operation *op : group.ops) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, builder.clone(*operand.getDefiningOp())->getResult(0));
    Operation *clone = builder.clone(*op, mapping);
    for (auto [copy, original] : llvm::zip_equal(clone->getResults(), op->getResults()))
      copy.setType(stripped(original));
    clone->removeAttr(kLoopsAttrName); // One kernel serves all ranks; the launch says who runs what.
    llvm::append_range(loops, getLoops(op).drop_front(cast<RankedTensorType>(op->getResult(0).getType()).getRank()));
  }
  auto lookup = [&](Value value) { return mapping.lookup(value); };
  plan::YieldOp::create(builder, root->getLoc(), llvm::map_to_vector(root->getResults(), lookup));

  SmallVector<int64_t> staticLoops;
  for (auto [index, loop] : llvm::enumerate(loops))
    if (!cast<plan::LoopAttr>(loop).isSplit())
      staticLoops.push_back(index);
  kernel.setStaticLoops(staticLoops);
  kernel.setInPlace(storage.isInPlace(root));
  SmallVector<Attribute> checks;
  for (const plan::IndexCheck &check : kernel.getIndexChecks()) {
    StringAttr name = getStepName(check.op);
    checks.push_back(name ? name : builder.getStringAttr(""));
  }

  auto view = [&](Value value) { return getView(value); };
  SmallVector<Value> reads = llvm::map_to_vector(arguments, view);
  SmallVector<Value> writes = llvm::map_to_vector(root->getResults(), view);
  plan::LaunchOp::create(getSteps(result), root->getLoc(), FlatSymbolRefAttr::get(kernel), reads, writes,
                         builder.getArrayAttr(loops), getStepName(root),
                         checks.empty() ? ArrayAttr() : builder.getArrayAttr(checks));
}

LogicalResult PlanEmitter::emitCall(const Group &group) {
  Value result = group.getRoot()->getResult(0);
  OpBuilder &builder = getSteps(result);
  Location loc = group.call->getLoc();
  StringAttr name = getStepName(group.call);
  ArrayAttr loops = builder.getArrayAttr(getLoops(group.call));
  auto postOps = builder.getArrayAttr(SmallVector<Attribute>(group.postOps.begin(), group.postOps.end()));
  auto inFormat = [&](Value value, FormatAttr format) { return getViewInFormat(value, format); };
  auto rowMajor = [&](Value value) {
    return inFormat(value, FormatAttr::getRowMajor(context, cast<RankedTensorType>(value.getType()).getRank()));
  };
  // Operations other than matrix products want input and result in one format.
  FormatAttr format = formats.lookup(group.call->getResult(0));
  SmallVector<Value> postTensors = llvm::map_to_vector(group.postTensors, [&](Value v) { return getView(v); });
  return TypeSwitch<Operation *, LogicalResult>(group.call)
      .Case([&](ConvOp op) {
        Value input = inFormat(op.getInput(), format);
        Value weights = rowMajor(op.getWeights());
        plan::ConvolutionOp::create(builder, loc, input, weights, getView(result), postTensors, loops,
                                    op.getStridesAttr(), op.getDilationsAttr(), op.getPadsLowAttr(), op.getGroupsAttr(),
                                    /*transposed=*/UnitAttr(), postOps, name, /*memory=*/{});
        return success();
      })
      .Case([&](ConvTransposeOp op) {
        Value input = inFormat(op.getInput(), format);
        Value weights = rowMajor(op.getWeights());
        plan::ConvolutionOp::create(builder, loc, input, weights, getView(result), postTensors, loops,
                                    op.getStridesAttr(), op.getDilationsAttr(), op.getPadsLowAttr(), op.getGroupsAttr(),
                                    builder.getUnitAttr(), postOps, name, /*memory=*/{});
        return success();
      })
      .Case([&](MatMulOp op) {
        Value a = rowMajor(op.getLhs()), b = rowMajor(op.getRhs());
        plan::MatMulOp::create(builder, loc, a, b, getView(result), postTensors, loops, UnitAttr(), UnitAttr(),
                               /*row_dims=*/IntegerAttr(), postOps, name, /*memory=*/{});
        return success();
      })
      .Case([&](PoolOp op) {
        Value input = inFormat(op.getInput(), format);
        plan::PoolOp::create(builder, loc, input, getView(result), loops, op.getKindAttr(), op.getKernelAttr(),
                             op.getStridesAttr(), op.getDilationsAttr(), op.getPadsLowAttr(), name, /*memory=*/{});
        return success();
      })
      .Default([](Operation *op) { return op->emitError("has no library call"); });
}

LogicalResult PlanEmitter::emitGroup(const Group &group) {
  if (group.call)
    return emitCall(group);
  emitKernel(group);
  return success();
}

LogicalResult PlanEmitter::run() {
  Block *body = program.getBlock();
  // Buffers and views, then the prologue, then ports and steps.
  buffers.setInsertionPointToEnd(body);
  if (failed(readLoops()))
    return failure();
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(body);
  auto prologueOp = plan::PrologueOp::create(builder, function.getLoc());
  prologueOp.getBody().emplaceBlock();
  prologue.emplace(context);
  prologue->setInsertionPointToEnd(prologueOp.getBlock());
  buffers.setInsertionPoint(prologueOp);
  steps.setInsertionPointToEnd(body);

  emitPorts();
  DenseMap<Operation *, const Group *> roots;
  for (const Group &group : groups)
    roots[group.getRoot()] = &group;
  for (Operation &op : function.getBody().front()) {
    if (auto reshard = dyn_cast<ReshardOp>(op))
      emitExchange(reshard);
    else if (const Group *group = roots.lookup(&op); group && failed(emitGroup(*group)))
      return failure();
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
  FailureOr<MeshOp> mesh = getModuleMesh(module);
  if (failed(mesh))
    return signalPassFailure();
  if (!*mesh) {
    module.emitError("has no mesh: a program needs one, if only of one rank");
    return signalPassFailure();
  }
  FailureOr<Libraries> callable = Libraries::create(module.getLoc(), libraries, features);
  if (failed(callable))
    return signalPassFailure();
  auto functions = llvm::to_vector(getDefinitions(module));
  for (func::FuncOp function : functions) {
    Formats formats = assignFormats(function, *callable);
    SmallVector<Group> groups = formGroups(function, formats, *callable);
    OpBuilder builder(function);
    StringAttr model = module->getAttrOfType<StringAttr>("dovetail.model");
    auto program =
        plan::ProgramOp::create(builder, function.getLoc(), function.getSymNameAttr(), FlatSymbolRefAttr::get(*mesh),
                                builder.getStringAttr(target), plan::MathModeAttr::get(&getContext(), math),
                                model ? model : builder.getStringAttr(""));
    program.getBody().emplaceBlock();
    if (failed(PlanEmitter(function, *mesh, program, formats, groups).run()))
      return signalPassFailure();
    function.erase();
  }
}
