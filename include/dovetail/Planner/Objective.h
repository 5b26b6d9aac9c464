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

#ifndef DOVETAIL_PLANNER_OBJECTIVE_H
#define DOVETAIL_PLANNER_OBJECTIVE_H

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

} // namespace dovetail

#endif // DOVETAIL_PLANNER_OBJECTIVE_H
