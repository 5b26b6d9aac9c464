//===- WorkModel.h - How long operations take -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares WorkModel, which estimates from its definition how long an operation takes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_PLANNER_WORKMODEL_H
#define DOVETAIL_LIB_PLANNER_WORKMODEL_H

#include "dovetail/Sharding/ShardingUtils.h"

namespace dovetail {

/// The work of one operation, from its definition.
class WorkModel {
public:
  WorkModel(DefinitionOpInterface op, const OpRelation &relation);

  /// Seconds that all of it takes one rank.
  double getSeconds() const { return getSeconds(1, 1); }
  /// Seconds of the slowest rank where the loops are split so.
  double getSeconds(const OpRelation &relation, llvm::ArrayRef<DimShardingAttr> loops) const;
  /// The largest share of the iterations that a rank has.
  static double getLargestShare(const OpRelation &relation, llvm::ArrayRef<DimShardingAttr> loops);

private:
  double getSeconds(double iterationShare, double resultShare) const;

  /// Of all iterations, and of what is written.
  double computing, writing;
  unsigned resultRank;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_PLANNER_WORKMODEL_H
