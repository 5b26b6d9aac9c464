//===- ChooseShardings.cpp - Decide how everything is split ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds how everything is split, and gives operations, types and requested values what was found.
//
//===----------------------------------------------------------------------===//

#include "PassCluster.h"
#include "ShardingAssignment.h"

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Planner/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSESHARDINGS
#include "dovetail/Planner/Passes.h.inc"
} // namespace dovetail

#include <cmath>

using namespace mlir;
using namespace dovetail;

namespace {

struct ChooseShardings : dovetail::impl::ChooseShardingsBase<ChooseShardings> {
  using ChooseShardingsBase::ChooseShardingsBase;
  ChooseShardings(ChooseShardingsOptions options, std::shared_ptr<const Cluster> found)
      : ChooseShardingsBase(std::move(options)), found(std::move(found)) {}

  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh)
      return;
    for (auto function : getDefinitions(getOperation()))
      if (failed(runOnFunction(function, *mesh)))
        return signalPassFailure();
  }

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }
  LogicalResult runOnFunction(func::FuncOp function, MeshOp mesh);

  std::shared_ptr<const Cluster> found;
};

/// Gives a function the shardings of an assignment.
class Commit {
public:
  Commit(func::FuncOp function, MeshOp meshOp, const ShardingAssignment &assignment, const Goal &goal)
      : function(function), mesh(meshOp.getMesh()), meshName(FlatSymbolRefAttr::get(meshOp)), assignment(assignment),
        costs(mesh, goal.cluster, goal.transport), objective(goal.objective) {}

  void run();

  /// What was decided, of operations that are still there.
  DenseMap<Operation *, LoopOption> decided;
  /// Operations gave way to others, which are to be decided.
  bool isOpen = false;

private:
  /// Replaces an operation that ranks cannot divide by itself as `option` says; else leaves such loops whole.
  bool decompose(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option);
  /// Has the loops of an operation split as those of the one that gives its first operand.
  void follow(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option);
  void setLoops(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option, LoopShardings loops);
  void assign(DefinitionOpInterface op);
  void meet(Value value, ShardingAttr wanted);
  /// What a user needs of a value; null for a result of the function that is to be split in no certain way.
  ShardingAttr getNeed(OpOperand &use) const;
  /// Brings a value to its users in the form that was found for all of them.
  void bring(Value value, ShardingAttr form);
  /// Combines operands that are partial and are to be whole sums.
  void combine(DefinitionOpInterface op);
  /// Gathers a constant of which ranks store so much for the operations that need more.
  void gather(Value constant, ShardingAttr stored);

  func::FuncOp function;
  layout::Mesh mesh;
  FlatSymbolRefAttr meshName;
  const ShardingAssignment &assignment;
  ExchangeCosts costs;
  Objective objective;
  /// What users read in place of values whose sharding is requested.
  DenseMap<Value, Value> met;
};

} // namespace

static void setSharding(Value value, ShardingAttr sharding) {
  value.setType(withSharding(cast<RankedTensorType>(value.getType()), sharding));
}

bool Commit::decompose(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option) {
  for (auto [index, loop] : llvm::enumerate(relation.loops)) {
    if (!mustDecompose(op, loop, option.loops[index]))
      continue;
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> replacement = op.decompose(builder, option.loops);
    if (succeeded(replacement)) {
      op->replaceAllUsesWith(*replacement);
      // What is requested of a result is requested of what takes its place.
      for (auto [result, value] : llvm::zip_equal(op->getResults(), *replacement))
        if (ShardingAttr wanted = assignment.values.lookup(result))
          meet(value, wanted);
      op->erase();
      return isOpen = true;
    }
    LoopShardings loops(option.loops);
    loops[index] = DimShardingAttr::getUnsplit(op.getContext());
    setLoops(op, relation, option, std::move(loops));
    op.emitRemark("is computed whole: ranks cannot divide dimension ")
        << index << ", along which it reduces or accumulates";
  }
  return false;
}

void Commit::setLoops(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option, LoopShardings loops) {
  option.loops = std::move(loops);
  option.passedAxes.clear();
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    option.needs[number] =
        getNeededSharding(relation, number, cast<RankedTensorType>(operand.getType()), option.loops, meshName);
}

