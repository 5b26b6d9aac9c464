//===- DimMap.h - Relation of an operand dimension to a loop dimension -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_DIMMAP_H
#define DOVETAIL_LAYOUT_DIMMAP_H

#include "dovetail/Layout/Interval.h"

#include <memory>
#include <optional>
#include <span>

namespace dovetail::layout {

/// Which indices of one operand dimension a loop index needs. Maps are
/// immutable values, cheap to copy.
///
/// Positions, factors and offsets must stay below 2^62 in magnitude; products
/// are computed without overflow and results saturate at that bound.
class DimMap {
public:
  enum class Kind {
    /// Loop index i needs the operand indices
    /// `floor((num*i + offLo) / den) ... floor((num*i + offHi) / den)`; none
    /// when the first exceeds the last.
    Affine,
    /// Loop index i needs `lo[i] ... last[i]`; none when `lo[i] > last[i]`.
    Table,
    /// All of the dimension is needed, whatever the loop.
    Whole,
    /// All of a broadcast dimension (of extent 1) is needed, whatever the loop.
    Point,
  };

  /// `den` must be positive; `num` may be negative or zero.
  static DimMap affine(int64_t num, int64_t den, int64_t offLo, int64_t offHi);
  static DimMap identity() { return affine(1, 1, 0, 0); }
  /// A sliding window: i needs `i*stride - padLo + k*dilation`, k < kernel. All
  /// but `padLo` must be positive.
  static DimMap window(int64_t kernel, int64_t stride, int64_t dilation, int64_t padLo);
  /// i needs `i + offset`.
  static DimMap shift(int64_t offset) { return affine(1, 1, offset, offset); }
  /// i needs `start + i*step`; `step` may be negative.
  static DimMap slice(int64_t start, int64_t step) { return affine(step, 1, start, start); }
  /// Several loop indices share an operand index: i needs `floor(i / inner)`.
  static DimMap merge(int64_t inner) { return affine(1, inner, 0, 0); }
  /// A loop index needs a group: `i*inner ... i*inner + inner-1`.
  static DimMap split(int64_t inner) { return affine(inner, 1, 0, inner - 1); }
  /// The first and last operand index for each loop index; equal sizes.
  static DimMap table(std::vector<int64_t> lo, std::vector<int64_t> last);
  static DimMap whole() { return DimMap(Kind::Whole); }
  static DimMap broadcastPoint() { return DimMap(Kind::Point); }

  Kind getKind() const { return kind; }
  /// Coefficients of an `Affine` map.
  int64_t getNum() const { return num; }
  int64_t getDen() const { return den; }
  int64_t getOffLo() const { return offLo; }
  int64_t getOffHi() const { return offHi; }
  /// Bounds of a `Table` map, one for each loop index; otherwise empty.
  std::span<const int64_t> getTableLo() const;
  std::span<const int64_t> getTableLast() const;

  /// Whether each loop index needs the operand index equal to it and no other.
  bool isIdentity() const { return kind == Kind::Affine && num == den && offLo == offHi && offLo >= 0 && offLo < den; }
  /// Whether the need depends on the loop (`Affine` and `Table`).
  bool hasLoop() const { return kind == Kind::Affine || kind == Kind::Table; }

  /// The hull of the operand indices that the indices in `loop` need, *not*
  /// clipped to the operand: what reaches outside is padding. Empty for an
  /// empty loop. A table's loop is clipped to the table. `Point` needs `[0, 1)`
  /// and `Whole` everything from 0 on, whatever `loop` is.
  Interval need(Interval loop) const;
  /// `need` inside of `[0, operandExtent)`; for `Whole` and `Point` all of it.
  Interval needClipped(Interval loop, int64_t operandExtent) const;

  /// The cuts of a loop of `loopExtent` that follow an operand's `cuts` with
  /// the least communication: a cut c goes to the smallest loop index whose
  /// centre is not below c. A cut at an end of the operand stays at that end,
  /// so empty shards stay empty. A table that is not monotone (reflected or
  /// wrapped padding) is cut where the fewest indices are on the wrong side;
  /// indices whose centre is right on the cut go half to each side. No value
  /// for maps without a loop and for those that run backwards.
  std::optional<std::vector<int64_t>> follow(std::span<const int64_t> cuts, int64_t loopExtent) const;
  /// The cuts of an operand of `operandExtent` for the loop's `cuts`: positions
  /// that `follow` takes back to `cuts` where there are such, of those a
  /// multiple of the stride if possible. No value where `follow` has none.
  std::optional<std::vector<int64_t>> followBack(std::span<const int64_t> loopCuts, int64_t operandExtent) const;

  /// `2*i - 1 ... 2*i + 1`, as in messages.
  std::string str() const;

  friend bool operator==(const DimMap &a, const DimMap &b);

private:
  struct Table {
    std::vector<int64_t> lo, last;
    /// Whether no index needs nothing and `lo + last` never decreases.
    bool monotone;
    /// Whether centres fall more often than they rise.
    bool backwards;
  };

  explicit DimMap(Kind kind) : kind(kind) {}
  bool canFollow() const;
  int64_t followCut(int64_t cut, int64_t operandExtent, int64_t loopExtent) const;
  int64_t followCutBack(int64_t loopCut, int64_t operandExtent, int64_t loopExtent) const;

  Kind kind;
  int64_t num = 1, den = 1, offLo = 0, offHi = 0;
  std::shared_ptr<const Table> entries;
};

std::ostream &operator<<(std::ostream &os, const DimMap &map);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_DIMMAP_H
