//===- Exchange.h - Plans the transfers that change a tensor's sharding -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_EXCHANGE_H
#define DOVETAIL_LAYOUT_EXCHANGE_H

#include "dovetail/Layout/Sharding.h"

#include <memory>

namespace dovetail::layout {

/// One box that travels from a rank that holds it to one that needs it.
struct Transfer {
  int source = 0;
  int dest = 0;
  Box box;

  friend bool operator==(const Transfer &, const Transfer &) = default;
};

std::ostream &operator<<(std::ostream &os, const Transfer &transfer);

/// Counts the work of planning, to show that it is proportional to the peers.
struct PlanStatistics {
  /// Pieces and destination ranks looked at.
  int64_t visited = 0;
};

/// Plans how a tensor of `shape` goes from the sharding `from` to `to`.
///
/// Each element that a rank needs and does not hold is fetched exactly once,
/// from the nearest coordinate that holds it in each dimension (the lower one
/// of two equally near) and, on axes that split nothing in `from`, from the
/// rank's own coordinate. Nothing that a rank holds is sent to it.
///
/// Axes on which `from` is partial and `to` is not are *reduced*: each needed
/// element then has one contribution for each coordinate on the reduced axes.
/// Every contribution but the rank's own is received; the rank's own is what
/// `local` lists. The contributions to a box are to be combined in ascending
/// order of their source, the rank itself included, so that all ranks get the
/// same bits.
///
/// `verifyExchange` must accept the arguments. Construction costs O(n log n) in
/// the number of pieces; planning for a rank costs O(log n) plus the pieces
/// that overlap what it needs or holds. Immutable after construction:
/// thread-safe.
class ExchangePlanner {
public:
  ExchangePlanner(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to);

  /// What `rank` receives: ordered by position, then by source. No two boxes of
  /// a source overlap or are adjacent parts of one box.
  std::vector<Transfer> receives(int rank, PlanStatistics *statistics = nullptr) const;
  /// What `rank` sends: ordered by destination, then by position. For each pair
  /// of ranks, sends and receives come in the same order.
  std::vector<Transfer> sends(int rank, PlanStatistics *statistics = nullptr) const;
  /// What `rank` needs and holds: one box, or none if that is empty.
  std::vector<Box> local(int rank) const;
  /// Mesh axes, ascending, that are reduced.
  const std::vector<int> &getReducedAxes() const { return reducedAxes; }
  /// A source and a destination for which `sends` of the one and `receives` of the other do not list the same boxes in
  /// the same order; nothing if all pairs of ranks agree. Both lists are products of what is taken in each dimension,
  /// so dimensions are compared one by one, from both ends. Costs O(n log n) in the pieces that overlap; where pieces
  /// of the source overlap each other, that for each coordinate of ranks over the axes of both.
  std::optional<std::pair<int, int>> findDisagreement() const;

private:
  /// The pieces of a dimension, sorted for overlap queries.
  struct PieceIndex {
    std::vector<Interval> pieces;
    /// Coordinates of the non-empty pieces by ascending `lo`.
    std::vector<int> order;
    /// `maxHi[i]` is the largest `hi` of pieces `order[0 ... i]`.
    std::vector<int64_t> maxHi;
    /// Whether no two pieces overlap.
    bool disjoint = true;

    explicit PieceIndex(std::vector<Interval> pieces);
    /// Coordinates of the pieces that overlap `interval`, by position.
    std::vector<int> overlapping(Interval interval, PlanStatistics *statistics) const;
  };

  /// A part of a dimension, and the coordinate over the axes of `from` that it comes from.
  struct Segment {
    Interval interval;
    int coordinate;
  };

  std::vector<Interval> share(int dim, int coordinate, int ownCoordinate, Interval needed,
                              PlanStatistics *statistics) const;
  std::vector<Segment> findSegments(int dim, int ownCoordinate, Interval needed, PlanStatistics *statistics) const;
  std::vector<int> findTakers(int dim, Interval held, PlanStatistics *statistics) const;
  std::optional<std::pair<int, int>> findDisagreement(int dim) const;

