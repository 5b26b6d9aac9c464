//===- ControlFlow.cpp - If and Loop -------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the import of If and Loop: the branch that a known condition takes, and loops iteration by iteration, so
// that whatever an iteration carries to the next one may change its shape. Where a condition is known at run time only,
// both branches are imported, or all iterations that there may be, and each result is chosen; or one iteration is,
// where no number bounds them.
//
//===----------------------------------------------------------------------===//

#include "GraphBody.h"

#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

GraphImporter::ControlFlowFn GraphImporter::lookupControlFlow(llvm::StringRef opType) {
  if (opType == "If")
    return &GraphImporter::importIf;
  if (opType == "Loop")
    return &GraphImporter::importLoop;
  return opType == "Scan" ? &GraphImporter::importScan : nullptr;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static llvm::FailureOr<int64_t> readTripCount(OnnxNode &node, unsigned operand, llvm::StringRef what) {
  auto values = node.getConstantInts(operand, what);
  if (failed(values))
    return llvm::failure();
  if (values->size() != 1)
    return node.invalid("'" + what + "' is not a single number");
  return std::max<int64_t>(values->front(), 0);
}

namespace {

/// Chooses between the results of two branches when the program runs.
class Chooser {
public:
  /// `choice`: the number of a choice whose sides need not be computed both.
  Chooser(OnnxNode &node, mlir::Value condition, std::optional<uint64_t> choice = std::nullopt)
      : node(node), condition(condition), choice(choice) {}

  /// `onTrue` where the condition, of rank 0, holds. `what` is the subject of a message. Fails where the two differ in
  /// more than elements and extents.
  llvm::FailureOr<Binding> choose(const Binding &onTrue, const Binding &onFalse, const llvm::Twine &what);

private:
  mlir::Value select(mlir::Value a, mlir::Value b) {
    if (a == b || !a || !b)
      return b ? a : b;
    if (choice)
      return IfOp::create(node.getBuilder(), node.getLoc(), a.getType(), condition, a, b, *choice);
    return node.create<SelectOp>(condition, a, b);
  }
  /// Null where the tensors differ in type or rank.
  mlir::Value selectTensor(mlir::Value a, mlir::Value b);
  /// `value` with zeros up to `shape`.
  mlir::Value extend(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// The extent of a dimension that is the one of `a` or the one of `b`.
  mlir::Value chooseCount(mlir::Value a, mlir::Value b, unsigned dim);

  OnnxNode &node;
  mlir::Value condition;
  std::optional<uint64_t> choice;
  /// Results whose extents are chosen alike have one count.
  struct Chosen {
    Extent a, b;
    mlir::Value count;
  };
  llvm::SmallVector<Chosen> counts;
};

} // namespace

mlir::Value Chooser::extend(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  if (OnnxNode::getShape(value) == shape)
    return value;
  llvm::SmallVector<int64_t> low(shape.size(), 0), high;
  for (auto [from, to] : llvm::zip(OnnxNode::getShape(value), shape))
    high.push_back(to - from);
  Counts given(node.getCounts(value));
  mlir::Value zero = node.splat(mlir::RankedTensorType::get({}, OnnxNode::getType(value).getElementType()), 0);
  return node.state(node.create<PadOp>(value, OptionalOperand{zero}, low, high, PadMode::Constant), given);
}

mlir::Value Chooser::chooseCount(mlir::Value a, mlir::Value b, unsigned dim) {
  Extent extentA = node.getExtent(a, dim), extentB = node.getExtent(b, dim);
  for (const Chosen &chosen : counts)
    if (chosen.a == extentA && chosen.b == extentB)
      return chosen.count;
  mlir::Value count = select(node.toScalar(extentA), node.toScalar(extentB));
  counts.push_back({extentA, extentB, count});
  return count;
}

mlir::Value Chooser::selectTensor(mlir::Value a, mlir::Value b) {
  if (a == b)
    return a;
  mlir::RankedTensorType typeA = OnnxNode::getType(a), typeB = OnnxNode::getType(b);
  if (typeA.getElementType() != typeB.getElementType() || typeA.getRank() != typeB.getRank())
    return {};
  if (typeA == typeB && node.getCounts(a) == node.getCounts(b))
    return node.state(select(a, b), Counts(node.getCounts(a)));
  Counts chosen(typeA.getRank());
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, extentA, extentB] : llvm::enumerate(typeA.getShape(), typeB.getShape())) {
    shape.push_back(std::max(extentA, extentB));
    chosen[dim] = node.getExtent(a, dim) == node.getExtent(b, dim) ? node.getCount(a, dim) : chooseCount(a, b, dim);
  }
  mlir::Value value = select(extend(a, shape), extend(b, shape));
  return value ? node.bound(value, chosen) : value;
}

