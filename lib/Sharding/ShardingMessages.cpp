//===- ShardingMessages.cpp - What is said of shardings -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the warnings and remarks about how a function is split.
//
//===----------------------------------------------------------------------===//

#include "ShardingMessages.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Sharding/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

/// `1.5 % more time`, of what takes so much more than all else: a share, which may be negative.
static std::string compare(double more, StringRef what) {
  std::string percent = llvm::formatv("{0:f1}", 100 * std::abs(more)).str();
  if (percent == "0.0")
    return (what == "bytes" ? "as many " : "as much ") + what.str();
  return percent + (more > 0 ? " % more " : " % less ") + what.str();
}

/// The axes that split a loop, or with what sizes.
static std::string describe(DimShardingAttr loop, bool withSizes) {
  if (!loop.isSplit())
    return "_";
  std::string text;
  for (auto [number, axis] : llvm::enumerate(loop.getAxes()))
    text += (number ? "+" : "") + axis.str();
  for (unsigned piece = 0; withSizes && piece < loop.getNumPieces(); ++piece)
    text += (piece ? "+" : ":") + std::to_string(loop.getPiece(piece).size());
  return text;
}

/// `[_, y]`: how each dimension of the result is split, and behind them how sums are.
static std::string describe(ArrayRef<DimShardingAttr> loops, size_t rank, bool withSizes) {
  if (llvm::none_of(loops, [](DimShardingAttr loop) { return loop.isSplit(); }))
    return "not split";
  std::string dims, sums;
  for (auto [index, loop] : llvm::enumerate(loops)) {
    if (index < rank)
      dims += (index == 0 ? "" : ", ") + describe(loop, withSizes);
    else if (loop.isSplit())
      sums += (sums.empty() ? "" : ", ") + describe(loop, withSizes);
  }
  return "[" + dims + "]" + (sums.empty() ? "" : " with its sums over " + sums);
}

