//===- ExchangeCosts.h - What exchanges cost --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ExchangeCosts, which says in closed form what it costs to change a tensor's sharding.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_EXCHANGECOSTS_H
#define DOVETAIL_COST_EXCHANGECOSTS_H

#include "dovetail/Cost/ExchangeTiming.h"
#include "dovetail/Cost/Objective.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "llvm/ADT/SmallBitVector.h"

#include <memory>
#include <optional>

namespace dovetail {

/// What a second counts where memory is what counts, in bytes: of ways that take as much, the fastest one is chosen.
inline constexpr double kBytesPerSecond = 1e-3;

/// What an exchange moves.
struct ExchangeCost {
  /// Bytes that all ranks receive.
  double totalBytes = 0;
  /// Exchanges one after the other: none where every rank has what it needs, two for a large reduction.
  int phases = 0;
  /// Estimated, of the rank that takes longest.
  double seconds = 0;

  /// What an objective says of it.
  double get(Objective objective) const;

  ExchangeCost &operator+=(const ExchangeCost &other) {
    totalBytes += other.totalBytes;
    phases += other.phases;
    seconds += other.seconds;
    return *this;
  }
};

/// Costs of exchanges on one mesh of ranks of a cluster.
class ExchangeCosts {
public:
  ExchangeCosts(layout::Mesh mesh, const Cluster &cluster, ExchangeEngine engine)
      : mesh(std::move(mesh)), cluster(cluster), engine(engine), levels(this->mesh, cluster),
        counter(this->mesh, engine == ExchangeEngine::Streams) {
    for (const std::vector<int> &near : levels.near)
      beyond.emplace_back(levels.mesh, engine == ExchangeEngine::Streams, near);
  }

  const layout::Mesh &getMesh() const { return mesh; }
  const Cluster &getCluster() const { return cluster; }
  /// To take a tensor of the shape and element type of `type` from `held` to what is `needed`; a null `needed` is
  /// content with whatever is not partial. No value where that is not done: what stays partial stays so over all axes,
  /// and what is needed is held by some rank.
  std::optional<ExchangeCost> get(mlir::RankedTensorType type, ShardingAttr held, ShardingAttr needed);

  /// Bytes of a tensor that the rank with most holds.
  double getLargestBytes(mlir::RankedTensorType type, ShardingAttr held);

  /// To tell all others of its group along `axes` so many bytes that each rank has.
  ExchangeCost getTelling(double bytes, llvm::ArrayRef<mlir::StringAttr> axes);

  /// To give ranks what they hold of an argument, beyond giving all of it to one.
  ExchangeCost getGiving(mlir::RankedTensorType type, ShardingAttr held);

private:
  /// The mesh with axes divided where groups of links end.
  struct Levels {
    Levels(const layout::Mesh &mesh, const Cluster &cluster);
    layout::Sharding refine(const layout::Sharding &sharding) const;

    layout::Mesh mesh;
    /// Of each axis, how many take its place.
    std::vector<int> numParts;
    /// Of each link, the axes along which ranks are in one group of it.
    std::vector<std::vector<int>> near;
  };

  /// A sharding over the mesh as it is, and over that of the levels.
  struct Layout {
    layout::Sharding plain, refined;
  };

  const Layout &getLayout(ShardingAttr sharding);
  std::optional<ExchangeCost> find(mlir::RankedTensorType type, ShardingAttr held, ShardingAttr needed);
  /// The slowest link between ranks that differ along these axes alone.
  const Link &getLink(const llvm::SmallBitVector &axes);
  /// What follows from a sharding to another one, in one phase, of elements of so many bytes.
  ExchangeCost getPhase(llvm::ArrayRef<int64_t> shape, double elementBytes, const Layout &from, const Layout &to);
  /// What it takes if a library does it as a collective; nothing if it is none.
  std::optional<double> getCollectiveSeconds(llvm::ArrayRef<int64_t> shape, double elementBytes,
                                             const layout::Sharding &from, const layout::Sharding &to);
  /// What it takes as messages, which are `all` together.
  double getMessageSeconds(llvm::ArrayRef<int64_t> shape, double elementBytes, const Layout &from, const Layout &to,
                           const layout::ExchangeVolume &all);
  /// What a library takes for it among these ranks.
  double getCollectiveSeconds(layout::ExchangeKind kind, double partBytes, const std::vector<int> &members) const;

  layout::Mesh mesh;
  const Cluster &cluster;
  ExchangeEngine engine;
  Levels levels;
  /// Of all that exchanges move, and of what goes beyond groups of each link.
  layout::ExchangeCounter counter;
  std::vector<layout::ExchangeCounter> beyond;
  llvm::DenseMap<llvm::SmallBitVector, const Link *> links;
  llvm::DenseMap<ShardingAttr, std::unique_ptr<Layout>> layouts;
  /// What it takes to tell a group along axes so many bytes, by their bits.
  llvm::DenseMap<std::pair<llvm::SmallBitVector, uint64_t>, double> toldSeconds;
  /// Of shapes with an element type: models repeat themselves.
  llvm::DenseMap<std::tuple<mlir::Type, ShardingAttr, ShardingAttr>, std::optional<ExchangeCost>> known;
};

} // namespace dovetail

#endif // DOVETAIL_COST_EXCHANGECOSTS_H