void Commit::follow(DefinitionOpInterface op, const OpRelation &relation, LoopOption &option) {
  Operation *first = op->getOperand(0).getDefiningOp();
  while (auto reshard = dyn_cast_if_present<ReshardOp>(first))
    first = reshard.getOperand().getDefiningOp();
  if (auto entry = decided.find(first); entry != decided.end())
    setLoops(op, relation, option, LoopShardings(entry->second.loops));
}

void Commit::meet(Value value, ShardingAttr wanted) {
  Value sent = reshardAfter(value, wanted);
  value.replaceAllUsesExcept(sent, sent.getDefiningOp());
  met[value] = sent;
}

ShardingAttr Commit::getNeed(OpOperand &use) const {
  if (auto reshard = dyn_cast<ReshardOp>(use.getOwner()))
    return getSharding(reshard.getResult());
  if (auto option = decided.find(use.getOwner()); option != decided.end())
    return option->second.needs[use.getOperandNumber()];
  return assignment.outputs.lookup(&use);
}

void Commit::bring(Value value, ShardingAttr form) {
  ShardingAttr held = getSharding(value);
  if (!held || held == form)
    return;
  auto type = cast<RankedTensorType>(value.getType());
  layout::Sharding from = toLayout(form, mesh, type.getRank());
  SmallVector<OpOperand *> uses;
  llvm::SmallSetVector<ShardingAttr, 4> needs;
  for (OpOperand &use : value.getUses()) {
    ShardingAttr need = getNeed(use);
    if (need ? covers(held, need, type, mesh) : !held.isPartial())
      continue;
    if (!need)
      need = held.withoutPartial();
    // The windows of a user may leave out what others read.
    if (!layout::verifyExchange(mesh, type.getShape(), from, toLayout(need, mesh, type.getRank())))
      return;
    uses.push_back(&use);
    needs.insert(need);
  }
  // Else partitioning gives each user what it needs, which costs no more.
  auto getCost = [&](ShardingAttr some, ShardingAttr other) {
    std::optional<ExchangeCost> cost = costs.get(type, some, other);
    return cost ? cost->get(objective) : std::numeric_limits<double>::infinity();
  };
  double direct = 0, brought = getCost(held, form);
  for (ShardingAttr need : needs) {
    direct += getCost(held, need);
    brought += getCost(form, need);
  }
  if (brought >= direct)
    return;
  Value sent = reshardAfter(value, form);
  for (OpOperand *use : uses)
    use->set(sent);
}

void Commit::assign(DefinitionOpInterface op) {
  OpRelation relation = op.getRelation();
  LoopOption option = assignment.operations.lookup(op);
  if (op->hasTrait<SplitAsFirst>())
    follow(op, relation, option);
  if (decompose(op, relation, option))
    return;
  assignLoopShardings(op, relation, option.loops, meshName);
  // What is linear in a sum adds up, too: its own sum over some axes joins the one that passes through.
  if (!option.passedAxes.empty())
    for (Value result : op->getResults())
      setSharding(result, option.result);
  decided[op] = option;
  for (Value result : op->getResults())
    if (ShardingAttr wanted = assignment.values.lookup(result); wanted && wanted != getSharding(result))
      meet(result, wanted);
}

void Commit::combine(DefinitionOpInterface op) {
  auto option = decided.find(op);
  if (option == decided.end())
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    ShardingAttr needed = option->second.needs[operand.getOperandNumber()];
    // Else partitioning would let it pass, as the operation is linear in it.
    if (!isPartial(value) || needed.isPartial() || !op.isLinearIn(operand.getOperandNumber()))
      continue;
    operand.set(reshardBefore(op, value, needed));
  }
}

void Commit::gather(Value constant, ShardingAttr stored) {
  auto type = cast<RankedTensorType>(constant.getType());
  Value pieces;
  for (OpOperand &use : llvm::make_early_inc_range(constant.getUses())) {
    ShardingAttr need = getNeed(use);
    // What they store is stated by partitioning for all others.
    if (!need || covers(stored, need, type, mesh))
      continue;
    if (!pieces)
      pieces = reshardAfter(constant, stored);
    use.set(reshardBefore(use.getOwner(), pieces, need));
  }
}