llvm::FailureOr<Binding> Chooser::choose(const Binding &onTrue, const Binding &onFalse, const llvm::Twine &what) {
  auto differ = [&] {
    std::string types;
    llvm::raw_string_ostream(types) << onTrue << " or " << onFalse;
    return node.unsupported(
        what + " is " + types + ", depending on a condition that is known at run time only",
        "export the model with values of one type and rank, or with a condition that shapes decide");
  };
  if (onTrue.kind == Binding::Unknown || onFalse.kind == Binding::Unknown)
    return Binding::unknown();
  if (onTrue.kind != onFalse.kind)
    return differ();
  if (onTrue.kind == Binding::Known) {
    mlir::Value value = selectTensor(onTrue.value, onFalse.value);
    if (!value)
      return differ();
    return Binding::known(value);
  }
  if (onTrue.kind != Binding::Sequence)
    return onTrue;
  if (onTrue.elements->size() != onFalse.elements->size())
    return differ();
  std::vector<mlir::Value> elements;
  for (auto [a, b] : llvm::zip_equal(*onTrue.elements, *onFalse.elements)) {
    elements.push_back(selectTensor(a, b));
    if (!elements.back())
      return differ();
  }
  return Binding::sequence(std::move(elements));
}

mlir::Operation *dovetail::importer::getLastOp(OnnxNode &node) {
  mlir::Block *block = node.getBuilder().getBlock();
  return block->empty() ? nullptr : &block->back();
}

