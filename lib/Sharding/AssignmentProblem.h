//===- AssignmentProblem.h - What is to be chosen in a function -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares AssignmentProblem, which finds how all of a function is split.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_ASSIGNMENTPROBLEM_H
#define DOVETAIL_LIB_SHARDING_ASSIGNMENTPROBLEM_H

#include "ShardingAssignment.h"
#include "WeightStorage.h"

#include <map>

namespace dovetail {

/// Light operations take no more than this share of all the time each, and all together what the tolerance leaves.
inline constexpr double kLightShare = 0.01;

/// The choices of one function, and the search for the best ones: what `findAssignment` does, which says how.
class AssignmentProblem {
public:
  AssignmentProblem(mlir::func::FuncOp function, const layout::Mesh &mesh, mlir::FlatSymbolRefAttr meshName,
                    const FunctionRequests &requests, const Goal &goal,
                    const llvm::DenseMap<mlir::Operation *, LoopOption> &decided)
      : function(function), meshName(meshName), requests(requests), goal(goal), decided(decided),
        costs(mesh, goal.cluster, goal.engine), constants(getConstantValues(function)),
        families(function, costs.getMesh(), goal.cluster, goal.mostShares, goal.slowness, goal.steers()),
        weights(costs, goal.weightFactor) {}

  mlir::FailureOr<ShardingAssignment> solve();

private:
  /// What is chosen for an argument, an operation or the form in which a value is brought to its users: a node of the
  /// graph, and what ranks then hold.
  struct Source {
    unsigned node;
    std::vector<ShardingAttr> states;
  };
  /// One that reads a value, and what it needs with each of its options.
  struct Reader {
    unsigned node;
    std::vector<ShardingAttr> needs;
  };

  /// What there is at the time of most memory: values, and operands that are gathered then.
  struct Peak {
    llvm::DenseSet<mlir::Value> values;
    llvm::DenseSet<mlir::OpOperand *> gathered;
  };

  /// A value that is brought from one to the other, with the number of the edge that says what that costs.
  struct Connection {
    mlir::Value value;
    Source source;
    Reader reader;
    unsigned edge;

    mlir::RankedTensorType getType() const { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  };

  /// How loops or dimensions are split, seen from requests over some axes: along one, with its sizes, and which ones,
  /// by the numbers of `CutFamilies`.
  struct Course {
    bool isAlong = false, isExact = false;
    llvm::SmallVector<unsigned, 1> origins = {};

    bool sharesOrigin(const Course &other) const {
      return llvm::any_of(origins, [&](unsigned origin) { return llvm::is_contained(other.origins, origin); });
    }
  };

  /// How a connection leaves requests with some pair of options: departures from dimension and cuts, or a change from
  /// one request to another.
  struct Pair {
    unsigned departures = 0;
    bool isChange = false;

    auto operator<=>(const Pair &) const = default;
  };

  /// A connection that may leave what is stated, though it need not.
  struct Departure {
    /// Its number.
    size_t connection;
    /// The source's options major.
    std::vector<Pair> pairs;
    /// Of the edge, without a price.
    ChoiceGraph::EdgeCosts costs = {};
  };

  /// An operation that could follow a request. Each option has the share of all work that then strays from it, and the
  /// cost without a price.
  struct Straying {
    unsigned node;
    std::vector<double> shares, costs;
  };

