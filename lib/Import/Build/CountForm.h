//===- CountForm.h - Extents as sums of lengths -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares CountForm: how a count follows from others, so that extents which are computed in several ways are one.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_COUNTFORM_H
#define DOVETAIL_LIB_IMPORT_BUILD_COUNTFORM_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <optional>
#include <vector>

namespace dovetail::importer {

/// The count max(sum of factor * count + added, 0) / divisor, rounded down. The counts of the sum are at least 0.
///
/// Operations return nothing where the result has no such form, or its numbers do not fit.
struct CountForm {
  struct Term {
    mlir::Value count;
    int64_t factor;
  };
  llvm::SmallVector<Term, 2> terms;
  int64_t added = 0, divisor = 1;

  static CountForm constant(int64_t number) { return {{}, number, 1}; }
  static CountForm of(mlir::Value count) { return {{{count, 1}}, 0, 1}; }

  bool isConstant() const { return terms.empty(); }
  /// The number that a constant form stands for.
  int64_t getConstant() const { return std::max<int64_t>(added, 0) / divisor; }
  /// The count that the form stands for as it is; null if it is computed.
  mlir::Value getCount() const;
  /// Whether the sum is never below 0.
  bool isNeverNegative() const;

  std::optional<CountForm> plus(const CountForm &other) const;
  /// `other` is at most as large, or the difference is 0.
  std::optional<CountForm> minus(const CountForm &other) const;
  std::optional<CountForm> times(int64_t factor) const;
  /// `number` is above 0.
  std::optional<CountForm> dividedBy(int64_t number) const;

  /// The largest value, where `getBound` says this of the counts of the sum; the largest integer if it does not fit.
  int64_t getBound(llvm::function_ref<int64_t(mlir::Value)> getBound) const;

  /// The smallest value of the sum itself.
  int64_t getLeast(llvm::function_ref<int64_t(mlir::Value)> getBound) const;

  /// Adds a multiple of the terms and of the constant of `other`; false if numbers do not fit.
  bool accumulate(const CountForm &other, int64_t factor);

  /// Equal for equal forms.
  using Key = std::vector<std::pair<const void *, int64_t>>;
  Key getKey() const;

private:
  /// The simplest equal form.
  CountForm normalized() const;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_COUNTFORM_H
