//===- Compare.cpp - Comparing tensors -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements compare.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Compare.h"

#include "llvm/ADT/APFloat.h"

#include <cassert>
#include <cmath>
#include <cstring>

using namespace dovetail;
using runtime::ElementType;

static constexpr double kRelativeTolerance = 1e-4;

namespace {
/// Elements of half precision, widened.
template <bool isBFloat> struct Half {
  uint16_t bits;
  operator double() const {
    const llvm::fltSemantics &semantics = isBFloat ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
    return llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToFloat();
  }
};

const llvm::fltSemantics &getSemantics(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return llvm::APFloat::Float8E4M3FN();
  case ElementType::F8E4M3FNUZ:
    return llvm::APFloat::Float8E4M3FNUZ();
  case ElementType::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  case ElementType::F8E5M2FNUZ:
    return llvm::APFloat::Float8E5M2FNUZ();
  case ElementType::F8E8M0:
    return llvm::APFloat::Float8E8M0FNU();
  default:
    return llvm::APFloat::Float4E2M1FN();
  }
}

/// Floats of at most 8 bits, widened.
template <ElementType type> struct NarrowFloat {
  uint8_t bits;
  operator double() const {
    const llvm::fltSemantics &semantics = getSemantics(type);
    unsigned width = llvm::APFloat::getSizeInBits(semantics);
    return llvm::APFloat(semantics, llvm::APInt(8, bits).trunc(width)).convertToDouble();
  }
};

/// Integers of 2 and 4 bits, widened.
template <unsigned width, bool isSigned> struct NarrowInt {
  uint8_t bits;
  operator double() const { return value(); }
  bool operator==(NarrowInt other) const { return value() == other.value(); }
  int value() const {
    int value = bits & ((1 << width) - 1);
    return isSigned && value >= 1 << (width - 1) ? value - (1 << width) : value;
  }
};
template <typename T> constexpr bool isInteger = std::is_integral_v<T>;
template <unsigned width, bool isSigned> constexpr bool isInteger<NarrowInt<width, isSigned>> = true;
} // namespace

/// Calls `function` with a value of the C++ type of the elements.
template <typename Function> static void dispatch(ElementType type, Function function) {
  switch (type) {
  case ElementType::F32:
    return function(float());
  case ElementType::F64:
    return function(double());
  case ElementType::F16:
    return function(Half<false>());
  case ElementType::BF16:
    return function(Half<true>());
  case ElementType::I8:
    return function(int8_t());
  case ElementType::I16:
    return function(int16_t());
  case ElementType::I32:
    return function(int32_t());
  case ElementType::I64:
    return function(int64_t());
  case ElementType::U8:
  case ElementType::Bool:
    return function(uint8_t());
  case ElementType::U16:
    return function(uint16_t());
  case ElementType::U32:
    return function(uint32_t());
  case ElementType::U64:
    return function(uint64_t());
  case ElementType::F8E4M3FN:
    return function(NarrowFloat<ElementType::F8E4M3FN>());
  case ElementType::F8E4M3FNUZ:
    return function(NarrowFloat<ElementType::F8E4M3FNUZ>());
  case ElementType::F8E5M2:
    return function(NarrowFloat<ElementType::F8E5M2>());
  case ElementType::F8E5M2FNUZ:
    return function(NarrowFloat<ElementType::F8E5M2FNUZ>());
  case ElementType::F8E8M0:
    return function(NarrowFloat<ElementType::F8E8M0>());
  case ElementType::F4E2M1:
    return function(NarrowFloat<ElementType::F4E2M1>());
  case ElementType::I4:
    return function(NarrowInt<4, true>());
  case ElementType::U4:
    return function(NarrowInt<4, false>());
  case ElementType::I2:
    return function(NarrowInt<2, true>());
  case ElementType::U2:
    return function(NarrowInt<2, false>());
  }
}

static double getTolerance(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return std::ldexp(1.0, -8);
  case ElementType::BF16:
    return std::ldexp(1.0, -5);
  // One step of the largest number: what is rounded to so few digits may be next to a tie.
  case ElementType::F8E4M3FN:
  case ElementType::F8E4M3FNUZ:
    return std::ldexp(1.0, -3);
  case ElementType::F8E5M2:
  case ElementType::F8E5M2FNUZ:
    return std::ldexp(1.0, -2);
  case ElementType::F4E2M1:
    return std::ldexp(1.0, -1);
  case ElementType::F8E8M0:
    return 1;
  default:
    return kRelativeTolerance;
  }
}

static std::vector<int64_t> getIndex(int64_t position, llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return index;
}

template <typename T>
static Difference compareElements(const tools::NamedTensor &actualData, const tools::NamedTensor &expectedData) {
  const T *actual = reinterpret_cast<const T *>(actualData.bytes.data());
  const T *expected = reinterpret_cast<const T *>(expectedData.bytes.data());
  int64_t count = expectedData.numElements();
  Difference result;
  auto note = [&](int64_t i) {
    if (result.numDifferent++ > 0)
      return;
    result.firstIndex = getIndex(i, expectedData.shape);
    result.actual = static_cast<double>(actual[i]);
    result.expected = static_cast<double>(expected[i]);
  };
  if constexpr (isInteger<T>) {
    for (int64_t i = 0; i < count; ++i) {
      double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
      result.magnitude = std::max(result.magnitude, std::abs(e));
      result.largest = std::max(result.largest, std::abs(a - e));
      // Doubles do not tell all integers of 64 bits apart.
      if (actual[i] != expected[i])
        note(i);
    }
  } else {
    for (int64_t i = 0; i < count; ++i)
      if (double e = expected[i]; std::isfinite(e))
        result.magnitude = std::max(result.magnitude, std::abs(e));
    result.limit = getTolerance(expectedData.type) * result.magnitude;
    for (int64_t i = 0; i < count; ++i) {
      double a = actual[i], e = expected[i];
      result.numNan += std::isnan(a) && std::isnan(e);
      if (std::isfinite(a) && std::isfinite(e)) {
        result.largest = std::max(result.largest, std::abs(a - e));
        if (std::abs(a - e) > result.limit)
          note(i);
      } else if (!(a == e || (std::isnan(a) && std::isnan(e)))) {
        note(i);
      }
    }
    result.isAllNan = count > 0 && result.numNan == count;
  }
  return result;
}

Difference dovetail::compare(const tools::NamedTensor &actual, const tools::NamedTensor &expected) {
  assert(actual.type == expected.type && actual.shape == expected.shape);
  Difference result;
  dispatch(expected.type, [&](auto element) { result = compareElements<decltype(element)>(actual, expected); });
  return result;
}
