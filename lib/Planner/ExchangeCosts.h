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

#ifndef DOVETAIL_LIB_PLANNER_EXCHANGECOSTS_H
#define DOVETAIL_LIB_PLANNER_EXCHANGECOSTS_H

#include "dovetail/Sharding/ShardingUtils.h"

#include <memory>
#include <optional>

namespace dovetail {

/// What an exchange moves.
struct ExchangeCost {
  /// Bytes that all ranks receive, and the rank that receives most.
  double totalBytes = 0, largestBytes = 0;
  /// Exchanges one after the other: none where every rank has what it needs, two for a large reduction.
  int phases = 0;

  /// Estimated, if every phase takes what it takes to begin one and to receive most.
  double getSeconds() const;
};

/// Costs of exchanges on one mesh.
class ExchangeCosts {
public:
  explicit ExchangeCosts(layout::Mesh mesh) : mesh(std::move(mesh)) {}

  const layout::Mesh &getMesh() const { return mesh; }
  /// To take a tensor of the shape and element type of `type` from `held` to what is `needed`; a null `needed` is
  /// content with whatever is not partial. No value where that is not done: what stays partial stays so over all axes.
  std::optional<ExchangeCost> get(mlir::RankedTensorType type, ShardingAttr held, ShardingAttr needed);

  /// To give ranks what they hold of an argument, beyond giving all of it to one.
  ExchangeCost getGiving(mlir::RankedTensorType type, ShardingAttr held) const;

private:
  const layout::Sharding &getLayout(ShardingAttr sharding);

  layout::Mesh mesh;
  llvm::DenseMap<ShardingAttr, std::unique_ptr<layout::Sharding>> layouts;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_PLANNER_EXCHANGECOSTS_H
