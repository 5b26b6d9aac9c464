//===- TensorData.cpp - ONNX tensors as attributes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the reading of tensors inside of the model file, and constants.
//
//===----------------------------------------------------------------------===//

#include "TensorData.h"

#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;
using onnx::TensorProto;

static_assert(llvm::endianness::native == llvm::endianness::little, "ONNX tensors are little-endian and used in place");

/// Sizes in bytes up to this leave room for any sum or product of a few small factors.
static constexpr int64_t kMaxElements = int64_t(1) << 44;
/// As the runtime has it: times a stride or a dilation it is still a number.
static constexpr int64_t kMaxExtent = int64_t(1) << 40;

/// Shapes and indices fold at any size that occurs; floats that are more than a few are weights.
static constexpr int64_t kMaxSmallInts = 1024, kMaxSmallFloats = 64;

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

std::optional<int64_t> dovetail::importer::countElements(llvm::ArrayRef<int64_t> shape) {
  // Zero extents do not excuse huge ones: shapes are taken apart and put together again.
  int64_t count = 1, countOfNonzero = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > kMaxExtent || countOfNonzero > kMaxElements / std::max<int64_t>(extent, 1))
      return std::nullopt;
    count *= extent;
    countOfNonzero *= std::max<int64_t>(extent, 1);
  }
  return count;
}

bool dovetail::importer::isSmallConstant(mlir::RankedTensorType type) {
  return type.getNumElements() <= (type.getElementType().isInteger() ? kMaxSmallInts : kMaxSmallFloats);
}

/// Bytes of an element in memory.
static int64_t getElementSize(mlir::Type type) { return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8); }

/// How many elements ONNX packs into a byte.
static int64_t getElementsPerByte(mlir::Type type) { return isNarrow(type) ? 8 / type.getIntOrFloatBitWidth() : 1; }

/// The first elements that are packed into `bytes`, low bits first, a byte for each.
static void unpack(llvm::ArrayRef<char> bytes, mlir::Type type, llvm::MutableArrayRef<char> elements) {
  unsigned width = type.getIntOrFloatBitWidth(), perByte = 8 / width;
  for (auto [i, element] : llvm::enumerate(elements))
    element =
        static_cast<char>((static_cast<uint8_t>(bytes[i / perByte]) >> (i % perByte * width)) & ((1u << width) - 1));
}

static mlir::ElementsAttr makeSmallConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes) {
  if (bytes.empty())
    return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<mlir::Attribute>());
  if (!type.getElementType().isInteger(1))
    return mlir::DenseElementsAttr::getFromRawBuffer(type, bytes);
  llvm::SmallVector<bool> bits;
  for (char byte : bytes)
    bits.push_back(byte != 0);
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(bits));
}

mlir::ElementsAttr dovetail::importer::makeConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes,
                                                    std::shared_ptr<const void> owner, llvm::StringRef name) {
  if (isSmallConstant(type))
    return makeSmallConstant(type, bytes);
  if (name.empty())
    name = "constant";
  size_t align = getElementSize(type.getElementType());
  bool isBool = type.getElementType().isInteger(1);
  if (owner && !isBool && llvm::isAddrAligned(llvm::Align(align), bytes.data()))
    return mlir::DenseResourceElementsAttr::get(
        type, name,
        mlir::UnmanagedAsmResourceBlob::allocateWithAlign(bytes, align,
                                                          [owner = std::move(owner)](void *, size_t, size_t) {}));
  mlir::AsmResourceBlob blob = mlir::HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, /*align=*/64);
  // Any byte but 0 is true in ONNX; only 1 is in C++.
  if (isBool)
    for (char &byte : blob.getMutableData())
      byte = byte != 0;
  return mlir::DenseResourceElementsAttr::get(type, name, std::move(blob));
}

mlir::ElementsAttr dovetail::importer::makePackedConstant(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes,
                                                          std::shared_ptr<const void> owner, llvm::StringRef name) {
  if (getElementsPerByte(type.getElementType()) == 1)
    return makeConstant(type, bytes, std::move(owner), name);
  auto elements = std::make_shared<std::vector<char>>(type.getNumElements());
  unpack(bytes, type.getElementType(), *elements);
  return makeConstant(type, *elements, elements, name);
}

/// The bytes of a constant's elements, but those of a splat once.
static llvm::ArrayRef<char> getBytes(mlir::ElementsAttr constant) {
  if (auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant))
    return dense.getRawData();
  return llvm::cast<mlir::DenseResourceElementsAttr>(constant).getData();
}

