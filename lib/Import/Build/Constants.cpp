//===- Constants.cpp - Constants of graphs --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how constants are made of bytes, and read.
//
//===----------------------------------------------------------------------===//

#include "Constants.h"

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

static_assert(llvm::endianness::native == llvm::endianness::little, "elements are little-endian and used in place");

/// Sizes in bytes up to this leave room for any sum or product of a few small factors.
static constexpr int64_t kMaxElements = int64_t(1) << 44;
/// As the runtime has it: times a stride or a dilation it is still a number.
static constexpr int64_t kMaxExtent = int64_t(1) << 40;

/// Shapes and indices fold at any size that occurs; floats that are more than a few are weights.
static constexpr int64_t kMaxSmallInts = 1024, kMaxSmallFloats = 64;

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

int64_t dovetail::importer::getElementSize(mlir::Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

int64_t dovetail::importer::getElementsPerByte(mlir::Type type) {
  return isNarrow(type) ? 8 / type.getIntOrFloatBitWidth() : 1;
}

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
