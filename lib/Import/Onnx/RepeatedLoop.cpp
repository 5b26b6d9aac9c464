//===- RepeatedLoop.cpp - Loops that are counted at run time --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imports a Loop or Scan as operations of one iteration, which is repeated.
//
//===----------------------------------------------------------------------===//

#include "GraphBody.h"

#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace dovetail;
using namespace dovetail::importer;

static llvm::LogicalResult refuseType(OnnxNode &node, llvm::StringRef name, const Binding &first,
                                      const Binding &second) {
  std::string types;
  llvm::raw_string_ostream(types) << first << ", and then " << second;
  return node.unsupported("the loop-carried value '" + name + "' is " + types +
                              ", but the trip count is known at run time only, or is too large to unroll the loop",
                          "have iterations carry tensors of constant shape, of the largest one that is needed, and "
                          "write to them by TensorScatter or ScatterND");
}

namespace {
/// Creates what a loop carries, and what it becomes.
class Carrier {
public:
  Carrier(OnnxNode &node, uint64_t loop) : node(node), loop(loop) {}

  /// The next value that the loop carries, in one iteration.
  mlir::Value carry(mlir::Value init) {
    return init ? IterArgOp::create(node.getBuilder(), node.getLoc(), init.getType(), init, loop, numCarried++)
                : mlir::Value();
  }
  /// Says what the next iteration gets in place of `carried`, and returns what there is of it behind the loop.
  mlir::Value set(mlir::Value carried, mlir::Value value) {
    if (!carried || !value)
      return {};
    auto carry = carried.getDefiningOp<IterArgOp>();
    auto next =
        YieldOp::create(node.getBuilder(), node.getLoc(), carried.getType(), carried, value, loop, carry.getSlot());
    return LoopResultOp::create(node.getBuilder(), node.getLoc(), carried.getType(), carried, next, loop,
                                carry.getSlot());
  }

private:
  OnnxNode &node;
  uint64_t loop, numCarried = 0;
};
} // namespace

static mlir::Value getTruth(OnnxNode &node, bool value) {
  auto type = mlir::RankedTensorType::get({}, node.getBuilder().getI1Type());
  return node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef(value)));
}

/// Results `element` of all iterations, of which there are `length`, along a new dimension `axis`; `trip`: the number
/// of an iteration.
static mlir::Value stack(OnnxNode &node, Carrier &carrier, mlir::Value element, mlir::Value trip, int64_t length,
                         int64_t axis, bool isReversed) {
  mlir::RankedTensorType type = OnnxNode::getType(element);
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), 1);
  mlir::Value row = node.reshape(element, shape);
  shape[0] = length;
  mlir::Value rows = carrier.carry(node.splat(type.clone(shape), 0));
  if (isReversed)
    trip = node.create<SubOp>(node.reshape(node.constantInts(length - 1), {}), trip);
  mlir::Value all =
      carrier.set(rows, node.create<ScatterNDOp>(rows, node.reshape(trip, {1, 1}), row, ReduceKindAttr()));
  llvm::SmallVector<int64_t> permutation;
  for (int64_t dim = 1; dim <= type.getRank(); ++dim)
    permutation.push_back(dim);
  permutation.insert(permutation.begin() + axis, 0);
  return axis == 0 ? all : node.transpose(all, permutation);
}