  Mesh mesh;
  std::vector<int64_t> shape;
  Sharding from, to;
  std::vector<PieceIndex> fromIndex, toIndex;
  std::vector<int> reducedAxes;
};

/// `ExchangePlanner` for a single call.
std::vector<Transfer> planReceives(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                   const Sharding &to, int rank);

/// Whether a tensor can go from `from` to `to`: both are shardings of it, every
/// needed element is held somewhere, and `to` is partial only where `from` is,
/// with the same reduction. If not, and `why` is given, it names what is at
/// fault: the sharding, the dimension and the elements.
bool verifyExchange(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                    std::string *why = nullptr);

/// Number of elements that `rank` receives in the planned exchange.
int64_t receiveVolume(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                      int rank);

/// Number of elements that `rank` must receive at least, each contribution sent
/// as it is: the volume that it needs, times the contributions to each element,
/// less what it holds of that.
int64_t lowerBound(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to,
                   int rank);

/// What ranks receive and send in an exchange, in elements.
struct ExchangeVolume {
  int64_t total = 0;       ///< Received by all ranks.
  int64_t largest = 0;     ///< By the rank that receives most.
  int64_t largestSent = 0; ///< By the rank that sends most.
  int64_t sources = 0;     ///< How many others one rank receives from, at most.
  int64_t targets = 0;     ///< How many others one rank sends to, at most.

  friend bool operator==(const ExchangeVolume &, const ExchangeVolume &) = default;
};

/// What the planned exchange moves, without planning it: of each rank what `receiveVolume` says. Dimensions that share
/// no mesh axis are independent, so the cost grows with their pieces and not with ranks or transfers. Where pieces of
/// the source overlap, what is sent, `sources` and `targets` are more than there are: they count all who could send.
/// Without `countSent`, `largestSent` and `targets` stay 0, which is less work. What ranks have to do with others that
/// differ from them along `nearAxes` alone does not count.
ExchangeVolume getExchangeVolume(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                 const Sharding &to, bool countSent = true, const std::vector<int> &nearAxes = {});

/// Counts what exchanges on one mesh move, as `getExchangeVolume` does. What dimensions come to that mesh axes connect
/// is kept: the exchanges of a model have most of these in common, and differ in how they are combined. Not
/// thread-safe.
class ExchangeCounter {
public:
  explicit ExchangeCounter(Mesh mesh, bool countSent = true, std::vector<int> nearAxes = {});
  ExchangeCounter(ExchangeCounter &&) noexcept;
  ExchangeCounter &operator=(ExchangeCounter &&) noexcept;
  ~ExchangeCounter();

  ExchangeVolume get(std::span<const int64_t> shape, const Sharding &from, const Sharding &to);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// What an exchange amounts to.
enum class ExchangeClass {
  /// Every rank needs exactly what it holds.
  None,
  /// Every rank keeps a part of what it holds; nothing is sent.
  Slice,
  /// Split dimensions keep their axes, and what a rank needs meets what it
  /// holds
  /// (if it needs and holds anything): strips next to it are sent.
  Halo,
  /// Dimensions lose axes: each rank keeps what it holds and collects the other
  /// pieces along them.
  AllGather,
  /// Axes move from some dimensions to others.
  AllToAll,
  /// Contributions are combined; every rank keeps its box.
  AllReduce,
  /// Contributions are combined; every rank keeps a part of its box.
  ReduceScatter,
  /// Anything else.
  General,
};

/// The class's name as in messages, such as "all-gather".
const char *stringifyExchangeClass(ExchangeClass exchangeClass);

/// The class of the exchange; `verifyExchange` must accept it. Axes of size 1
/// are ignored. Costs O(ranks).
ExchangeClass classify(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_EXCHANGE_H
