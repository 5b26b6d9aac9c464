//===- ElementTypes.cpp - What elements of tensors are --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how elements of each type are computed with.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"

#include "ScalarSupport.h"

using namespace mlir;
using namespace dovetail;

Type dovetail::getAccumulatorType(Type elementType) {
  return isa<FloatType>(elementType) ? scalar::wideType(elementType) : ElementBuilder::scalarType(elementType);
}

bool dovetail::isUnsignedElement(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isUnsignedInteger() || element.isInteger(1);
}

bool dovetail::isNarrow(Type elementType) {
  return isa<Float8E4M3FNType, Float8E4M3FNUZType, Float8E5M2Type, Float8E5M2FNUZType, Float8E8M0FNUType,
             Float4E2M1FNType>(elementType) ||
         elementType.isInteger(2) || elementType.isInteger(4);
}

Type dovetail::getWideType(Type narrow) {
  if (isa<FloatType>(narrow))
    return Float32Type::get(narrow.getContext());
  bool isUnsigned = narrow.isUnsignedInteger();
  return IntegerType::get(narrow.getContext(), 8, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
}