llvm::LogicalResult GraphImporter::importRepeated(OnnxNode &node, Body &body, const RepeatedLoop &loop) {
  const int numCarried = loop.initial.size(), firstResult = loop.hasCondition ? 1 : 0;
  auto getName = [&](int number) { return body.getOutputName(firstResult + number); };
  auto refuseBounded = [&](int number) {
    return node.unsupported("output '" + getName(number) +
                            "' of an iteration has an extent that varies from run to run");
  };
  for (auto [number, binding] : llvm::enumerate(loop.initial)) {
    if (binding.kind != Binding::Known) {
      std::string type;
      llvm::raw_string_ostream(type) << binding;
      return node.unsupported("the loop-carried value '" + getName(number) + "' is " + type + ", not a tensor",
                              "have iterations carry a tensor of constant shape, and write to it");
    }
    if (!node.getCounts(binding.value).empty())
      return refuseBounded(number);
  }
  mlir::Value zero = node.reshape(node.constantInts(0), {}), one = node.reshape(node.constantInts(1), {});
  mlir::Value trips = loop.trips ? node.reshape(loop.trips, {}) : mlir::Value();
  mlir::Value on = loop.on ? loop.on : getTruth(node, true);
  if (trips)
    on = node.create<AndOp>(on, node.create<LessOp>(zero, trips));
  if (!on || !one)
    return llvm::failure();

  Carrier carrier(node, numLoops++);
  mlir::Value condition = carrier.carry(on), trip = carrier.carry(zero);
  llvm::SmallVector<mlir::Value> carried;
  llvm::SmallVector<Binding> arguments;
  // An iteration that is computed has been asked for.
  if (loop.hasCondition)
    arguments = {Binding::known(trip), Binding::known(getTruth(node, true))};
  for (const Binding &binding : loop.initial)
    arguments.push_back(Binding::known(carried.emplace_back(carrier.carry(binding.value))));
  for (int number = 0; number < loop.numEntries; ++number) {
    mlir::Value entry = loop.getEntry(number, trip);
    if (!entry)
      return llvm::failure();
    arguments.push_back(Binding::known(entry));
  }
  mlir::Operation *last = getLastOp(node);
  auto results = body.importIteration(0, /*numLeft=*/std::nullopt, arguments);
  if (failed(results))
    return llvm::failure();
  if (isAnyUnknown(*results))
    return setUnknown(node);
  // What does not depend on the iteration comes before the loop, also if there is none.
  if (last != getLastOp(node) && failed(guardLookups(node, last, on)))
    return llvm::failure();

  Condition goesOn;
  if (loop.hasCondition) {
    auto given = readCondition(node, results->front(), "the condition of its body");
    if (failed(given))
      return llvm::failure();
    goesOn = *given;
  }
  mlir::Value next = goesOn.value ? goesOn.value : getTruth(node, goesOn.isTrue);
  mlir::Value nextTrip = node.create<AddOp>(trip, one);
  if (trips)
    next = node.create<AndOp>(next, node.create<LessOp>(nextTrip, trips));
  // How many iterations there were.
  mlir::Value number = carrier.set(trip, nextTrip);
  if (!carrier.set(condition, next) || !number)
    return llvm::failure();
  for (int number = 0; number < numCarried; ++number) {
    const Binding &result = (*results)[firstResult + number];
    if (result.kind != Binding::Known || result.value.getType() != carried[number].getType())
      return refuseType(node, getName(number), loop.initial[number], result);
    if (!node.getCounts(result.value).empty())
      return refuseBounded(number);
    (void)node.setBinding(number, Binding::known(carrier.set(carried[number], result.value)));
  }
  bool isCounted = loop.length && !loop.on && !goesOn.value && goesOn.isTrue;
  for (int entry = 0; entry < loop.numStacked; ++entry) {
    int place = numCarried + entry;
    const Binding &result = (*results)[firstResult + place];
    if (!node.isResultUsed(place))
      continue;
    if (!loop.length)
      return node.unsupported("the extent of '" + getName(place) +
                                  "' depends on the trip count, which is known at run time only",
                              "give a constant 'M', the largest trip count, or have iterations carry a tensor of "
                              "constant shape, and write to it");
    if (result.kind != Binding::Known)
      return node.invalid("'" + getName(place) + "' is not a tensor in each iteration");
    if (!node.getCounts(result.value).empty())
      return refuseBounded(place);
    int64_t rank = OnnxNode::getRank(result.value) + 1;
    auto axis = node.normalizeAxis(loop.axes.empty() ? 0 : loop.axes[entry], rank);
    if (failed(axis))
      return llvm::failure();
    bool isReversed = !loop.directions.empty() && loop.directions[entry] != 0;
    // A condition ends the loop before all rows are there.
    llvm::SmallVector<int64_t> shape(OnnxNode::getShape(result.value));
    shape.insert(shape.begin(), *loop.length);
    if (!countElements(shape))
      return node.unsupported("'" + getName(place) + "' is too large: 'M' allows " + llvm::Twine(*loop.length) +
                                  " iterations, each with a part of it",
                              "give a smaller 'M'");
    mlir::Value all = stack(node, carrier, result.value, trip, *loop.length, *axis, isReversed);
    Counts counts(rank);
    if (!isCounted)
      counts[*axis] = number;
    if (failed(node.setResult(place, isCounted ? all : node.bound(all, counts))))
      return llvm::failure();
  }
  return llvm::success();
}
