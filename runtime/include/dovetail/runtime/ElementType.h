//===- ElementType.h - Types of tensor elements -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the element types of tensors, their sizes and names.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_ELEMENTTYPE_H
#define DOVETAIL_RUNTIME_ELEMENTTYPE_H

#include <cstdint>

namespace dovetail::runtime {

/// In the order of the plan's schema.
enum class ElementType : uint8_t { F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool };

/// Bytes of an element.
constexpr int64_t elementSize(ElementType type) {
  switch (type) {
  case ElementType::I8:
  case ElementType::U8:
  case ElementType::Bool:
    return 1;
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::I16:
  case ElementType::U16:
    return 2;
  case ElementType::F32:
  case ElementType::I32:
  case ElementType::U32:
    return 4;
  case ElementType::F64:
  case ElementType::I64:
  case ElementType::U64:
    return 8;
  }
  return 0;
}

/// The unsigned integers of the same size.
constexpr ElementType unsignedTypeOf(ElementType type) {
  switch (elementSize(type)) {
  case 1:
    return ElementType::U8;
  case 2:
    return ElementType::U16;
  case 4:
    return ElementType::U32;
  default:
    return ElementType::U64;
  }
}

/// The name as NumPy spells it, such as "float32".
constexpr const char *elementTypeName(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "float32";
  case ElementType::F64:
    return "float64";
  case ElementType::F16:
    return "float16";
  case ElementType::BF16:
    return "bfloat16";
  case ElementType::I8:
    return "int8";
  case ElementType::I16:
    return "int16";
  case ElementType::I32:
    return "int32";
  case ElementType::I64:
    return "int64";
  case ElementType::U8:
    return "uint8";
  case ElementType::U16:
    return "uint16";
  case ElementType::U32:
    return "uint32";
  case ElementType::U64:
    return "uint64";
  case ElementType::Bool:
    return "bool";
  }
  return "unknown";
}

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_ELEMENTTYPE_H
