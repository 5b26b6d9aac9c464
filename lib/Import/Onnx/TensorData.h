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

#ifndef DOVETAIL_LIB_IMPORT_ONNX_TENSORDATA_H
#define DOVETAIL_LIB_IMPORT_ONNX_TENSORDATA_H

#include "../Build/Constants.h"
#include "../Build/Reporter.h"
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

#endif // DOVETAIL_LIB_IMPORT_ONNX_TENSORDATA_H
