//===- CutFamilies.h - Cuts that follow each other --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares CutFamilies: where loops that follow each other through a function are cut, if they are split alike.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_CUTFAMILIES_H
#define DOVETAIL_LIB_SHARDING_CUTFAMILIES_H

#include "CutWeights.h"

#include "dovetail/Cost/Cluster.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

#include <map>

namespace dovetail {

/// A *place* is a loop of an operation, a dimension of an argument, or one of what a reshard gives. Places are
/// connected where one reads along the other. A *family* has cuts for each of a set of connected places over the same
/// mesh axes, which follow each other with the least communication.
///
/// A family begins at each place for which cuts are stated. Besides, all connected places have one: of those that begin
/// with even cuts at the places of least extents, where cuts are coarsest, the one that takes least time. It counts as
/// stated where cuts of one of its places are to be found, unless others are stated there. Of unequal ranks, pieces of
/// a family weigh all work of its operations. Several divisions (`CutWeights`) are compared by the time of ranks that
/// are slowest between exchanges. A slow rank may have nothing. Where two places of a family do not follow each other,
/// as they were reached in other ways, each may also be cut as the other is, with all that follows it without a byte to
/// move.
class CutFamilies {
public:
  struct Cuts {
    DimShardingAttr sharding;
    /// It follows from what is stated.
    bool isStated;
    /// How many times its even share the largest piece may have: as that from which it follows does, rounded to whole
    /// elements. 1 where nothing is stated.
    double imbalance;
    /// Numbers of the requests that it follows. All cuts of a request that leaves them open have one number.
    llvm::SmallVector<unsigned, 1> origins = {};
    /// The request left cuts open.
    bool isOpen = false;
  };

  /// Shares by which cuts that begin at another place may exceed more what ranks may have.
  static constexpr double kLittleExcess = 0.01;

  /// The places that follow what is stated over some axes.
  struct Followers {
    llvm::DenseSet<unsigned> places;
    /// The places among them that are computed of stated ones; the others are upstream.
    llvm::DenseSet<unsigned> behind;
  };

  /// `mostShares` and `slowness`: see `CutWeights`. `divides`: over more axes than those of stated cuts, these are
  /// divided further, too.
  CutFamilies(mlir::func::FuncOp function, const layout::Mesh &mesh, const Cluster &cluster,
              llvm::ArrayRef<double> mostShares, llvm::ArrayRef<double> slowness, bool divides);

  /// The number of the first place of an argument, or of the result of an operation, or nothing for what depends on
  /// constants alone. Others follow it: dimensions, then reductions.
  std::optional<unsigned> getPlace(mlir::Value value) const;

