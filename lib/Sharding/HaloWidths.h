//===- HaloWidths.h - How wide halos are ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what finds which operations had better compute halos than have them exchanged.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_HALOWIDTHS_H
#define DOVETAIL_LIB_SHARDING_HALOWIDTHS_H

#include "dovetail/Cost/ExchangeTiming.h"
#include "dovetail/Cost/Objective.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "llvm/ADT/MapVector.h"

#include <vector>

namespace dovetail {

/// What widths are to be best at.
struct HaloGoal {
  Objective objective;
  /// How long work and exchanges take.
  const Cluster &cluster;
  /// How ranks carry out exchanges.
  ExchangeEngine engine;
  /// Exchanges are to be as few as can be, whatever that costs.
  bool always = false;
  /// If not 0, none of that matters: anything that may be decided is, at random.
  uint64_t seed = 0;
};

/// What is to change.
struct HaloWidths {
  /// What exchanges take that depend on widths, and operations that may be widened.
  struct Expense {
    /// Exchanges one after the other.
    int exchanges = 0;
    /// That all ranks receive, together.
    double bytes = 0;
    /// Of exchanges, and of work: each time of the rank that takes longest.
    double exchangeSeconds = 0, workSeconds = 0;
  };
  /// A value that an operation which changes computes or reads.
  struct Change {
    mlir::Value value;
    /// Operands that read it, as it is or with a halo.
    llvm::SmallVector<mlir::OpOperand *> readers;
    /// What it is brought to all of them as, if there are several.
    ShardingAttr form;
  };

  /// An operation that computes more than before.
  struct Widened {
    LoopShardings loops;
    /// What the slowest rank has more to do.
    double moreSeconds = 0;
  };

  llvm::MapVector<mlir::Operation *, Widened> operations;
  std::vector<Change> values;
  /// As everything was, and as it is to be.
  Expense before, after;
};

/// Finds what the goal asks for, in a function whose needs are met by reshards.
///
/// Every operation chooses among the windows that its readers need, whatever these choose, besides those that it has,
/// and every value with several readers in what form it is brought to all of them. Work is a cost of one choice and an
/// exchange that of two, so that a `ChoiceGraph` finds the optimum. Halos are those of operations: what a function
/// returns, and what other reshards read or give, stays as it is.
///
/// An error if it is not said how the loops of an operation are split.
mlir::FailureOr<HaloWidths> findHaloWidths(mlir::func::FuncOp function, const layout::Mesh &mesh,
                                           mlir::FlatSymbolRefAttr meshName, const HaloGoal &goal);

/// The constant that an operand reads, or a part of it; null if it reads none.
ConstantOp getReadConstant(mlir::Value operand);

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_HALOWIDTHS_H
