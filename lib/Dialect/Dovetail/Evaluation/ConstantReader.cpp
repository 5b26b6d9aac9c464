//===- ConstantReader.cpp - Elements of constants -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ConstantReader.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace dovetail;

std::optional<ConstantReader> ConstantReader::create(Attribute attribute) {
  auto elements = dyn_cast_if_present<ElementsAttr>(attribute);
  if (!elements || !elements.getElementType().isIntOrFloat())
    return std::nullopt;
  ConstantReader reader(elements);
  if (isa<DenseElementsAttr>(attribute))
    return reader;
  auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
  if (!resource || reader.elementType.getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  auto size = static_cast<size_t>(llvm::divideCeil(reader.elementType.getIntOrFloatBitWidth(), 8));
  if (!blob || blob->getData().size() != size * static_cast<size_t>(elements.getNumElements()))
    return std::nullopt;
  reader.bytes = blob->getData();
  return reader;
}

APInt ConstantReader::readBits(int64_t i) const {
  unsigned width = elementType.getIntOrFloatBitWidth();
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
    int64_t position = dense.isSplat() ? 0 : i;
    if (isNarrow(elementType))
      return APInt(8, static_cast<uint8_t>(dense.getRawData()[position])).trunc(width);
    if (isa<FloatType>(elementType))
      return (*(dense.value_begin<APFloat>() + position)).bitcastToAPInt();
    return *(dense.value_begin<APInt>() + position);
  }
  // Resources hold little-endian bytes; a Boolean is a byte.
  size_t size = llvm::divideCeil(width, 8);
  uint64_t bits = 0;
  for (size_t byte = 0; byte < size; ++byte)
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[static_cast<size_t>(i) * size + byte])) << (8 * byte);
  return width == 1 ? APInt(1, bits != 0) : APInt(64, bits).trunc(width);
}

TypedAttr ConstantReader::read(int64_t i) const {
  APInt bits = readBits(i);
  if (isNarrow(elementType))
    return IntegerAttr::get(ElementBuilder::scalarType(elementType), bits.zext(8));
  if (auto floatType = dyn_cast<FloatType>(elementType))
    return FloatAttr::get(floatType, APFloat(floatType.getFloatSemantics(), bits));
  return IntegerAttr::get(ElementBuilder::scalarType(elementType), bits);
}