  /// Connects a value with the argument that it is in the next run. To come before all that follows.
  void feedBack(mlir::Value value, mlir::BlockArgument argument);
  /// Cuts that are given for a place: stated, or decided before. To come before `get`.
  void state(unsigned place, DimShardingAttr cuts, bool isStated);
  /// A place that is to be cut over these axes, wherever that is best. To come before `get`.
  void stateOpen(unsigned place, llvm::ArrayRef<mlir::StringAttr> axes);
  /// The axes over which something is stated to be split together.
  llvm::ArrayRef<llvm::SmallVector<mlir::StringAttr>> getStatedAxes() const { return statedAxes; }
  /// A loop that steps over a dimension whose stated cuts, or those that follow them, lie between its steps. Ranks lack
  /// more for that.
  struct Unaligned {
    unsigned loop;
    int64_t step;
    /// The cuts that are stated, and others near them with which there is no such loop.
    std::vector<int64_t> cuts;
    std::vector<std::vector<int64_t>> alternatives;
  };
  /// The first one of each family of stated cuts over `axes`.
  std::vector<Unaligned> findUnaligned(llvm::ArrayRef<mlir::StringAttr> axes) const;
  Followers getFollowers(llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// The ways to cut a place over `axes`.
  llvm::ArrayRef<Cuts> get(unsigned place, llvm::ArrayRef<mlir::StringAttr> axes);

private:
  /// Along which loop a dimension is read.
  struct Link {
    unsigned held, loop;
    layout::DimMap map;
    /// Bytes of all that has one index of the dimension.
    double bytes;
    /// Whether cuts of the dimension say where most of the loop is to be cut, and the other way round. An end of a
    /// tensor says nothing about its middle.
    bool leads, leadsBack;
  };
  /// The cuts at one end of a link that follow those at the other one, of the dimension if `isHeld`.
  std::optional<std::vector<int64_t>> follow(const Link &link, bool isHeld, llvm::ArrayRef<int64_t> cuts) const;
  struct Member {
    std::vector<int64_t> cuts;
    /// How many times its even share the largest piece may have, as that from which it follows, rounded to whole
    /// elements, does.
    double imbalance;
  };
  /// By place.
  using Family = llvm::DenseMap<unsigned, Member>;

  void addOperation(mlir::Operation *op, const llvm::DenseSet<mlir::Value> &constants);
  unsigned addPlaces(llvm::ArrayRef<int64_t> extents, double work);
  /// Connects dimension `dim` of a value of `type` whose places begin with `held`.
  void addLink(mlir::RankedTensorType type, unsigned held, unsigned dim, unsigned loop, const layout::DimMap &map);
  void findFamilies(llvm::ArrayRef<mlir::StringAttr> axes, std::vector<llvm::SmallVector<Cuts, 1>> &cuts);
  /// What is allowed at a place that follows one of which so much is allowed: whole elements cannot be divided.
  double getAllowed(double imbalance, unsigned place, size_t parts) const;
  /// The family of `cuts` at `place`.
  Family follow(unsigned place, std::vector<int64_t> cuts) const;
  /// How many times its even share the largest piece of a place has.
  double getImbalance(unsigned place, llvm::ArrayRef<int64_t> cuts) const;
  /// The request that a family comes from.
  struct Origin {
    bool isStated = false, isOpen = false;
    unsigned number = 0;
  };
  /// Adds the cuts of a family, and those that would follow closely where they do not.
  void addFamily(const Family &family, llvm::ArrayRef<mlir::StringAttr> axes, Origin origin,
                 std::vector<llvm::SmallVector<Cuts, 1>> &cuts) const;
  /// Stated cuts, each piece of which is divided evenly over the axes of `axes` that follow its own; nothing if none
  /// do.
  std::optional<std::vector<int64_t>> refine(DimShardingAttr sharding, int64_t extent,
                                             llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// Bytes that ranks lack of what they read through a link, if both its sides are cut so.
  double getMissing(const Link &link, llvm::ArrayRef<int64_t> held, llvm::ArrayRef<int64_t> loop) const;
  /// Whether ranks lack less if cuts of the dimension are moved to the next steps before or after them.
  bool isUnaligned(const Link &link, llvm::ArrayRef<int64_t> held, llvm::ArrayRef<int64_t> loop) const;
  /// The first link of a family that is unaligned; null if none is.
  const Link *findUnaligned(const Family &family) const;
  /// Cuts of a place at multiples of a number near `cuts` with which no link is unaligned, of several links with
  /// `step`.
  std::vector<std::vector<int64_t>> findAligned(unsigned place, llvm::ArrayRef<int64_t> cuts, int64_t step) const;
  /// What a family takes: work of the slowest ranks, and bytes that do not lie where they are read, as seconds.
  double getCost(const Family &family) const;
  /// The best families of each of these seeds, and what they take of connected places.
  std::vector<std::pair<double, Family>> findEvenFamilies(llvm::ArrayRef<unsigned> seeds,
                                                          llvm::ArrayRef<unsigned> connected,
                                                          llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// The same of unequal ranks.
  std::vector<std::pair<double, Family>> findUnequalFamilies(llvm::ArrayRef<unsigned> seeds,
                                                             llvm::ArrayRef<unsigned> connected,
                                                             llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// The time of a family on unequal ranks: between two exchanges, that of the slowest one.
  double getCost(const Family &family, llvm::ArrayRef<CutWeights::Placed> operations,
                 const CutWeights::Parts &parts) const;

  std::vector<int> getNumbers(llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// As even as whole elements can be; of unequal ranks, so that they take as long for all operations.
  std::vector<int64_t> getEvenCuts(int64_t extent, llvm::ArrayRef<mlir::StringAttr> axes) const;

  const layout::Mesh &mesh;
  const Cluster &cluster;
  CutWeights weights;
  bool divides;
  llvm::DenseMap<mlir::Value, unsigned> places;
  /// By place.
  std::vector<int64_t> extents;
  std::vector<double> work;
  std::vector<llvm::SmallVector<unsigned, 4>> linksOf;
  std::vector<Link> links;
  std::map<unsigned, llvm::SmallVector<std::pair<DimShardingAttr, bool>, 1>> given;
  std::vector<std::pair<unsigned, llvm::SmallVector<mlir::StringAttr>>> open;
  std::vector<llvm::SmallVector<mlir::StringAttr>> statedAxes;
  llvm::DenseMap<mlir::ArrayAttr, std::vector<llvm::SmallVector<Cuts, 1>>> families;
  mlir::MLIRContext *context;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_CUTFAMILIES_H
