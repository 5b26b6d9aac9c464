//===- Library.h - What vendors' libraries do -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Library, all that lowering knows of a library of a target, and Libraries, those that a program may call.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIBRARY_LIBRARY_H
#define DOVETAIL_LIBRARY_LIBRARY_H

#include "dovetail/Layout/Box.h"
#include "dovetail/Library/CallShape.h"

#include <memory>
#include <string>
#include <vector>

namespace dovetail {

/// Among the features that libraries are created with: they may round the factors of products of f32, by `--math`.
inline constexpr llvm::StringLiteral kRoundedFactors = "rounded-factors";

/// What a library call takes on one rank, besides its operands, in bytes: weights in the library's own form, which are
/// kept; memory while it runs; the same for each of the rank's threads; and more of packed weights for each of these
/// but one, which libraries do not say.
struct CallBytes {
  int64_t packed = 0, scratch = 0, threadScratch = 0, threadPacked = 0;
};

/// A library of a target: which forms of calls it does, in which types, with which epilogues, and how values should lie
/// in memory around them. An operation that has such a form becomes a call; the rest has generated kernels. Immutable.
class Library {
public:
  virtual ~Library() = default;

  /// As in the option `libraries` of passes.
  virtual llvm::StringRef getName() const = 0;
  /// The element type that the library has for `call`: that of its operands and its result where the library takes them
  /// as they are, else one that has all of their values, to which they have to be converted. Sums are in f32 or wider
  /// whatever it is. Null if the library does not do `call`.
  mlir::FloatType getComputeType(const CallShape &call) const;
  /// True if the library does `call` on its operands as they are.
  bool supports(const CallShape &call) const;
  /// True if the library has products of integers of 8 bits whose sums are exact, in i32: of a first operand with or
  /// without a sign, and a second one with a sign. They have no epilogues.
  virtual bool hasIntegerProducts() const { return false; }
  /// True if its products of f32, but for convolutions of 3 x 3, multiply and add, and round nowhere else: sums of
  /// integers that f32 holds are exact.
  virtual bool hasPlainProducts() const { return false; }
  /// True if it has Fourier transforms, those that are not scaled.
  virtual bool hasTransforms() const { return false; }
  /// True if it has convolutions of f16 and bf16 in these types.
  virtual bool hasNarrowProducts() const { return false; }
  /// True if `call`, which the library does, can apply `postOp` to each element of the result, in f32 or wider, before
  /// it rounds and stores it.
  virtual bool hasEpilogue(const CallShape &call, const PostOp &postOp) const = 0;
  /// The memory format in which the library is fast at `call`, which it does.
  virtual FormatPreference getFormatPreference(const CallShape &call) const = 0;
  /// True if `call`, which the library does, reads operand `number` where it lies in `format` while the result lies in
  /// `result`; otherwise it reads a copy in `getReadFormat`.
  virtual bool readsFormat(const CallShape &call, unsigned number, plan::FormatAttr format,
                           plan::FormatAttr result) const;
  /// The format in which `call`, which the library does, reads operand `number` at best, if the result lies in
  /// `result`: in that or, of what has dimensions of its own, such as weights, row-major.
  plan::FormatAttr getReadFormat(const CallShape &call, unsigned number, plan::FormatAttr result) const;
  /// True if `call`, which the library does, can write its result over operand `number`, of the same type and format,
  /// which nothing else reads, and it pays to do so.
  virtual bool writesOver(const CallShape &call, unsigned number) const { return false; }
  /// True if the library has its reference implementation only for `call`, which it does, or another that is slower
  /// than the runtime's own kernels. These then do it.
  virtual bool isSlow(const CallShape &call) const { return false; }
  /// What `call`, one of the plan that this library does, takes at most on a rank that computes `loops`, none of which
  /// is empty but for what is summed over. With `packsOnce` its weights never change, so that what is packed is kept.
  /// Nothing if that is not known, or if another library does `call`.
  virtual std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &loops,
                                                  bool packsOnce) const {
    return std::nullopt;
  }

protected:
  /// True if the library does `call`, whatever the types.
  virtual bool hasCall(const CallShape &call) const = 0;
  /// The type for `call`, which the library has, if its elements are of `type`; null if there is none.
  virtual mlir::FloatType getComputeType(const CallShape &call, mlir::FloatType type) const = 0;
};

/// A library, and what it is to do.
struct LibraryCall {
  const Library *library = nullptr; ///< Null if none does it.
  CallShape shape;

  explicit operator bool() const { return library != nullptr; }
};

/// The libraries that a program may call.
class Libraries {
public:
  /// The libraries called `names` on a processor that has `features`, as LLVM calls them, or `kRoundedFactors`. An
  /// error at `location` for a name that is not known.
  static llvm::FailureOr<Libraries> create(mlir::Location location, llvm::ArrayRef<std::string> names,
                                           llvm::ArrayRef<std::string> features);

  /// The library called `name`; null if it is none of these.
  const Library *get(llvm::StringRef name) const;
  /// The first library that does `op`, in whatever type.
  LibraryCall find(mlir::Operation *op) const;
  /// The first library that does `op` on its operands as they are.
  LibraryCall findCall(mlir::Operation *op) const;
  /// True if one of them has products of integers.
  bool hasIntegerProducts() const;
  bool hasPlainProducts() const;
  bool hasTransforms() const;
  bool hasNarrowProducts() const;
  /// `Library::isSlow` of any of them.
  bool isSlow(plan::CallOpInterface call) const;
  /// `Library::getMemoryBound` of the library that does `call`.
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &loops, bool packsOnce) const;

private:
  std::vector<std::unique_ptr<Library>> libraries;
};

} // namespace dovetail

#endif // DOVETAIL_LIBRARY_LIBRARY_H