void Commit::run() {
  for (BlockArgument argument : function.getArguments())
    setSharding(argument, assignment.arguments.lookup(argument));
  for (auto op : llvm::make_early_inc_range(function.getBody().front().getOps<DefinitionOpInterface>()))
    if (assignment.operations.contains(op))
      assign(op);
  // What is still to be decided may change what operations read.
  if (isOpen)
    return;
  SmallVector<Value> values(function.getArguments());
  for (Operation &op : function.getBody().front())
    llvm::append_range(values, op.getResults());
  for (Value value : values)
    if (ShardingAttr form = assignment.forms.lookup(value)) {
      Value read = met.lookup(value);
      bring(read ? read : value, form);
    }
  for (auto op : function.getBody().front().getOps<DefinitionOpInterface>())
    combine(op);
  for (const auto &[constant, stored] : assignment.stored)
    gather(constant, stored);
}

/// `1.5 % more time`, of what takes so much more than all else: a share, which may be negative.
static std::string compare(double more, StringRef what) {
  std::string percent = llvm::formatv("{0:f1}", 100 * std::abs(more)).str();
  if (percent == "0.0")
    return (what == "bytes" ? "as many " : "as much ") + what.str();
  return percent + (more > 0 ? " % more " : " % less ") + what.str();
}

/// The axes that split each loop, or with what sizes: dimensions of the result, then what is summed over.
static std::string describe(ArrayRef<DimShardingAttr> loops, size_t rank, bool withSizes) {
  if (llvm::none_of(loops, [](DimShardingAttr loop) { return loop.isSplit(); }))
    return "not split";
  std::string text = "[";
  for (auto [index, loop] : llvm::enumerate(loops)) {
    text += index == 0 ? "" : index == rank ? " | " : ", ";
    if (!loop.isSplit())
      text += "_";
    for (auto [number, axis] : llvm::enumerate(loop.getAxes()))
      text += (number ? "+" : "") + axis.str();
    for (unsigned piece = 0; withSizes && piece < loop.getNumPieces(); ++piece)
      text += (piece ? "+" : ":") + std::to_string(loop.getPiece(piece).size());
  }
  return text + "]";
}

/// Says how far from the best the result may be, where that is not proven.
static void emitGap(func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal) {
  auto [cost, bound] = std::pair(assignment.expected.cost, assignment.expected.bound);
  if (cost <= bound * (1 + 1e-9) || (!assignment.isCut && !goal.explain))
    return;
  auto format = [&](double value) {
    return goal.objective == Objective::Time ? llvm::formatv("{0:f3} ms", value * 1e3).str()
                                             : llvm::formatv("{0:f0} bytes", value).str();
  };
  std::string text = "the best way to split it that was found takes " + format(cost) +
                     " as estimated, and none takes less than " + format(bound) + ", " +
                     llvm::formatv("{0:f1} % less", 100 * (1 - bound / cost)).str();
  if (assignment.isCut)
    function.emitWarning(text) << ": the search ended at its limit";
  else
    function.emitRemark(text);
}

static void emitExplanations(func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal) {
  if (assignment.numLimited > 0)
    function.emitRemark("on a mesh of so many axes, not all ways to split ")
        << assignment.numLimited << " of its " << assignment.operations.size() << " operations were tried";
  const char *what = goal.objective == Objective::Time    ? "time"
                     : goal.objective == Objective::Bytes ? "bytes"
                                                          : "memory";
  // What else would have to change for it to fit is not looked for.
  const char *reserve = goal.memory ? ", if it fits" : "";
  for (const Explanation &explanation : assignment.explanations) {
    size_t rank = cast<RankedTensorType>(explanation.op->getResult(0).getType()).getRank();
    std::string chosen = describe(explanation.chosen, rank, false);
    std::string other = describe(explanation.runnerUp, rank, false);
    if (chosen == other) {
      chosen = describe(explanation.chosen, rank, true);
      other = describe(explanation.runnerUp, rank, true);
    }
    std::string others =
        explanation.others == 0 ? "has" : "and " + std::to_string(explanation.others) + " like it have";
    bool isSplit = llvm::any_of(explanation.chosen, [](DimShardingAttr loop) { return loop.isSplit(); });
    explanation.op->emitRemark(others) << (isSplit ? " loops split as " + chosen : " loops that are not split")
                                       << "; the next best, " << other << ", is expected to take "
                                       << compare(explanation.more, what) << " in all" << reserve;
  }
}

static std::string formatBytes(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return llvm::formatv(unit == 0 ? "{0:f0} {1}" : "{0:f1} {1}", bytes, units[unit]).str();
}

/// The name of the tensor that is made at `location`, or else that of what makes it.
static std::string getName(Location location) {
  std::string name = getTensorName(location).str();
  if (name.empty())
    name = getNodeTitle(location);
  return name.empty() ? "" : "'" + name + "'";
}

