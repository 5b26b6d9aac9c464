//===- IndexExpr.h - Indices as functions of loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines IndexExpr, an index of one dimension of a tensor as a function of the loops of an operation, and AccessDim,
// which adds what happens where that index leaves the tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_INDEXEXPR_H
#define DOVETAIL_LAYOUT_INDEXEXPR_H

#include "dovetail/Layout/DimMap.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dovetail::layout {

/// An index as a function of loop indices: a sum of a constant and multiples of loops, of other sums divided by a
/// number (rounded down, or the remainder), of entries of constant tables, and of unknown values, of which intervals
/// may be known. Closed under substitution of expressions for loops. Immutable, cheap to copy; equal functions written
/// alike are equal.
///
/// Loops are numbered from 0. Constants, factors and values must stay below 2^62 in magnitude: sums are computed
/// without overflow, and saturate at that bound.
class IndexExpr {
public:
  /// What a term multiplies.
  enum class Kind {
    Loop,     ///< The index of a loop.
    Unknown,  ///< A value that is not known before the operation runs, such as an element that it has read.
    Quotient, ///< `floor(operand / divisor)`.
    Remainder ///< `operand - divisor * floor(operand / divisor)`: 0 ... divisor-1.
  };
  /// A multiple of a loop, an unknown value, or a function of another expression.
  class Term {
  public:
    int64_t factor = 1;
    Kind kind = Kind::Loop;
    int number = 0;      ///< Of the loop or unknown value.
    int64_t divisor = 1; ///< Of a quotient or remainder.

    /// Whether there is an operand: of quotients, remainders and unknown values in intervals.
    bool hasOperand() const { return operand != nullptr; }
    const IndexExpr &getOperand() const { return *operand; }
    /// The first and last values of intervals.
    std::span<const int64_t> getFirst() const { return *first; }
    std::span<const int64_t> getLast() const { return *last; }

    bool dependsOn(int loop) const;
    /// The value, and bounds of it, without the factor: as those of expressions.
    int64_t evaluate(std::span<const int64_t> loops) const;
    Interval bounds(std::span<const Interval> loops) const;

  private:
    friend class IndexExpr;
    friend bool operator==(const IndexExpr &a, const IndexExpr &b);
    /// Like comparisons of numbers, of what the factors multiply.
    static int compare(const Term &a, const Term &b);
    static int compare(const IndexExpr &a, const IndexExpr &b);

    std::shared_ptr<const IndexExpr> operand;
    std::shared_ptr<const std::vector<int64_t>> first, last;
  };

  /// The constant 0.
  IndexExpr() = default;
  IndexExpr(int64_t constant) : constant(constant) {}
  static IndexExpr loop(int number);
  /// Unknown value number `number`; what its number means is up to the user of the expression.
  static IndexExpr unknown(int number);
  /// As above, and known to be in `lo[i] ... last[i]` where `index` is i; there is no value where `lo[i] > last[i]`.
  /// The tables are of equal size, not empty; `index` is clamped to them.
  static IndexExpr unknown(int number, const IndexExpr &index, std::vector<int64_t> lo, std::vector<int64_t> last);

  friend IndexExpr operator+(const IndexExpr &a, const IndexExpr &b);
  friend IndexExpr operator-(const IndexExpr &a, const IndexExpr &b);
  friend IndexExpr operator*(const IndexExpr &a, int64_t factor);
  friend IndexExpr operator*(int64_t factor, const IndexExpr &a) { return a * factor; }
  IndexExpr operator-() const { return *this * -1; }
  /// Rounded toward negative infinity, and the remainder of that; `divisor` > 0.
  IndexExpr floorDiv(int64_t divisor) const;
  IndexExpr mod(int64_t divisor) const;

  int64_t getConstant() const { return constant; }
  /// Ascending by kind and contents; no two multiply the same, and no factor is 0.
  std::span<const Term> getTerms() const { return terms; }
  /// The value of an expression without terms.
  std::optional<int64_t> asConstant() const { return terms.empty() ? std::optional(constant) : std::nullopt; }
  /// The number of the loop that this is, and nothing else.
  std::optional<int> asLoop() const;
  /// The factor of `loop` in a sum in which it stands in no other term; 0 if it is not there at all.
  /// No value if it stands in one of those.
  std::optional<int64_t> getFactor(int loop) const;
  bool dependsOn(int loop) const;
  /// Whether it contains an unknown value.
  bool hasUnknown() const;

  /// The value at these indices of all loops that occur. Unknown values must be
  /// in intervals of one value.
  int64_t evaluate(std::span<const int64_t> loops) const;
  /// An interval that contains the value at all indices in `loops`, one for each loop that occurs, which are not empty;
  /// the smallest one if no loop occurs twice and no remainder is taken. Unknown values without
  /// intervals reach everywhere.
  Interval bounds(std::span<const Interval> loops) const;
  /// This, with `replacements[i]` for each loop i.
  IndexExpr substitute(std::span<const IndexExpr> replacements) const;

  /// `2*d0 - 1 + floor((d1 + 3) / 4)`, as in messages; unknown values are `u0`.
  std::string str() const;

  friend bool operator==(const IndexExpr &a, const IndexExpr &b);

private:
  static IndexExpr ofTerm(Term term);
  void add(const Term &term);

  int64_t constant = 0;
  std::vector<Term> terms;
};

std::ostream &operator<<(std::ostream &os, const IndexExpr &expr);

/// What is accessed where an index leaves an interval.
enum class Border {
  None,    ///< There is no element.
  Edge,    ///< The nearest one in the interval.
  Reflect, ///< The mirror image at the first or last one, which is not repeated.
  Wrap     ///< The interval is repeated.
};

/// The position in `within`, which is not empty, that stands for `index`, which is anywhere; itself for `None`.
int64_t continueInside(int64_t index, Interval within, Border border);

/// Where one dimension of a tensor is accessed: at `index / divisor`, at iterations where that is a whole number (a
/// transposed convolution reads at every `stride`-th) and lies in the tensor. At others there is no element. With a
/// border an index outside of `within`, a part of the tensor, stands for one in it.
struct AccessDim {
  IndexExpr index;
  int64_t divisor = 1; ///< 1 with a border.
  Border border = Border::None;
  Interval within; ///< Not empty with a border.

  AccessDim() = default;
  AccessDim(IndexExpr index, int64_t divisor = 1) : index(std::move(index)), divisor(divisor) {}
  AccessDim(IndexExpr index, Border border, Interval within)
      : index(std::move(index)), border(border), within(within) {}

  /// Which indices are needed for each index of `loop`, as a map, while the other loops go through `loops` (one
  /// interval for each loop; that of `loop` is all of it): `Whole` if the access does not depend on the loop, wraps
  /// around or reaches everywhere.
  DimMap getMap(int loop, std::span<const Interval> loops) const;
  /// An interval that contains what iterations in the box `loops`, none of which is empty, need of a dimension of any
  /// extent: not clipped. As tight as `IndexExpr::bounds`.
  Interval need(std::span<const Interval> loops) const;

  friend bool operator==(const AccessDim &a, const AccessDim &b) {
    return a.divisor == b.divisor && a.border == b.border && a.within == b.within && a.index == b.index;
  }
};

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_INDEXEXPR_H
