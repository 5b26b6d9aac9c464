//===- Weights.h - The weights section of an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares WeightsBuilder.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_ARTIFACT_WEIGHTS_H
#define DOVETAIL_LIB_ARTIFACT_WEIGHTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <vector>

namespace dovetail {

/// Collects constants as pieces of the weights section, equal ones once.
class WeightsBuilder {
public:
  /// Without `readsData` constants may be missing: pieces have sizes and no contents, and are different ones for
  /// different attributes.
  explicit WeightsBuilder(bool readsData = true) : readsData(readsData) {}

  /// The number of the piece with the bytes of `value`: row-major, little-endian, a byte for each boolean. The
  /// attribute must outlive this builder. Fails, after an error at `location`, if the data are not in memory or of the
  /// wrong size.
  llvm::FailureOr<unsigned> add(mlir::Location location, mlir::ElementsAttr value);

  llvm::ArrayRef<llvm::ArrayRef<char>> getPieces() const { return pieces; }

private:
  llvm::FailureOr<llvm::ArrayRef<char>> getBytes(mlir::Location location, mlir::ElementsAttr value);
  /// Bytes that are not in memory as they have to be written.
  llvm::MutableArrayRef<char> allocate(size_t size);

  bool readsData;
  std::vector<llvm::ArrayRef<char>> pieces;
  std::vector<std::unique_ptr<char[]>> owned;
  llvm::DenseMap<mlir::Attribute, unsigned> known;
  /// Pieces by checksum.
  llvm::DenseMap<uint64_t, llvm::SmallVector<unsigned, 1>> byContents;
};

/// Bytes of an element in memory and in artifacts; a boolean has one.
int64_t getElementBytes(mlir::Type elementType);

} // namespace dovetail

#endif // DOVETAIL_LIB_ARTIFACT_WEIGHTS_H
