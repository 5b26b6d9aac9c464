//===- TensorData.h - ONNX tensors as attributes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines TensorReader, and functions that make and read constants.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_TENSORDATA_H
#define DOVETAIL_LIB_IMPORT_TENSORDATA_H

#include "Reporter.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>

namespace dovetail::importer {

/// The element type of an `onnx::TensorProto::DataType`; null if there is none.
mlir::Type convertElementType(int32_t onnxType, mlir::MLIRContext *context);
/// The other direction; UNDEFINED if there is none.
onnx::TensorProto::DataType convertElementType(mlir::Type type);
/// How messages name an `onnx::TensorProto::DataType`.
std::string describeElementType(int32_t onnxType);
/// What messages say that something has whose elements are of a type that there is not.
std::string describeUnsupportedElements(int32_t onnxType);

/// The number of elements of a shape, unless it is negative or so large that
/// later arithmetic on sizes could overflow.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

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

/// Makes attributes from the tensors of one model.
class TensorReader {
public:
  /// `mayMissData`: whether files of external data need not be there.
  TensorReader(Reporter &reporter, bool mayMissData) : reporter(reporter), mayMissData(mayMissData) {}

  /// `what` names the tensor in messages. `owner` keeps `tensor` alive; without
  /// one, the data are copied. Null if an error was reported.
  mlir::ElementsAttr read(const onnx::TensorProto &tensor, llvm::StringRef what, std::shared_ptr<const void> owner) {
    mlir::RankedTensorType unpacked;
    return read(tensor, what, std::move(owner), /*mayBePacked=*/false, unpacked);
  }
  /// The same. Of a large tensor that packs several elements into a byte, these bytes, if none has elements of two
  /// rows. `unpacked` is the type of the tensor then, and null otherwise.
  mlir::ElementsAttr readPacked(const onnx::TensorProto &tensor, llvm::StringRef what,
                                std::shared_ptr<const void> owner, mlir::RankedTensorType &unpacked) {
    return read(tensor, what, std::move(owner), /*mayBePacked=*/true, unpacked);
  }

private:
  mlir::ElementsAttr read(const onnx::TensorProto &tensor, llvm::StringRef what, std::shared_ptr<const void> owner,
                          bool mayBePacked, mlir::RankedTensorType &unpacked);
  /// `type` is that of the tensor, and `stored` that of the result.
  mlir::ElementsAttr readExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                  mlir::RankedTensorType stored, uint64_t size, llvm::StringRef what);
  mlir::ElementsAttr readFields(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                mlir::RankedTensorType stored, llvm::StringRef what, std::shared_ptr<const void> owner);
  /// Maps a file of external data, once. Null after an error, or if it may be missing and is.
  std::shared_ptr<llvm::MemoryBuffer> openExternal(llvm::StringRef location, llvm::StringRef what);

  Reporter &reporter;
  bool mayMissData;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> externalFiles;
  llvm::StringSet<> missingFiles;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_TENSORDATA_H