/// `tensor 'x' is split as [_, y:3+4], but 'z', which reads it, as [y:2+2, _]; ranks receive 3.0 KiB for that`.
static std::string describe(const Move &move) {
  auto getRank = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  auto describeSplit = [](const std::string &split) { return split == "not split" ? "whole" : "split as " + split; };
  std::string name = getName(move.value.getLoc());
  std::string text = (name.empty() ? "a tensor" : "tensor " + name) + " is " +
                     describeSplit(describe(move.from, getRank(move.value), /*withSizes=*/true));
  if (move.reader) {
    std::string reader = getName(move.reader->getLoc());
    text += ", but " + (reader.empty() ? "an operation that reads it is " : reader + ", which reads it, is ") +
            describeSplit(describe(move.to, getRank(move.reader->getResult(0)), /*withSizes=*/true));
  } else {
    text +=
        ", but brought to what reads it " + describeSplit(describe(move.to, getRank(move.value), /*withSizes=*/true));
  }
  return text + "; ranks receive " + formatBytes(move.bytes) + " for that";
}

/// A warning about one of several places says how many others there are.
static std::string countOthers(size_t others) {
  if (others == 0)
    return "";
  return llvm::formatv("; so it is at {0} more place{1} (--remarks)", others, others == 1 ? "" : "s").str();
}

static const Move &getLargest(ArrayRef<Move> moves) {
  return *llvm::max_element(moves, [](const Move &a, const Move &b) { return a.bytes < b.bytes; });
}

std::string dovetail::describeGain(double seconds, double followedSeconds) {
  return llvm::formatv("all is expected to take {0:f3} ms, {1:f1} % less than {2:f3} ms with --follow 100",
                       1e3 * seconds, 100 * (1 - seconds / followedSeconds), 1e3 * followedSeconds)
      .str();
}

std::string dovetail::describeShortage(double seconds, double followedSeconds) {
  return llvm::formatv("all is expected to take {0:f3} ms; a plan that follows all, in {1:f3} ms, takes more memory "
                       "than there is",
                       1e3 * seconds, 1e3 * followedSeconds)
      .str();
}

/// Where what is stated does not hold any more, though it could, and what that gains; null if it does everywhere.
static DictionaryAttr describeDepartures(const ShardingAssignment &assignment, MLIRContext *context) {
  if (assignment.departures.empty())
    return {};
  Builder builder(context);
  SmallVector<Attribute> moves;
  auto add = [&](const Move &move, StringRef more) {
    std::string text = std::string("the split that is asked for ") + (move.isHeld ? "ends: " : "begins: ") +
                       describe(move) + more.str();
    moves.push_back(builder.getDictionaryAttr({builder.getNamedAttr("location", LocationAttr(move.value.getLoc())),
                                               builder.getNamedAttr("text", builder.getStringAttr(text))}));
  };
  add(getLargest(assignment.departures), countOthers(assignment.departures.size() - 1));
  for (const Move &move : assignment.departures)
    add(move, "");
  std::optional<double> followed = assignment.followedSeconds;
  std::string gain = "no other way was found to do all that is asked for, with the memory that there is";
  if (followed)
    gain = describeGain(assignment.expected.seconds, *followed);
  NamedAttrList departures;
  departures.set("moves", builder.getArrayAttr(moves));
  departures.set("gain", builder.getStringAttr(gain));
  if (followed)
    departures.set("followed", builder.getF64FloatAttr(*followed));
  return departures.getDictionary(context);
}

void dovetail::emitDepartures(DictionaryAttr departures) {
  StringRef gain = departures.getAs<StringAttr>("gain").getValue();
  for (auto [index, move] : llvm::enumerate(departures.getAs<ArrayAttr>("moves").getAsRange<DictionaryAttr>())) {
    Location location = move.getAs<LocationAttr>("location");
    (index == 0 ? emitWarning(location) : emitRemark(location))
        << move.getAs<StringAttr>("text").getValue() << "; " << gain;
  }
}

