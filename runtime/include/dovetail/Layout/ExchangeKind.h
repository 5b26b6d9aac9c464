//===- ExchangeKind.h - How ranks carry out an exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines when one collective of each group of ranks does what an exchange is to do, and how a reduction of many bytes
// goes in two phases. The compiler decides with it, and the runtime checks what a plan says.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_EXCHANGEKIND_H
#define DOVETAIL_LAYOUT_EXCHANGEKIND_H

#include "dovetail/Layout/Exchange.h"
#include "dovetail/Layout/MemoryFormat.h"

namespace dovetail::layout {

/// From this size in bytes on, of what a rank reduces, parts are reduced by one rank each and then collected: below,
/// the second message costs more time than the bytes that are saved.
inline constexpr int64_t minScatterBytes = 64 * 1024;

/// How ranks carry out an exchange. Collectives are those of groups of ranks (`collectiveGroup`).
enum class ExchangeKind {
  /// Each rank sends to each other what that needs of it.
  Messages,
  /// All contribute to one box, which all get.
  AllReduce,
  /// All contribute to parts of equal size, of which each gets its own.
  ReduceScatter,
  /// Each gives a part, all of equal size, and all get all of them.
  AllGather,
  /// The same of parts that do not follow each other in memory, or differ in size: each packs its own, of all tensors
  /// of the exchange, into a block as large as the largest, and unpacks the blocks of all.
  PackedGather,
};

/// From so many ranks on, parts are packed to be gathered: fewer messages take no longer than the steps of a
/// collective.
inline constexpr int minPackedMembers = 4;

/// The kind's name as in messages, such as "all-gather".
const char *stringifyExchangeKind(ExchangeKind kind);

/// The memory in which a tensor lies: the box that each rank has, without gaps.
struct TensorMemory {
  Sharding held;
  const MemoryFormat &format;
};

/// All that decides how ranks can carry out an exchange. `verifyExchange` must accept the shardings, and what a rank
/// has of a tensor lies inside of what it has of the tensor's memory. What is referred to must outlive it.
struct ExchangePlace {
  const Mesh &mesh;
  std::span<const int64_t> shape;
  const Sharding &from, &to;
  TensorMemory source, target;

  /// How elements lie in messages: as in the source, so that what is in one piece there is sent as it is.
  const MemoryFormat &messageFormat() const { return source.format; }
  /// The collective that does the exchange on all ranks: in each group parts of equal size, in the memories without
  /// gaps and in the order of ranks; or nothing at all, where a group needs nothing. Parts of groups of
  /// `minPackedMembers` may lie as they like, and differ in size, by little or as far as that is less than
  /// `minScatterBytes` of what a group gathers. `Messages` where there is none.
  /// Costs O(ranks). `elementBytes`: of an element of the tensor.
  ExchangeKind findKind(int64_t elementBytes) const;
  /// Whether `kind` does the exchange. If not, and `why` is given, it says what is at fault.
  bool fits(ExchangeKind kind, std::string *why = nullptr) const;

private:
  bool fitsPacked(std::string *why) const;
};

/// A rank with those that it has a collective with, and what is whose.
struct CollectiveGroup {
  /// Ranks, ascending. They differ on some axes of the mesh alone, and on these in all ways.
  std::vector<int> members;
  /// Of each member: what it gets (`ReduceScatter`), gives (gathers), or both (`AllReduce`). All of them are empty
  /// where the group has nothing to do.
  std::vector<Box> parts;

  /// The largest of the parts, in elements.
  int64_t largestVolume() const;
};

/// Whether `kind` collects parts, and combines nothing.
inline bool isGather(ExchangeKind kind) {
  return kind == ExchangeKind::AllGather || kind == ExchangeKind::PackedGather;
}

/// Whether one exchange of `kind` may move several tensors, and leave what is where it is to be already: the others are
/// calls of one box.
inline bool movesMany(ExchangeKind kind) {
  return kind == ExchangeKind::Messages || kind == ExchangeKind::PackedGather;
}

/// The group of `rank` in a collective of `kind`, which fits the exchange. Without members for `Messages`.
CollectiveGroup collectiveGroup(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                const Sharding &to, ExchangeKind kind, int rank);

/// What lies between the two phases of an exchange that combines contributions: each rank of a group has the combined
/// elements of a part of its box in `to`, which then all collect. Parts differ by at most one in the dimension that is
/// cut: the outermost one in `order`, the order in memory, that is long enough, or else the longest one. Nothing where
/// there is only one phase: the exchange combines no elements, ranks do not have what they need of each contribution
/// themselves, or no dimension can be cut.
std::optional<Sharding> scatteredSharding(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from,
                                          const Sharding &to, std::span<const int> order);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_EXCHANGEKIND_H
