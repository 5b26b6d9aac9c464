//===- TensorData.cpp - ONNX tensors as attributes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the reading of tensors inside of the model file.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;
using onnx::TensorProto;

static_assert(llvm::endianness::native == llvm::endianness::little, "ONNX tensors are little-endian and used in place");

mlir::Type dovetail::importer::convertElementType(int32_t onnxType, mlir::MLIRContext *context) {
  mlir::Builder builder(context);
  switch (onnxType) {
  case TensorProto::FLOAT:
    return builder.getF32Type();
  case TensorProto::DOUBLE:
    return builder.getF64Type();
  case TensorProto::FLOAT16:
    return builder.getF16Type();
  case TensorProto::BFLOAT16:
    return builder.getBF16Type();
  case TensorProto::BOOL:
    return builder.getI1Type();
  case TensorProto::INT8:
    return builder.getI8Type();
  case TensorProto::INT16:
    return builder.getI16Type();
  case TensorProto::INT32:
    return builder.getI32Type();
  case TensorProto::INT64:
    return builder.getI64Type();
  case TensorProto::UINT8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case TensorProto::UINT16:
    return builder.getIntegerType(16, /*isSigned=*/false);
  case TensorProto::UINT32:
    return builder.getIntegerType(32, /*isSigned=*/false);
  case TensorProto::UINT64:
    return builder.getIntegerType(64, /*isSigned=*/false);
  case TensorProto::INT4:
    return builder.getIntegerType(4);
  case TensorProto::UINT4:
    return builder.getIntegerType(4, /*isSigned=*/false);
  case TensorProto::INT2:
    return builder.getIntegerType(2);
  case TensorProto::UINT2:
    return builder.getIntegerType(2, /*isSigned=*/false);
  case TensorProto::FLOAT8E4M3FN:
    return builder.getType<mlir::Float8E4M3FNType>();
  case TensorProto::FLOAT8E4M3FNUZ:
    return builder.getType<mlir::Float8E4M3FNUZType>();
  case TensorProto::FLOAT8E5M2:
    return builder.getType<mlir::Float8E5M2Type>();
  case TensorProto::FLOAT8E5M2FNUZ:
    return builder.getType<mlir::Float8E5M2FNUZType>();
  case TensorProto::FLOAT8E8M0:
    return builder.getType<mlir::Float8E8M0FNUType>();
  case TensorProto::FLOAT4E2M1:
    return builder.getType<mlir::Float4E2M1FNType>();
  default:
    return {};
  }
}

TensorProto::DataType dovetail::importer::convertElementType(mlir::Type type) {
  for (int onnxType = TensorProto::DataType_MIN; onnxType <= TensorProto::DataType_MAX; ++onnxType)
    if (convertElementType(onnxType, type.getContext()) == type)
      return static_cast<TensorProto::DataType>(onnxType);
  return TensorProto::UNDEFINED;
}

std::string dovetail::importer::describeElementType(int32_t onnxType) {
  if (TensorProto::DataType_IsValid(onnxType))
    return TensorProto::DataType_Name(static_cast<TensorProto::DataType>(onnxType));
  return "number " + std::to_string(onnxType);
}

std::string dovetail::importer::describeUnsupportedElements(int32_t onnxType) {
  if (onnxType == TensorProto::STRING)
    return "strings as elements: programs compute with numbers; process strings before the model, or after it";
  return "elements of type " + describeElementType(onnxType) + ", which is not supported";
}

/// The bytes of a tensor of `type` as they are stored, if they are to stay so; else `type` itself.
static mlir::RankedTensorType getStoredType(mlir::RankedTensorType type) {
  int64_t perByte = getElementsPerByte(type.getElementType());
  if (perByte == 1 || isSmallConstant(type) || type.getRank() == 0 || type.getShape().back() % perByte != 0)
    return type;
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.back() /= perByte;
  auto byte = mlir::IntegerType::get(type.getContext(), 8, mlir::IntegerType::Unsigned);
  return mlir::RankedTensorType::get(shape, byte);
}