llvm::LogicalResult dovetail::importer::guardLookups(OnnxNode &node, mlir::Operation *last, mlir::Value condition) {
  mlir::OpBuilder &builder = node.getBuilder();
  mlir::Block *block = builder.getBlock();
  llvm::SmallVector<DefinitionOpInterface> ops;
  for (mlir::Operation *op = last ? last->getNextNode() : &block->front(); op; op = op->getNextNode())
    if (auto definitionOp = llvm::dyn_cast<DefinitionOpInterface>(op))
      ops.push_back(definitionOp);
  for (DefinitionOpInterface op : ops) {
    // A loop that ONNX does not begin might never end.
    if (auto carry = llvm::dyn_cast<IterArgOp>(op.getOperation()); carry && carry.getSlot() == 0) {
      builder.setInsertionPoint(op);
      mlir::Value guarded = node.create<AndOp>(condition, carry.getInit());
      builder.setInsertionPointToEnd(block);
      if (!guarded)
        return llvm::failure();
      carry->setOperand(0, guarded);
      continue;
    }
    Definition definition = op.getDefinition();
    for (const DataIndex &index : definition.getDataIndices()) {
      unsigned operand = definition.reads[index.read].operand;
      mlir::Value given = op->getOperand(operand);
      if (OnnxNode::getConstant(given))
        continue;
      builder.setInsertionPoint(op);
      mlir::Value guarded = node.create<SelectOp>(condition, given, node.scalarLike(given, 0));
      builder.setInsertionPointToEnd(block);
      if (!guarded)
        return llvm::failure();
      op->setOperand(operand, guarded);
    }
  }
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

/// So many iterations of loops are computed, though data may end them before.
static constexpr int64_t kMaxWastedTrips = 4;

/// Whether something built behind `last` costs more than to choose.
static bool isCostly(OnnxNode &node, mlir::Operation *last) {
  mlir::Block *block = node.getBuilder().getBlock();
  for (mlir::Operation *op = last ? last->getNextNode() : &block->front(); op; op = op->getNextNode())
    if (auto definitionOp = llvm::dyn_cast<DefinitionOpInterface>(op);
        definitionOp && (!definitionOp.isCheapElement() || definitionOp.isReduction()))
      return true;
  return false;
}

llvm::LogicalResult GraphImporter::importIf(OnnxNode &node, Scope &scope) {
  auto condition = readCondition(node, node.getOperand(0), "its condition");
  if (failed(condition))
    return llvm::failure();
  auto importBranch = [&](bool isTaken) {
    return Body(*this, node, scope, isTaken ? "then_branch" : "else_branch").importBranch();
  };
  if (!condition->value) {
    auto results = importBranch(condition->isTrue);
    if (failed(results))
      return llvm::failure();
    for (auto [number, result] : llvm::enumerate(*results))
      (void)node.setBinding(number, result);
    return llvm::success();
  }
  mlir::Operation *last = getLastOp(node), *first = last;
  auto onTrue = importBranch(true);
  if (failed(onTrue) || (last != getLastOp(node) && failed(guardLookups(node, last, condition->value))))
    return llvm::failure();
  mlir::Value isNot = node.create<NotOp>(condition->value);
  last = getLastOp(node);
  auto onFalse = importBranch(false);
  if (failed(onFalse) || !isNot || failed(guardLookups(node, last, isNot)))
    return llvm::failure();
  std::optional<uint64_t> choice;
  if (isCostly(node, first))
    choice = numChoices++;
  Chooser chooser(node, condition->value, choice);
  for (int number = 0; number < node.getProto().output_size(); ++number) {
    auto chosen = chooser.choose((*onTrue)[number], (*onFalse)[number],
                                 "its result '" + llvm::Twine(node.getProto().output(number)) + "'");
    if (failed(chosen) || failed(node.setBinding(number, *chosen)))
      return llvm::failure();
  }
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

llvm::LogicalResult GraphImporter::importLoop(OnnxNode &node, Scope &scope) {
  std::optional<int64_t> maxTrips;
  mlir::Value counted;
  if (mlir::Value given = node.getInput(0); given && !OnnxNode::getConstant(given)) {
    if (!OnnxNode::getType(given).getElementType().isInteger(64) || OnnxNode::getType(given).getNumElements() != 1)
      return node.invalid("'M' is not a single number");
    counted = given;
  } else if (node.getOperand(0).kind != Binding::Absent) {
    auto trips = readTripCount(node, 0, "M");
    if (failed(trips))
      return llvm::failure();
    maxTrips = *trips;
  }
  Condition active;
  if (node.getOperand(1).kind != Binding::Absent) {
    auto given = readCondition(node, node.getOperand(1), "its condition");
    if (failed(given))
      return llvm::failure();
    active = *given;
  }
  llvm::SmallVector<Binding> carried;
  for (unsigned number = 2; number < node.getNumInputs(); ++number)
    carried.push_back(node.getOperand(number));
  Body body(*this, node, scope, "body");
  int numCarried = carried.size(), numStacked = body.getNumOutputs() - 1 - numCarried;
  if (body.getNumInputs() != 2 + numCarried || numStacked < 0 ||
      node.getProto().output_size() > numCarried + numStacked)
    return node.invalid("its body has " + llvm::Twine(body.getNumInputs()) + " inputs and " +
                        llvm::Twine(body.getNumOutputs()) + " results, which do not fit it");
  // Whether there is an iteration, where that is not known. What does not depend on one comes before all of them.
  mlir::Value begins = active.value;
  if (counted) {
    mlir::Value isAny = node.create<LessOp>(node.reshape(node.constantInts(0), {}), node.reshape(counted, {}));
    begins = begins ? node.create<AndOp>(begins, isAny) : isAny;
    if (!begins)
      return llvm::failure();
  }
  mlir::Operation *last = getLastOp(node);
  if (failed(body.prepare()) || (begins && last != getLastOp(node) && failed(guardLookups(node, last, begins))))
    return llvm::failure();

  auto getTruth = [&] {
    return node.constant(
        mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({}, builder.getI1Type()), llvm::ArrayRef(true)));
  };
  // Where not all iterations can be imported, one is. What has been imported of others is of no use then.
  auto repeat = [&, first = active, initial = carried, before = numRepeated] {
    numRepeated = before;
    RepeatedLoop loop{initial, numStacked};
    loop.length = counted ? std::nullopt : maxTrips;
    loop.trips = loop.length ? node.constantInts(*loop.length) : counted;
    loop.on = first.value;
    return importRepeated(node, body, loop);
  };
  bool isLong = !maxTrips || *maxTrips > kMaxRepeatedNodes;
  // Of iterations that are expanded all are computed, also behind the one at which data end the loop.
  auto isRepeated = [&](int64_t trip) {
    if (!active.value || isLong)
      return active.value != mlir::Value();
    bool isWorthIt = !expandsLoops && *maxTrips - trip > kMaxWastedTrips;
    choseRepeat |= isWorthIt;
    return isWorthIt;
  };
  if (active.isTrue && (counted || isRepeated(0)))
    return repeat();

  // A condition that is known may end the loop long before.
  auto getNumLeft = [&](int64_t trip) { return isLong ? std::nullopt : std::optional(*maxTrips - trip); };
  std::vector<std::vector<mlir::Value>> stacked(numStacked);
  auto importIteration = [&](int64_t number, llvm::ArrayRef<Binding> values) {
    // An iteration that is computed has been asked for.
    mlir::Value isTrue = getTruth();
    llvm::SmallVector<Binding> arguments{Binding::known(node.reshape(node.constantInts(number), {})),
                                         Binding::known(isTrue)};
    llvm::append_range(arguments, values);
    return body.importIteration(number, getNumLeft(number), arguments);
  };
  for (int64_t trip = 0; active.isTrue && (!maxTrips || trip < *maxTrips); ++trip) {
    if (maxTrips && !body.fits(getNumLeft(trip)))
      return repeat();
    mlir::Operation *last = getLastOp(node);
    auto results = importIteration(trip, carried);
    if (failed(results))
      return llvm::failure();
    if (isAnyUnknown(*results))
      return setUnknown(node);
    if (active.value && last != getLastOp(node) && failed(guardLookups(node, last, active.value)))
      return llvm::failure();
    Chooser chooser(node, active.value);
    for (int number = 0; number < numCarried; ++number) {
      Binding next = (*results)[1 + number];
      if (active.value) {
        auto chosen =
            chooser.choose(next, carried[number], "the loop-carried value '" + body.getOutputName(1 + number) + "'");
        if (failed(chosen))
          return llvm::failure();
        next = *chosen;
      }
      carried[number] = next;
    }
    for (int number = 0; number < numStacked; ++number) {
      int output = 1 + numCarried + number;
      if (!node.isResultUsed(numCarried + number))
        continue;
      // As many rows as there are iterations: each writes its own.
      if (active.value)
        return repeat();
      if (failed(append(node, stacked[number], (*results)[output], body.getOutputName(output))))
        return llvm::failure();
    }
    auto next = readCondition(node, results->front(), "the condition of its body");
    if (failed(next))
      return llvm::failure();
    if (next->value && active.value)
      next->value = node.create<AndOp>(active.value, next->value);
    else if (!next->value && next->isTrue)
      next->value = active.value;
    active = *next;
    if (isRepeated(trip + 1))
      return repeat();
  }

  llvm::SmallVector<Binding> example;
  for (int number = 0; number < numCarried; ++number)
    (void)node.setBinding(number, carried[number]);
  for (int number = 0; number < numStacked; ++number) {
    if (!node.isResultUsed(numCarried + number))
      continue;
    mlir::Value result;
    if (stacked[number].empty()) {
      // Only an iteration can say of which type its results would be.
      if (example.empty()) {
        auto results = importIteration(0, carried);
        if (failed(results))
          return llvm::failure();
        if (isAnyUnknown(*results))
          return setUnknown(node);
        example = *results;
      }
      int output = 1 + numCarried + number;
      if (example[output].kind != Binding::Known)
        return node.invalid("'" + body.getOutputName(output) + "' is not a tensor");
      result = stackNone(node, example[output].value, 0);
    } else {
      result = node.stack(stacked[number], 0);
    }
    if (failed(node.setResult(numCarried + number, result)))
      return llvm::failure();
  }
  return llvm::success();
}