/// Says what does not follow what is stated, as it cannot.
static void emitEnd(const ShardingAssignment &assignment) {
  if (assignment.apart.empty())
    return;
  Operation *first = assignment.apart.front();
  size_t others = assignment.apart.size() - 1;
  bool isMuch = assignment.shareApart > kDefaultFollow;
  InFlightDiagnostic message = isMuch ? emitWarning(first->getLoc()) : emitRemark(first->getLoc());
  std::string name = getName(first->getLoc());
  message << (name.empty() ? "an operation" : name)
          << (others == 0 ? " is" : llvm::formatv(" and {0} more operations are", others).str())
          << " split regardless of what is asked for, as no dimension of theirs follows that: "
          << llvm::formatv("{0:f0} % of all work", 100 * assignment.shareApart).str();
  if (assignment.end)
    message << "; the split that is asked for ends: " << describe(*assignment.end);
}

/// Says where stated sizes do not go together with strides.
static void emitUnaligned(const ShardingAssignment &assignment) {
  auto describe = [](std::pair<Operation *, int64_t> entry) {
    auto [op, step] = entry;
    std::string name = getName(op->getLoc());
    return "the sizes that are asked for cut between the steps of " + (name.empty() ? "an operation" : name) +
           llvm::formatv(", which are {0} apart: results are exact, but ranks exchange more than with cuts at "
                         "multiples of {0} there",
                         step)
               .str();
  };
  for (auto [index, entry] : llvm::enumerate(assignment.unaligned)) {
    if (index == 0)
      emitWarning(entry.first->getLoc()) << describe(entry) << countOthers(assignment.unaligned.size() - 1);
    emitRemark(entry.first->getLoc()) << describe(entry);
  }
}

/// Says where what is stated of one tensor gives way to what is stated of another one.
static void emitChanges(const ShardingAssignment &assignment) {
  if (assignment.changes.empty())
    return;
  const Move &largest = getLargest(assignment.changes);
  StringRef what = "from one split that is asked for to another one: ";
  emitWarning(largest.value.getLoc(), what) << describe(largest) << countOthers(assignment.changes.size() - 1);
  for (const Move &move : assignment.changes)
    emitRemark(move.value.getLoc(), what) << describe(move);
}

/// Says which operations cuts that are stated make slow.
static void emitSlow(const ShardingAssignment &assignment) {
  for (auto [op, times] : assignment.slow)
    op->emitRemark("is expected to take ")
        << llvm::formatv("{0:f1}", times).str() << " times what it would with its work divided as well as can be";
}

/// Says which weights ranks store in pieces.
static void emitStored(const ShardingAssignment &assignment) {
  // Blocks repeat themselves: the first of those that are alike stands for all.
  llvm::MapVector<std::pair<Type, ShardingAttr>, std::pair<Value, unsigned>> alike;
  for (const auto &[constant, stored] : assignment.stored)
    ++alike.try_emplace({constant.getType(), stored}, constant, 0).first->second.second;
  for (const auto &[key, entry] : alike) {
    auto [constant, count] = entry;
    auto type = cast<RankedTensorType>(constant.getType());
    std::string others = count == 1   ? ""
                         : count == 2 ? " like another one"
                                      : " like " + std::to_string(count - 1) + " others";
    InFlightDiagnostic remark = emitRemark(constant.getLoc(), "weights of shape [");
    llvm::interleaveComma(type.getShape(), remark);
    remark << "] are stored in pieces" << others << ", split as "
           << describe(key.second.getDims(), type.getRank(), false)
           << ", and gathered just in time, before each use, as memory does not suffice for more";
  }
}

/// Says which ranks are of no use.
static void emitIdle(func::FuncOp function, const ShardingAssignment &assignment, bool areEqual) {
  for (StringAttr axis : assignment.idleAxes)
    function.emitWarning("nothing that takes time is split over axis ")
        << axis << ": its ranks repeat each other's work, as dividing it is not expected to gain anything";
  if (assignment.idleRanks.empty())
    return;
  std::string ranks;
  for (size_t i = 0; i < assignment.idleRanks.size();) {
    // Three or more that follow each other go by their ends: there may be a thousand.
    int first = assignment.idleRanks[i], last = first;
    while (++i < assignment.idleRanks.size() && assignment.idleRanks[i] == last + 1)
      ++last;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(first);
    if (last > first)
      ranks += (last == first + 1 ? ", " : " to ") + std::to_string(last);
  }
  function.emitWarning("these ranks ")
      << (areEqual ? "idle, as no operation is split into so many parts"
                   : "have no part of the work, as nothing is expected to be done sooner if they have")
      << ": " << ranks;
}