mlir::ElementsAttr TensorReader::read(const TensorProto &tensor, llvm::StringRef what,
                                      std::shared_ptr<const void> owner, bool mayBePacked,
                                      mlir::RankedTensorType &unpacked) {
  mlir::Type elementType = convertElementType(tensor.data_type(), reporter.getContext());
  if (!elementType) {
    ImportError kind = tensor.data_type() != TensorProto::UNDEFINED && TensorProto::DataType_IsValid(tensor.data_type())
                           ? ImportError::Unsupported
                           : ImportError::InvalidModel;
    reporter.error(kind) << what << " has " << describeUnsupportedElements(tensor.data_type());
    return {};
  }
  llvm::SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> count = countElements(shape);
  if (!count) {
    auto diagnostic = reporter.invalid();
    diagnostic << what << " has the impossible shape [";
    llvm::interleaveComma(shape, diagnostic);
    diagnostic << "]";
    return {};
  }
  if (tensor.has_segment()) {
    reporter.error(ImportError::Unsupported) << what << " is stored in segments, which are not supported";
    return {};
  }
  auto type = mlir::RankedTensorType::get(shape, elementType);
  auto stored = mayBePacked ? getStoredType(type) : type;
  unpacked = stored == type ? mlir::RankedTensorType() : type;
  uint64_t size = llvm::divideCeil(*count * getElementSize(elementType), getElementsPerByte(elementType));
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return readExternal(tensor, type, stored, size, what);
  if (!tensor.has_raw_data())
    return readFields(tensor, type, stored, what, std::move(owner));
  const std::string &raw = tensor.raw_data();
  if (raw.size() != size) {
    reporter.invalid() << what << " has type " << type << ", which takes " << size << " bytes, but " << raw.size()
                       << " bytes of data";
    return {};
  }
  return makePackedConstant(stored, llvm::ArrayRef<char>(raw.data(), raw.size()), std::move(owner), tensor.name());
}

/// The elements of a field of `Stored`, as they are or converted to `Element`.
template <typename Element, typename Field>
static mlir::ElementsAttr convertField(const Field &field, mlir::RankedTensorType type,
                                       std::shared_ptr<const void> owner, llvm::StringRef name) {
  using Stored = typename Field::value_type;
  if constexpr (std::is_same_v<Stored, Element>)
    return makeConstant(
        type, llvm::ArrayRef<char>(reinterpret_cast<const char *>(field.data()), field.size() * sizeof(Element)),
        std::move(owner), name);
  llvm::SmallVector<Element> values;
  values.reserve(field.size());
  for (Stored value : field)
    values.push_back(static_cast<Element>(value));
  return makeConstant(
      type, llvm::ArrayRef<char>(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Element)),
      nullptr, name);
}

mlir::ElementsAttr TensorReader::readFields(const TensorProto &tensor, mlir::RankedTensorType type,
                                            mlir::RankedTensorType stored, llvm::StringRef what,
                                            std::shared_ptr<const void> owner) {
  auto convert = [&]<typename Element>(Element, const auto &field, llvm::StringRef fieldName) -> mlir::ElementsAttr {
    if (field.size() != type.getNumElements()) {
      reporter.invalid() << what << " has type " << type << " but " << field.size() << " elements in '" << fieldName
                         << "'";
      return {};
    }
    return convertField<Element>(field, type, std::move(owner), tensor.name());
  };
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return convert(float(), tensor.float_data(), "float_data");
  case TensorProto::DOUBLE:
    return convert(double(), tensor.double_data(), "double_data");
  case TensorProto::INT64:
    return convert(int64_t(), tensor.int64_data(), "int64_data");
  case TensorProto::UINT64:
    return convert(uint64_t(), tensor.uint64_data(), "uint64_data");
  case TensorProto::UINT32:
    return convert(uint32_t(), tensor.uint64_data(), "uint64_data");
  case TensorProto::INT32:
    return convert(int32_t(), tensor.int32_data(), "int32_data");
  case TensorProto::INT16:
  case TensorProto::UINT16:
  case TensorProto::FLOAT16:
  case TensorProto::BFLOAT16:
    return convert(uint16_t(), tensor.int32_data(), "int32_data");
  case TensorProto::INT4:
  case TensorProto::UINT4:
  case TensorProto::INT2:
  case TensorProto::UINT2:
  case TensorProto::FLOAT4E2M1: {
    // Each number is a byte of packed elements.
    llvm::SmallVector<char> bytes;
    for (int32_t byte : tensor.int32_data())
      bytes.push_back(static_cast<char>(byte));
    if (bytes.size() != llvm::divideCeil(type.getNumElements(), getElementsPerByte(type.getElementType()))) {
      reporter.invalid() << what << " has type " << type << " but " << bytes.size() << " bytes in 'int32_data'";
      return {};
    }
    return makePackedConstant(stored, bytes, nullptr, tensor.name());
  }
  default:
    return convert(uint8_t(), tensor.int32_data(), "int32_data");
  }
}