/// How messages and files name a constant.
static llvm::StringRef getName(mlir::ElementsAttr constant) {
  auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(constant);
  return resource ? resource.getRawHandle().getKey() : llvm::StringRef();
}

mlir::ElementsAttr dovetail::importer::cutRows(mlir::ElementsAttr bytes, llvm::ArrayRef<int64_t> shape) {
  int64_t count = mlir::ShapedType::getNumElements(shape);
  if (count == bytes.getNumElements())
    return reshapeConstant(bytes, shape);
  return unpackRows(bytes, mlir::RankedTensorType::get(shape, bytes.getElementType()));
}

mlir::ElementsAttr dovetail::importer::unpackRows(mlir::ElementsAttr bytes, mlir::RankedTensorType type) {
  if (isDataMissing(bytes))
    return makeMissingConstant(type, getName(bytes));
  int64_t columns = type.getShape().back(), rows = columns == 0 ? 0 : type.getNumElements() / columns;
  auto elements = std::make_shared<std::vector<char>>(type.getNumElements());
  llvm::ArrayRef<char> all = getBytes(bytes);
  std::vector<char> repeated;
  if (bytes.isSplat() && all.size() == 1) {
    repeated.assign(bytes.getNumElements(), all.front());
    all = repeated;
  }
  for (int64_t row = 0; row < rows; ++row)
    unpack(all.slice(row * (all.size() / rows), all.size() / rows), type.getElementType(),
           llvm::MutableArrayRef<char>(*elements).slice(row * columns, columns));
  return makeConstant(type, *elements, elements, getName(bytes));
}

mlir::ElementsAttr dovetail::importer::makeMissingConstant(mlir::RankedTensorType type, llvm::StringRef name) {
  auto &manager = mlir::DenseResourceElementsHandle::getManagerInterface(type.getContext());
  return mlir::DenseResourceElementsAttr::get(type, manager.insert(name.empty() ? "constant" : name));
}

bool dovetail::importer::isDataMissing(mlir::ElementsAttr constant) {
  auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(constant);
  return resource && !resource.getRawHandle().getBlob();
}

mlir::ElementsAttr dovetail::importer::reshapeConstant(mlir::ElementsAttr constant, llvm::ArrayRef<int64_t> shape) {
  auto type = mlir::RankedTensorType::get(shape, constant.getElementType());
  if (auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant))
    return dense.reshape(type);
  if (auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(constant))
    return mlir::DenseResourceElementsAttr::get(type, resource.getRawHandle());
  return {};
}

template <typename To, typename From> static llvm::SmallVector<To> readAs(llvm::ArrayRef<char> bytes) {
  llvm::SmallVector<To> values;
  values.reserve(bytes.size() / sizeof(From));
  for (size_t i = 0; i + sizeof(From) <= bytes.size(); i += sizeof(From)) {
    From value;
    memcpy(&value, bytes.data() + i, sizeof(From));
    values.push_back(static_cast<To>(value));
  }
  return values;
}

std::optional<llvm::SmallVector<int64_t>> dovetail::importer::readInts(mlir::ElementsAttr constant) {
  mlir::Type type = constant.getElementType();
  if (!type.isInteger())
    return std::nullopt;
  if (auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant)) {
    bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
    llvm::SmallVector<int64_t> values;
    for (const llvm::APInt &value : dense.getValues<llvm::APInt>())
      values.push_back(isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
    return values;
  }
  auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(constant);
  if (!resource || isDataMissing(constant))
    return std::nullopt;
  if (type.isSignlessInteger(64))
    return readAs<int64_t, int64_t>(resource.getData());
  if (type.isSignlessInteger(32))
    return readAs<int64_t, int32_t>(resource.getData());
  return std::nullopt;
}

std::optional<llvm::SmallVector<double>> dovetail::importer::readFloats(mlir::ElementsAttr constant) {
  mlir::Type type = constant.getElementType();
  if (!type.isF32() && !type.isF64())
    return std::nullopt;
  if (auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant)) {
    llvm::SmallVector<double> values;
    for (const llvm::APFloat &value : dense.getValues<llvm::APFloat>())
      values.push_back(type.isF32() ? value.convertToFloat() : value.convertToDouble());
    return values;
  }
  auto resource = llvm::dyn_cast<mlir::DenseResourceElementsAttr>(constant);
  if (!resource || isDataMissing(constant))
    return std::nullopt;
  return type.isF32() ? readAs<double, float>(resource.getData()) : readAs<double, double>(resource.getData());
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
