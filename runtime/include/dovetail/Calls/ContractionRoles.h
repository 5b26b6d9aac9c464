//===- ContractionRoles.h - Loops of sums of products -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which loops of a sum of products are batches, rows, columns and terms. Costs of products, their kernels and
// calls of libraries ask here.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_CONTRACTIONROLES_H
#define DOVETAIL_CALLS_CONTRACTIONROLES_H

#include "dovetail/Layout/IndexExpr.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace dovetail::calls {

/// An access in each dimension of an operand.
using AccessDims = std::span<const layout::AccessDim>;

enum class LoopRole : uint8_t {
  Batch,  ///< Of the result: both factors differ along it, or neither does.
  Row,    ///< Of the result: only the first factor differs along it.
  Column, ///< Only the second one does.
  Depth   ///< Terms are added up along it, taps of windows included.
};

/// The length of blocks of loop `loop` in which an operand that is read at `access` is at one place. The first block
/// begins at 0. It is all of the loop's `extent` if the operand does not depend on the loop.
int64_t countSharing(AccessDims access, int loop, int64_t extent);

/// The role of each loop of a sum of products.
class ContractionRoles {
public:
  /// Of factors that are read at `first` and `second` in loops of extents `loops`, of which the first `resultRank` are
  /// the dimensions of the result.
  ContractionRoles(AccessDims first, AccessDims second, std::span<const int64_t> loops, size_t resultRank);

  LoopRole operator[](size_t loop) const { return roles[loop]; }
  /// As `countSharing`, of factor 0 or 1.
  int64_t getSharing(int factor, size_t loop) const { return sharing[factor][loop]; }
  /// Whether the factor differs along the loop.
  bool differs(int factor, size_t loop) const { return sharing[factor][loop] < extents[loop]; }
  /// Of a batch along which both factors differ, the number of iterations for which the first one is the same. They are
  /// columns of one product. 1 for all other loops.
  int64_t getGroupColumns(size_t loop) const;

private:
  std::vector<int64_t> extents;
  std::array<std::vector<int64_t>, 2> sharing;
  std::vector<LoopRole> roles;
};

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_CONTRACTIONROLES_H