/// Says of a function what is expected of how it was split.
static void setExpectation(func::FuncOp function, const Expectation &expected) {
  Builder builder(function.getContext());
  auto getCount = [&](double value) { return builder.getI64IntegerAttr(std::llround(value)); };
  function->setAttr(
      kExpectationAttrName,
      builder.getDictionaryAttr({builder.getNamedAttr("bytes", getCount(expected.bytes)),
                                 builder.getNamedAttr("cost", builder.getF64FloatAttr(expected.cost)),
                                 builder.getNamedAttr("memory", getCount(expected.getMemory())),
                                 builder.getNamedAttr("seconds", builder.getF64FloatAttr(expected.seconds)),
                                 builder.getNamedAttr("weights", getCount(expected.weightBytes))}));
}

LogicalResult ChooseShardings::runOnFunction(func::FuncOp function, MeshOp meshOp) {
  FailureOr<FunctionRequests> requests = readRequests(function, meshOp);
  if (failed(requests))
    return failure();
  auto numRanks = static_cast<size_t>(meshOp.getMesh().numRanks());
  for (ArrayRef<double> list : {ArrayRef<double>(mostShares), ArrayRef<double>(slowness)})
    if (!list.empty() && list.size() < numRanks)
      return meshOp.emitError("'most-shares' and 'slowness' take a number for each of ") << numRanks << " ranks";
  auto meshName = FlatSymbolRefAttr::get(meshOp);
  bool isStated = !requests->arguments.empty() || !requests->results.empty() || !requests->loops.empty() ||
                  !requests->outputs.empty();
  DenseMap<Operation *, LoopOption> decided;
  FailureOr<ShardingAssignment> assignment;
  bool isAsked = true;
  // What operations give way to is decided with all else as it is.
  for (bool isOpen = true; isOpen;) {
    Goal goal{objective,  *found,   transport,    memory ? std::optional<double>(memory) : std::nullopt,
              mostShares, slowness, weightFactor, gather,
              work,       explain,  following,    isAsked,
              follow,     seed};
    assignment = findAssignment(function, meshOp.getMesh(), meshName, *requests, goal, decided);
    if (failed(assignment))
      return failure();
    emitGap(function, *assignment, goal);
    if (DictionaryAttr departures = describeDepartures(*assignment, &getContext())) {
      if (defersDepartures)
        function->setAttr(kDeparturesAttrName, departures);
      else
        emitDepartures(departures);
    }
    emitChanges(*assignment);
    emitEnd(*assignment);
    emitUnaligned(*assignment);
    if (explain) {
      emitExplanations(function, *assignment, goal);
      if (isStated)
        emitSlow(*assignment);
      emitStored(*assignment);
    }
    Commit commit(function, meshOp, *assignment, goal);
    commit.run();
    decided = std::move(commit.decided);
    setExpectation(function, assignment->expected);
    requests->results.clear();
    requests->loops.clear();
    for (const auto &[argument, sharding] : assignment->arguments)
      requests->arguments[argument] = ShardingRequest(sharding.getDims());
    for (auto &[operand, dims] : requests->outputs)
      dims = ShardingRequest(assignment->outputs.lookup(operand).getDims());
    // From now on arguments are stated that nobody asked for.
    isAsked = false;
    isOpen = commit.isOpen;
  }
  emitIdle(function, *assignment, found->isUniform() && mostShares.empty());
  auto bringTo = [](OpOperand &operand, ShardingAttr wanted) {
    ShardingAttr held = getSharding(operand.get());
    if (wanted != held && (held || !wanted.isReplicated()))
      operand.set(reshardBefore(operand.getOwner(), operand.get(), wanted));
  };
  for (auto &[operand, dims] : requests->outputs)
    bringTo(*operand, ShardingAttr::get(&getContext(), meshName, dims, {}, ReduceKind::Sum));
  for (auto &[operand, argument] : requests->feedback)
    bringTo(*operand, getSharding(argument));
  // What takes the place of an operation may be split as was requested of that.
  for (auto reshard : llvm::make_early_inc_range(function.getBody().front().getOps<ReshardOp>()))
    if (reshard.getOperand().getType() == reshard.getType()) {
      reshard.getResult().replaceAllUsesWith(reshard.getOperand());
      reshard.erase();
    }
  Block &block = function.getBody().front();
  function.setType(
      FunctionType::get(&getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return success();
}

std::unique_ptr<Pass> dovetail::createChooseShardings(ChooseShardingsOptions options,
                                                      std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<ChooseShardings>(std::move(options), std::move(cluster));
}
