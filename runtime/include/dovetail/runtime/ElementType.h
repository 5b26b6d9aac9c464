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

/// In the order of the plan's schema. Elements of fewer than 8 bits are a byte each, whose low bits count.
enum class ElementType : uint8_t {
  F32,
  F64,
  F16,
  BF16,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  Bool,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I4,
  U4,
  I2,
  U2
};

/// True for types that are stored, moved and converted only: floats of at most 8 bits, integers of 2 and 4 bits.
constexpr bool isNarrow(ElementType type) { return type > ElementType::Bool; }

/// Bytes of an element.
constexpr int64_t elementSize(ElementType type) {
  switch (type) {
  case ElementType::I8:
  case ElementType::U8:
  case ElementType::Bool:
  case ElementType::F8E4M3FN:
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2:
  case ElementType::F8E5M2FNUZ:
  case ElementType::F8E8M0:
  case ElementType::F4E2M1:
  case ElementType::I4:
  case ElementType::U4:
  case ElementType::I2:
  case ElementType::U2:
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

/// The name as NumPy spells it, such as "float32", or the package ml_dtypes where NumPy has no such type.
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
  case ElementType::F8E4M3FN:
    return "float8_e4m3fn";
  case ElementType::F8E4M3FNUZ:
    return "float8_e4m3fnuz";
  case ElementType::F8E5M2:
    return "float8_e5m2";
  case ElementType::F8E5M2FNUZ:
    return "float8_e5m2fnuz";
  case ElementType::F8E8M0:
    return "float8_e8m0fnu";
  case ElementType::F4E2M1:
    return "float4_e2m1fn";
  case ElementType::I4:
    return "int4";
  case ElementType::U4:
    return "uint4";
  case ElementType::I2:
    return "int2";
  case ElementType::U2:
    return "uint2";
  }
  return "unknown";
}

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_ELEMENTTYPE_H
