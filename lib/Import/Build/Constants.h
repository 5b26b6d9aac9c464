//===- Constants.h - Constants of graphs ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how constants are made of bytes, and read.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_CONSTANTS_H
#define DOVETAIL_LIB_IMPORT_BUILD_CONSTANTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <optional>

namespace dovetail::importer {

/// The number of elements of a shape, unless it is negative or so large that
/// later arithmetic on sizes could overflow.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// Bytes of an element in memory, and how many elements a byte holds where they are packed.
int64_t getElementSize(mlir::Type type);
int64_t getElementsPerByte(mlir::Type type);

/// True if a constant of this type is kept in the IR, where it folds. Others
/// are resources.
bool isSmallConstant(mlir::RankedTensorType type);

/// A constant of little-endian elements, one byte for each i1. `owner` keeps
/// `bytes` alive; without one they are copied. `bytes` has the size that the
/// type asks for.
mlir::ElementsAttr makeConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes,
                                std::shared_ptr<const void> owner, llvm::StringRef name);

/// The same from bytes as ONNX packs elements of 4 and of 2 bits: several into one, without gaps between rows.
mlir::ElementsAttr makePackedConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes,
                                      std::shared_ptr<const void> owner, llvm::StringRef name);

/// Elements of `type`, an integer of at most 8 bits, that rows of `bytes` hold, low bits first. A row is the last
/// dimension of `type`; what its bytes have left over is skipped.
mlir::ElementsAttr unpackRows(mlir::ElementsAttr bytes, mlir::RankedTensorType type);

/// The first elements of each row of `bytes`, in `shape`, whose last dimension is a row.
mlir::ElementsAttr cutRows(mlir::ElementsAttr bytes, llvm::ArrayRef<int64_t> shape);

/// A constant whose data are missing.
mlir::ElementsAttr makeMissingConstant(mlir::RankedTensorType type, llvm::StringRef name);

/// Whether it is one of those.
bool isDataMissing(mlir::ElementsAttr constant);

/// The same elements in another shape.
mlir::ElementsAttr reshapeConstant(mlir::ElementsAttr constant, llvm::ArrayRef<int64_t> shape);

/// All elements of an integer, or of an f32 or f64, constant; none if the
/// type is another, or if the data are missing.
std::optional<llvm::SmallVector<int64_t>> readInts(mlir::ElementsAttr constant);
std::optional<llvm::SmallVector<double>> readFloats(mlir::ElementsAttr constant);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_CONSTANTS_H
