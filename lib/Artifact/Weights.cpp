//===- Weights.cpp - The weights section of an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines WeightsBuilder.
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>
#include <xxhash.h>

using namespace mlir;
using namespace dovetail;

int64_t dovetail::getElementBytes(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }

MutableArrayRef<char> WeightsBuilder::allocate(size_t size) {
  owned.push_back(std::make_unique<char[]>(size));
  return {owned.back().get(), size};
}

FailureOr<ArrayRef<char>> WeightsBuilder::getBytes(Location location, ElementsAttr value) {
  size_t elementBytes = getElementBytes(value.getElementType());
  size_t size = value.getNumElements() * elementBytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    const AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError(location) << "constant '" << resource.getRawHandle().getKey() << "' has no data";
    if (blob->getData().size() != size)
      return emitError(location) << "constant '" << resource.getRawHandle().getKey() << "' has "
                                 << blob->getData().size() << " bytes, but its type " << value.getType() << " needs "
                                 << size;
    return blob->getData();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return emitError(location) << "constant of type " << value.getType() << " is neither dense nor a resource";
  if (dense.getElementType().isInteger(1)) {
    MutableArrayRef<char> bytes = allocate(size);
    for (auto [byte, bit] : llvm::zip_equal(bytes, dense.getValues<bool>()))
      byte = bit;
    return ArrayRef<char>(bytes);
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat() || raw.size() == size)
    return raw;
  MutableArrayRef<char> bytes = allocate(size);
  for (size_t at = 0; at < size; at += elementBytes)
    std::memcpy(bytes.data() + at, raw.data(), elementBytes);
  return ArrayRef<char>(bytes);
}

FailureOr<unsigned> WeightsBuilder::add(Location location, ElementsAttr value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  if (!readsData) {
    pieces.push_back(ArrayRef<char>(static_cast<const char *>(nullptr),
                                    value.getNumElements() * getElementBytes(value.getElementType())));
    return known[value] = pieces.size() - 1;
  }
  FailureOr<ArrayRef<char>> bytes = getBytes(location, value);
  if (failed(bytes))
    return failure();
  // DenseMap keeps two values of its keys for itself.
  uint64_t checksum = XXH3_64bits(bytes->data(), bytes->size()) >> 1;
  SmallVector<unsigned, 1> &candidates = byContents[checksum];
  auto same = llvm::find_if(candidates, [&](unsigned piece) { return pieces[piece] == *bytes; });
  unsigned piece;
  if (same != candidates.end()) {
    piece = *same;
  } else {
    piece = pieces.size();
    pieces.push_back(*bytes);
    candidates.push_back(piece);
  }
  known[value] = piece;
  return piece;
}
