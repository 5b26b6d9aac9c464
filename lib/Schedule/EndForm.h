//===- EndForm.h - Where loops end in a run -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines EndForm, a bound of integers as a function of lengths, and End, a bound of what is needed of a dimension.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SCHEDULE_ENDFORM_H
#define DOVETAIL_LIB_SCHEDULE_ENDFORM_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace dovetail {

/// A bound of an integer, whatever lengths a run has. It is (sum of factors[i] * length i + added) / divisor, rounded
/// down, or `least` if that is more. All that is done with bounds gives bounds, which may be larger than the least
/// ones. Nothing where numbers become large.
struct EndForm {
  llvm::SmallVector<int64_t, 2> factors; ///< At least 0; those that are not there are 0.
  int64_t added = 0, divisor = 1;
  std::optional<int64_t> least; ///< None: no bound from below.

  static EndForm constant(int64_t number) { return {{}, number, 1, std::nullopt}; }
  static EndForm length(unsigned number);

  bool isConstant() const { return factors.empty(); }
  /// The value of a constant.
  int64_t getConstant() const;

  /// A bound of the sum, of a multiple (`factor` >= 0), and of what is divided (`number` >= 1) and rounded down.
  static std::optional<EndForm> add(const EndForm &a, const EndForm &b);
  std::optional<EndForm> plus(int64_t number) const;
  std::optional<EndForm> times(int64_t factor) const;
  std::optional<EndForm> dividedBy(int64_t number) const;
  /// A bound of both.
  static std::optional<EndForm> join(const EndForm &a, const EndForm &b);
  /// Whether `a` is no larger than `b`, as far as coefficients tell.
  static bool isBelow(const EndForm &a, const EndForm &b);

  bool operator==(const EndForm &) const = default;

private:
  /// The same with a denominator that both have; false if that is large.
  static bool align(EndForm &a, EndForm &b);
  /// The simplest form; nothing if numbers are large.
  std::optional<EndForm> simplified() const;
};

/// How much of a dimension is needed: nothing, all of it, or some. Then it is `beyond` elements more than the next
/// multiple of `step` at or behind `form`.
class End {
public:
  static End none() { return End(Kind::None); }
  static End all() { return End(Kind::All); }
  static End at(std::optional<EndForm> form, int64_t step = 1, int64_t beyond = 0);

  bool isNone() const { return kind == Kind::None; }
  bool isAll() const { return kind == Kind::All; }
  bool hasForm() const { return kind == Kind::At; }
  const EndForm &getForm() const { return form; }
  int64_t getStep() const { return step; }
  int64_t getBeyond() const { return beyond; }

  /// The same of a dimension of `extent`: all where that is what a constant says.
  End within(int64_t extent) const;
  /// Without a step: a form that is no smaller.
  std::optional<EndForm> getPlain() const;
  /// At a multiple of `grid`, at or behind this.
  End roundedUp(int64_t grid) const;
  /// How much is needed of a dimension that is read at `(factor * i + last) / divisor` for each i before this end. That
  /// is rounded down, or read only where it is a whole number.
  End read(int64_t factor, int64_t last, int64_t divisor) const;
  static End join(const End &a, const End &b);
  /// A bound that is one of the two.
  static End meet(const End &a, const EndForm &b);

  bool operator==(const End &) const = default;

private:
  enum class Kind { None, At, All };
  explicit End(Kind kind) : kind(kind) {}

  Kind kind;
  EndForm form;
  int64_t step = 1, beyond = 0;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SCHEDULE_ENDFORM_H
