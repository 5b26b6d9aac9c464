//===- Combine.cpp - Reductions of partial values -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Combine.h"
#include "CombineElement.h"

#include <cmath>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::ReductionKind;

namespace {

template <typename Access, typename Op>
void combineRuns(const BoxPair &pair, std::byte *target, const std::byte *source, Op op) {
  using Stored = typename Access::Stored;
  pair.forEachRun(target, source,
                  [&](std::byte *to, const std::byte *from, int64_t count, int64_t toStride, int64_t fromStride) {
                    auto combineOne = [&](std::byte *a, const std::byte *b) {
                      Stored left, right;
                      std::memcpy(&left, a, sizeof(Stored));
                      std::memcpy(&right, b, sizeof(Stored));
                      left = Access::store(op(Access::load(left), Access::load(right)));
                      std::memcpy(a, &left, sizeof(Stored));
                    };
                    // Constant strides let the compiler vectorise.
                    constexpr int64_t size = sizeof(Stored);
                    if (toStride == size && fromStride == size)
                      for (int64_t i = 0; i < count; ++i)
                        combineOne(to + i * size, from + i * size);
                    else
                      for (int64_t i = 0; i < count; ++i)
                        combineOne(to + i * toStride, from + i * fromStride);
                  });
}

template <typename Access>
void combine(ReductionKind kind, const BoxPair &pair, std::byte *target, const std::byte *source) {
  using Value = typename Access::Value;
  switch (kind) {
  case ReductionKind::None:
    return;
  case ReductionKind::Sum:
    return combineRuns<Access>(pair, target, source, combineSum<Value>);
  case ReductionKind::Prod:
    return combineRuns<Access>(pair, target, source, combineProd<Value>);
  case ReductionKind::Max:
    return combineRuns<Access>(pair, target, source, combineMax<Value>);
  case ReductionKind::Min:
    return combineRuns<Access>(pair, target, source, combineMin<Value>);
  case ReductionKind::Owner: // Exchanges combine it as a maximum.
    return;
  }
}

/// Booleans are 0 or 1: their sum and maximum is "or", their product and minimum is "and".
ReductionKind onBooleans(ReductionKind kind) { return kind == ReductionKind::Sum ? ReductionKind::Max : kind; }

} // namespace

Combination::Combination(ReductionKind kind, const MemoryView &target, const MemoryView &source, const layout::Box &box)
    : kind(kind), type(target.type) {
  BoxPair::append(target, source, box, pairs);
}

void Combination::run(std::byte *target, const std::byte *source) const {
  for (const BoxPair &pair : pairs) {
    auto apply = [&]<typename Access>(Access, ReductionKind kind) { combine<Access>(kind, pair, target, source); };
    switch (type) {
    case ElementType::F32:
      apply(PlainAccess<float>(), kind);
      break;
    case ElementType::F64:
      apply(PlainAccess<double>(), kind);
      break;
    case ElementType::F16:
      apply(HalfAccess(), kind);
      break;
    case ElementType::BF16:
      apply(BrainFloatAccess(), kind);
      break;
    case ElementType::I8:
      apply(PlainAccess<int8_t>(), kind);
      break;
    case ElementType::I16:
      apply(PlainAccess<int16_t>(), kind);
      break;
    case ElementType::I32:
      apply(PlainAccess<int32_t>(), kind);
      break;
    case ElementType::I64:
      apply(PlainAccess<int64_t>(), kind);
      break;
    case ElementType::U8:
      apply(PlainAccess<uint8_t>(), kind);
      break;
    case ElementType::U16:
      apply(PlainAccess<uint16_t>(), kind);
      break;
    case ElementType::U32:
      apply(PlainAccess<uint32_t>(), kind);
      break;
    case ElementType::U64:
      apply(PlainAccess<uint64_t>(), kind);
      break;
    case ElementType::Bool:
      apply(PlainAccess<uint8_t>(), onBooleans(kind));
      break;
    default:
      break; // Plans never combine narrow types.
    }
  }
}
