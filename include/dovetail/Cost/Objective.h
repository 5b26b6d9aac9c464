//===- Objective.h - What a plan is to be best at ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Objective.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_OBJECTIVE_H
#define DOVETAIL_COST_OBJECTIVE_H

namespace dovetail {

/// What is to be least.
enum class Objective {
  /// Estimated time of the slowest ranks.
  Time,
  /// Bytes that ranks receive, all together, while all but light operations are divided as evenly as they can be.
  Bytes,
  /// Bytes of weights and values of the rank that has most.
  Memory,
};

/// The share of all time that a departure from a stated sharding has to save, if nothing else is asked for.
inline constexpr double kDefaultFollow = 0.1;

/// Whether anything is to be least at all: what decisions are compared with follows the inputs instead. Each operation
/// takes, one after the other, that of its options with which what it reads moves fewest bytes.
enum class Following {
  No,
  /// Of options that move as much, that which splits least: what the split of an input does not reach stays whole.
  Inputs,
  /// That which takes least time.
  Evenly,
};

/// Where bytes are to be least, how much more than in the most even way the slowest rank may have to do.
inline constexpr double kEvenTolerance = 1.05;

} // namespace dovetail

#endif // DOVETAIL_COST_OBJECTIVE_H
