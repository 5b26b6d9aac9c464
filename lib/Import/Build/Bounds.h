//===- Bounds.h - Dimensions whose extents depend on data -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Bounds, which knows of which values that are imported dimensions are bounded, and by which counts.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_BOUNDS_H
#define DOVETAIL_LIB_IMPORT_BUILD_BOUNDS_H

#include "CountForm.h"
#include "UnsupportedParts.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace dovetail::importer {

/// An extent as a node is given it: a number or, of a dimension that is bounded, its bound and the count.
struct Extent {
  int64_t number = 0;
  mlir::Value count = {};

  bool operator==(const Extent &) const = default;
};

/// For each dimension of a value the count that bounds it, a scalar of i64; null for those whose extent is known.
using Counts = llvm::SmallVector<mlir::Value>;

/// The bounded dimensions of values. They have the extent of their bound; what lies beyond the count, the tail, is
/// computed as all else, and may be anything. So nothing may depend on it: values that are made of bounded ones have
/// the elements that the model says at the coordinates below all counts, whatever their tails are.
///
/// Values stay until all of the model is imported, or `forget` is told.
class Bounds {
public:
  /// The counts of a value's dimensions; empty if none is bounded.
  llvm::ArrayRef<mlir::Value> get(mlir::Value value) const {
    auto it = counts.find(value);
    return it == counts.end() ? llvm::ArrayRef<mlir::Value>() : llvm::ArrayRef<mlir::Value>(it->second);
  }
  bool isBounded(mlir::Value value) const { return value && !get(value).empty(); }
  /// It was found out, or said, what bounds the value, be it nothing.
  bool isKnown(mlir::Value value) const { return counts.contains(value); }
  /// Says what bounds a value, whatever it is made of: nothing, if `given` is empty.
  void set(mlir::Value value, Counts given);
  /// The value bounds dimensions, and so stays, whoever uses it.
  bool isCount(mlir::Value value) const { return used.contains(value); }
  /// Of a count: the extent of the dimensions that it bounds, or would.
  int64_t getBound(mlir::Value count) const;
  int64_t getBound(const CountForm &form) const {
    return form.getBound([this](mlir::Value count) { return getBound(count); });
  }
  /// The count that is made of another one and of numbers that say how, so that dimensions whose extents are computed
  /// alike have one; null as long as there is none.
  mlir::Value getDerived(mlir::Value count, std::array<int64_t, 3> numbers) const {
    auto it = derived.find({count.getAsOpaquePointer(), numbers});
    return it == derived.end() ? mlir::Value() : it->second;
  }
  void setDerived(mlir::Value count, std::array<int64_t, 3> numbers, mlir::Value made) {
    DerivedKey key(count.getAsOpaquePointer(), numbers);
    derived[key] = made;
    derivations[made] = key;
  }
  /// How a count follows from others: from itself, if it does not.
  CountForm getForm(mlir::Value count) const {
    auto it = forms.find(count);
    return it == forms.end() ? CountForm::of(count) : it->second;
  }
  /// The count of this form; null as long as there is none.
  mlir::Value getCount(const CountForm &form) const {
    auto it = formed.find(form.getKey());
    return it == formed.end() ? form.getCount() : it->second;
  }
  /// The simplest form that `compute` finds, from the forms of the two extents and from their counts as they are.
  using Compute = llvm::function_ref<std::optional<CountForm>(const CountForm &a, const CountForm &b)>;
  std::optional<CountForm> combine(const Extent &a, const Extent &b, Compute compute) const;
  void setCount(const CountForm &form, mlir::Value count) {
    formed[form.getKey()] = count;
    forms.try_emplace(count, form);
  }
  /// Forgets a value that is about to be erased.
  void forget(mlir::Value value);

  /// `value`, of which dimension `dim` is bounded, with `count` as what bounds that. A run in which the two differ ends
  /// with an error.
  mlir::Value agree(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, unsigned dim, mlir::Value count);

  /// `value`; a run in which the sum of `form` is below `least` ends with an error. The bounds of `value` are known.
  mlir::Value require(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, const CountForm &form,
                      int64_t least);

  /// Finds the bounded dimensions of the results of `op`, from those of its operands: a dimension of an operand that is
  /// read at a loop over a dimension of the result, and nothing else, bounds that dimension. Indices that are looked up
  /// get tails that are zero, and so do factors of products that are summed over one. Where two counts meet, they are
  /// to `agree`. Returns why the results may depend on a tail, or have another extent, if so.
  std::optional<Obstacle> infer(mlir::Operation *op);

private:
  /// Makes the tails of operand number `operand` zero in dimensions that have a count in `which`, for `op`.
  void clearTails(mlir::Operation *op, unsigned operand, llvm::ArrayRef<mlir::Value> which);

  llvm::DenseMap<mlir::Value, Counts> counts;
  llvm::DenseMap<mlir::Value, int64_t> used; ///< All that are in `counts`, with their bounds.
  llvm::DenseMap<mlir::Value, CountForm> forms;
  std::map<CountForm::Key, mlir::Value> formed;
  using DerivedKey = std::pair<const void *, std::array<int64_t, 3>>;
  std::map<DerivedKey, mlir::Value> derived;
  llvm::DenseMap<mlir::Value, DerivedKey> derivations;
};

/// `value` with zeros in the tails of its dimensions, and what is said of a dimension in messages.
mlir::Value clearTails(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       llvm::ArrayRef<mlir::Value> counts);

/// That something needs an extent that depends on data: `what`, as a subject, of which dimension `dim` is bounded.
Obstacle describeBounded(const llvm::Twine &what, unsigned dim, int64_t bound, const llvm::Twine &why);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_BOUNDS_H