void dovetail::emitGap(func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal) {
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

/// Which of `entries` stands for its node of the model: of operations of one node that with the largest number, the
/// first of several. `get` gives the operation and the number. A node named twice with two numbers would be a riddle.
template <typename Entries, typename Get> static llvm::SmallVector<bool> findForNodes(const Entries &entries, Get get) {
  llvm::StringMap<std::pair<size_t, double>> best;
  llvm::SmallVector<bool> stands(entries.size(), true);
  for (auto [index, entry] : llvm::enumerate(entries)) {
    auto [op, number] = get(entry);
    StringRef node = getNodeName(op->getLoc());
    if (node.empty())
      continue;
    auto [known, isNew] = best.try_emplace(node, index, number);
    if (isNew)
      continue;
    bool isBetter = number > known->second.second;
    stands[isBetter ? known->second.first : index] = false;
    if (isBetter)
      known->second = {index, number};
  }
  return stands;
}

void dovetail::emitExplanations(func::FuncOp function, const ShardingAssignment &assignment, const Goal &goal) {
  if (assignment.numLimited > 0)
    function.emitRemark("the mesh has many axes, so the search did not try all ways to split ")
        << assignment.numLimited << " of its " << assignment.operations.size() << " operations";
  const char *what = goal.objective == Objective::Time    ? "time"
                     : goal.objective == Objective::Bytes ? "bytes"
                                                          : "memory";
  // Nobody looks for other changes with which it would fit.
  const char *reserve = goal.memory ? ", if it fits" : "";
  llvm::SmallVector<bool> stands = findForNodes(assignment.explanations, [](const Explanation &explanation) {
    return std::pair(explanation.op, explanation.more);
  });
  for (auto [index, explanation] : llvm::enumerate(assignment.explanations)) {
    if (!stands[index])
      continue;
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

/// `node 'n'`, or the tensor that it computes.
static std::string getNode(Operation *op) {
  if (std::string title = getNodeTitle(op->getLoc()); !title.empty())
    return "node '" + title + "'";
  StringRef tensor = getTensorName(op->getLoc());
  return tensor.empty() ? "a node" : "the node of tensor '" + tensor.str() + "'";
}

/// `tensor 't'`, or the node that computes it.
static std::string getTensor(Value value) {
  if (StringRef name = getTensorName(value.getLoc()); !name.empty())
    return "tensor '" + name.str() + "'";
  std::string node = getNodeTitle(value.getLoc());
  if (node.empty())
    return "a tensor";
  return (isa<BlockArgument>(value) ? "tensor '" : "the result of node '") + node + "'";
}

/// `tensor 'x' is split as [_, y:3+4], and node 'z', which reads it, as [y:2+2, _]`.
static std::string describe(const Move &move) {
  auto describeSplit = [](ArrayRef<DimShardingAttr> dims, Value value) {
    std::string split = describe(dims, cast<RankedTensorType>(value.getType()).getRank(), /*withSizes=*/true);
    return split == "not split" ? split : "split as " + split;
  };
  return getTensor(move.value) + " is " + describeSplit(move.from, move.value) + ", but " +
         (move.reader
              ? getNode(move.reader) + ", which reads it, is " + describeSplit(move.to, move.reader->getResult(0))
              : "its readers need it " + describeSplit(move.to, move.value));
}

/// A warning about one of several places says how many others there are.
static std::string countOthers(size_t others) {
  if (others == 0)
    return "";
  return llvm::formatv("; --remarks lists {0} more place{1}", others, others == 1 ? "" : "s").str();
}

std::string dovetail::describeGain(double seconds, double followedSeconds) {
  return llvm::formatv("a run is predicted to take {0:f3} ms, {1:f1} % less than {2:f3} ms with --follow 100",
                       1e3 * seconds, 100 * (1 - seconds / followedSeconds), 1e3 * followedSeconds)
      .str();
}

std::string dovetail::describeShortage(double seconds, double followedSeconds) {
  return llvm::formatv(
             "a run is predicted to take {0:f3} ms; with --follow 100 it would take {1:f3} ms, and more memory "
             "than ranks have",
             1e3 * seconds, 1e3 * followedSeconds)
      .str();
}

/// All moves of a kind, each with a text. The first one, with most bytes, is to warn of, and says how many others there
/// are.
static ArrayAttr describeAll(std::vector<Move> moves, llvm::function_ref<StringRef(const Move &)> getHead,
                             MLIRContext *context) {
  Builder builder(context);
  auto largest = llvm::max_element(moves, [](const Move &a, const Move &b) { return a.bytes < b.bytes; });
  if (largest != moves.end())
    std::rotate(moves.begin(), largest, largest + 1);
  SmallVector<Attribute> list;
  for (const Move &move : moves) {
    std::string text = getHead(move).str() + describe(move) + (list.empty() ? countOthers(moves.size() - 1) : "");
    list.push_back(builder.getDictionaryAttr({builder.getNamedAttr("location", LocationAttr(move.value.getLoc())),
                                              builder.getNamedAttr("text", builder.getStringAttr(text))}));
  }
  return builder.getArrayAttr(list);
}

/// `the given sizes cut between the steps of node 'n', which are 2 elements apart`.
static std::string describe(const UnalignedSizes &sizes) {
  return "the given sizes cut between the steps of " + getNode(sizes.op) + ", which are " + std::to_string(sizes.step) +
         " elements apart";
}

DictionaryAttr dovetail::describeDepartures(const ShardingAssignment &assignment, const Goal &goal,
                                            MLIRContext *context) {
  if (assignment.departures.empty() && assignment.changes.empty() && assignment.unaligned.empty())
    return {};
  Builder builder(context);
  NamedAttrList departures;
  auto getHead = [](const Move &move) -> StringRef {
    return move.isHeld ? "the requested split is not kept downstream: " : "the requested split is not kept upstream: ";
  };
  departures.set("departures", describeAll(assignment.departures, getHead, context));
  departures.set("changes",
                 describeAll(
                     assignment.changes,
                     [](const Move &) -> StringRef { return "two requests contradict each other: "; }, context));
  // Where nothing may depart that need not, there is no such plan.
  if (goal.follow >= 1)
    departures.set("gain",
                   builder.getStringAttr(goal.memory ? "no plan was found that follows all requests and fits the "
                                                       "memory of ranks"
                                                     : "no plan was found that follows all requests"));
  else if (assignment.followedSeconds)
    departures.set("gain",
                   builder.getStringAttr(describeGain(assignment.expected.seconds, *assignment.followedSeconds)));
  SmallVector<Attribute> unaligned;
  for (const UnalignedSizes &sizes : assignment.unaligned) {
    auto alternatives = llvm::map_to_vector(
        sizes.alternatives, [&](ArrayRef<int64_t> cuts) -> Attribute { return builder.getDenseI64ArrayAttr(cuts); });
    unaligned.push_back(
        builder.getDictionaryAttr({builder.getNamedAttr("alternatives", builder.getArrayAttr(alternatives)),
                                   builder.getNamedAttr("cuts", builder.getDenseI64ArrayAttr(sizes.cuts)),
                                   builder.getNamedAttr("text", builder.getStringAttr(describe(sizes)))}));
  }
  departures.set("unaligned", builder.getArrayAttr(unaligned));
  return departures.getDictionary(context);
}

void dovetail::emitDepartures(DictionaryAttr departures) {
  std::string gain;
  if (auto text = departures.getAs<StringAttr>("gain"))
    gain = "; " + text.str();
  for (StringRef kind : {"departures", "changes"})
    for (auto [index, move] : llvm::enumerate(departures.getAs<ArrayAttr>(kind).getAsRange<DictionaryAttr>())) {
      Location location = move.getAs<LocationAttr>("location");
      // The gain is that of the plan, and said once.
      (index == 0 ? emitWarning(location) : emitRemark(location))
          << move.getAs<StringAttr>("text").getValue() << (index == 0 ? std::exchange(gain, "") : "");
    }
}

void dovetail::emitEnd(const ShardingAssignment &assignment) {
  if (assignment.apart.empty())
    return;
  Operation *first = assignment.apart.front();
  size_t others = assignment.apart.size() - 1;
  bool isMuch = assignment.shareApart > kDefaultFollow;
  InFlightDiagnostic message = isMuch ? emitWarning(first->getLoc()) : emitRemark(first->getLoc());
  message << getNode(first);
  if (others > 0)
    message << " and " << others << (others == 1 ? " more node" : " more nodes");
  message
      << llvm::formatv(", {0:f0} % of all work, cannot follow --shard and --sizes: ", 100 * assignment.shareApart).str()
      << "no dimension there belongs to a requested one";
  if (assignment.end)
    message << "; " << describe(*assignment.end);
}

void dovetail::emitUnaligned(const ShardingAssignment &assignment) {
  for (const UnalignedSizes &sizes : assignment.unaligned)
    emitWarning(sizes.op->getLoc()) << describe(sizes);
}

void dovetail::emitSlow(const ShardingAssignment &assignment) {
  llvm::SmallVector<bool> stands =
      findForNodes(assignment.slow, [](const auto &slow) { return std::pair(slow.first, slow.second); });
  for (auto [index, slow] : llvm::enumerate(assignment.slow)) {
    auto [op, times] = slow;
    if (!stands[index])
      continue;
    op->emitRemark("is expected to take ")
        << llvm::formatv("{0:f1}", times).str() << " times as long as with its work divided evenly";
  }
}

void dovetail::emitStored(const ShardingAssignment &assignment) {
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
           << ", and gathered just in time, before each use, as memory does not suffice otherwise";
  }
}

std::vector<bool> dovetail::findGivenNothing(const FunctionRequests &requests, const layout::Mesh &mesh) {
  std::vector<bool> result(mesh.numRanks());
  auto add = [&](Value value, ArrayRef<DimShardingAttr> dims) {
    // Open cuts give something to all.
    auto closed = llvm::map_to_vector(dims, [](DimShardingAttr dim) {
      return dim.isSplit() && dim.getNumPieces() > 0 ? dim : DimShardingAttr::getUnsplit(dim.getContext());
    });
    layout::Sharding sharding = toLayout(closed, mesh);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
      result[rank] = result[rank] || sharding.boxOf(mesh, shape, rank).empty();
  };
  for (const auto &[value, dims] : requests.arguments)
    add(value, dims);
  for (const auto &[value, dims] : requests.results)
    add(value, dims);
  for (const auto &[operand, dims] : requests.outputs)
    add(operand->get(), dims);
  return result;
}

/// `ranks 0, 3 to 5`.
static std::string listRanks(ArrayRef<int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    // Three or more that follow each other go by their ends: there may be a thousand.
    int first = ranks[i], last = first;
    text += i == 0 ? "" : ", ";
    while (++i < ranks.size() && ranks[i] == last + 1)
      ++last;
    text += std::to_string(first);
    if (last > first)
      text += (last == first + 1 ? ", " : " to ") + std::to_string(last);
  }
  return text;
}

void dovetail::emitIdle(func::FuncOp function, const ShardingAssignment &assignment,
                        const std::vector<bool> &givenNothing, bool byTime) {
  for (StringAttr axis : assignment.idleAxes)
    function.emitWarning("no operation that takes time is split over axis ")
        << axis << ": its ranks repeat the same work, as a split is not expected to save time";
  llvm::MapVector<StringRef, std::vector<int>> ranks;
  for (auto [rank, isShort] : assignment.idleRanks)
    ranks[givenNothing[rank] ? ": --sizes gives them no elements"
          : isShort          ? ": no operation has enough elements for all ranks"
          : byTime           ? ": work for all ranks is not expected to save time"
                             : ""]
        .push_back(rank);
  for (const auto &[reason, list] : ranks)
    function.emitWarning(listRanks(list)) << (list.size() == 1 ? " has" : " have") << " no work" << reason;
}