  void stateCuts();
  void findOptions();
  std::vector<LoopOption> getOptions(SplitOpInterface op);
  /// `kMaxOptions` of more options.
  static std::vector<LoopOption> keepSome(std::vector<LoopOption> found);
  void findLight();
  void keepEven();
  void addNodes();
  void addEdges(mlir::Value value, const Source &source);
  /// Lets constants be stored in pieces, where memory matters.
  void addWeights();
  /// How all operations read a constant, in their order; nothing if not all of them may gather it.
  std::vector<WeightStorage::Use> getUses(mlir::Value constant);
  /// What is chosen, of the source of a value.
  ShardingAttr getState(const ChoiceGraph::Solution &solution, const Source &source) const {
    return source.states[solution.options[source.node]];
  }
  const LoopOption &getOption(const ChoiceGraph::Solution &solution, mlir::Operation *op) {
    return options[op][solution.options[sources[op->getResult(0)].node]];
  }
  /// Searches with this share of the work that is left.
  ChoiceGraph::Solution search(double share = 1);
  ChoiceGraph::Solution follow();
  /// The same where memory is as large as it takes: if it is what matters, with what is known of where most is used.
  ChoiceGraph::Solution searchFreely(Peak &atMost);
  /// Weights cost what memory does: so much a byte, beside what the objective says.
  void setWeightCosts(double price, const Peak &atMost);
  void findIdle(ShardingAssignment &assignment);
  std::vector<Explanation> explain(const ChoiceGraph::Solution &solution);
  ChoiceGraph::Solution searchWithin(double memory);
  /// What a solution takes. `peak`, if given, receives what there is at the time of most.
  Expectation predict(const ChoiceGraph::Solution &solution, Peak *peak = nullptr);
  void connect(mlir::Value value, const Source &source, const Reader &reader);
  /// Whether it is of interest how both ends of a connection are split.
  bool mayMove(const Connection &connection) const;
  void findFollowers();
  /// All of them, once all connections are there.
  void findDepartures();
  /// Loops or dimensions of which the first one is at `place`, and how they are split.
  struct Splits {
    unsigned place;
    llvm::ArrayRef<DimShardingAttr> dims;
  };
  Splits getHeld(const Connection &connection, unsigned option) {
    return {*families.getPlace(connection.value), connection.source.states[option].getDims()};
  }
  Splits getLoops(mlir::Operation *op, unsigned option) {
    return {*families.getPlace(op->getResult(0)), options[op][option].loops};
  }
  Splits getRead(const Connection &connection, unsigned option);
  /// As seen from what is stated over the axes of this number.
  Course getCourse(Splits splits, size_t number);
  void findStraying(mlir::Operation *op, llvm::ArrayRef<LoopOption> list);
  /// The number of the solution's pair of options in the tables of a connection.
  static size_t getNumber(const Connection &connection, const ChoiceGraph::Solution &solution) {
    return solution.options[connection.source.node] * connection.reader.needs.size() +
           solution.options[connection.reader.node];
  }
  Pair getPair(const Departure &departure, const ChoiceGraph::Solution &solution) const {
    return departure.pairs[getNumber(connections[departure.connection], solution)];
  }
  /// From now on, a departure costs `price` beside its exchange, and a change from one request to another
  /// `changePrice`.
  void setDeparturePrice(double price, double changePrice);
  /// The cost of a solution without these prices.
  double getUnpriced(const ChoiceGraph::Solution &solution) const;
  /// Of the exchanges of its departures.
  double getExchangeSeconds(const ChoiceGraph::Solution &solution) const;
  /// Searches anew if the solution departs from what is stated.
  ChoiceGraph::Solution steer(ChoiceGraph::Solution solution, ShardingAssignment &assignment);
  /// Says where the solution leaves what is stated, and where it goes from one thing stated to another.
  void describeMoves(const ChoiceGraph::Solution &solution, ShardingAssignment &assignment);
  /// Finds what does not follow anything that is stated, as it cannot.
  void findEnd(const ChoiceGraph::Solution &solution, ShardingAssignment &assignment);
  Move getMove(const ChoiceGraph::Solution &solution, const Connection &connection);
  double getCost(const ExchangeCost &cost) const { return cost.get(goal.objective); }
  /// What an option of an operation costs by itself.
  double getCost(const LoopOption &option) const;
  /// The sharding in the type of what a reshard gives; none there means whole.
  ShardingAttr getStated(mlir::Value value) const {
    ShardingAttr sharding = getSharding(value);
    return sharding ? sharding
                    : ShardingAttr::getReplicated(meshName, cast<mlir::RankedTensorType>(value.getType()).getRank());
  }
  /// The shardings that meet a request.
  std::vector<ShardingAttr> close(mlir::Value value, const ShardingRequest &request);

  mlir::func::FuncOp function;
  mlir::FlatSymbolRefAttr meshName;
  const FunctionRequests &requests;
  const Goal &goal;
  const llvm::DenseMap<mlir::Operation *, LoopOption> &decided;
  ExchangeCosts costs;
  llvm::DenseSet<mlir::Value> constants;
  CutFamilies families;
  std::optional<LoopOptions> loopOptions;
  llvm::MapVector<mlir::Operation *, std::vector<LoopOption>> options;
  llvm::DenseMap<mlir::Operation *, double> workOf;
  double totalWork = 0;
  /// Operations that take so little that it does not matter who has how much of them.
  llvm::DenseSet<mlir::Operation *> light;
  /// Operations of which not all options were tried.
  size_t numLimited = 0;
  uint64_t work = 0;
  bool isCut = false;
  /// Of operations, with the option that takes least.
  llvm::MapVector<mlir::Operation *, double> leastSeconds;
  /// Values through which sums may pass.
  llvm::DenseSet<mlir::Value> mayBePartial;
  ChoiceGraph graph;
  WeightStorage weights;
  llvm::MapVector<mlir::Value, Source> sources;
  /// Of values whose sharding is requested.
  llvm::MapVector<mlir::Value, Source> pinned;
  llvm::MapVector<mlir::OpOperand *, Source> outputs;
  /// Of values with several users.
  llvm::MapVector<mlir::Value, Source> forms;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Reader, 2>> readers;
  std::vector<Connection> connections;
  /// Of axes over which something is stated, in the order of `CutFamilies`.
  std::vector<CutFamilies::Followers> followers;
  std::vector<Departure> departures;
  std::vector<Straying> straying;
  /// The operation that a node chooses for.
  llvm::DenseMap<unsigned, mlir::Operation *> opOf;
  /// What it costs to take a tensor of one type from one sharding to another; negative where that is not known yet.
  struct Prices {
    std::vector<unsigned> getNumbers(llvm::ArrayRef<ShardingAttr> shardings) {
      std::vector<unsigned> list;
      for (ShardingAttr sharding : shardings)
        list.push_back(numbers.try_emplace(sharding, numbers.size()).first->second);
      costs.resize(numbers.size());
      return list;
    }

    llvm::DenseMap<ShardingAttr, unsigned> numbers;
    std::vector<std::vector<double>> costs;
    std::map<std::pair<std::vector<unsigned>, std::vector<unsigned>>, ChoiceGraph::EdgeCosts> tables;
  };
  llvm::DenseMap<mlir::Type, Prices> prices;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_ASSIGNMENTPROBLEM_H
