//===- NanRecovery.cpp - NaN in library calls -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NanRecovery.h"

#include "../../Memory/CombineElement.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// The calling thread's flag of invalid operations, which also instructions that compare NaN raise. Where other
/// processors have none that does, it always seems raised.
struct InvalidFlag {
  static void clear() {
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() & ~_MM_EXCEPT_INVALID);
#endif
  }
  static bool isRaised() {
#ifdef __x86_64__
    return (_mm_getcsr() & _MM_EXCEPT_INVALID) != 0;
#else
    return true;
#endif
  }
};

/// Elements of a type as bits, and as numbers.
struct Single {
  using Bits = uint32_t;
  static constexpr Bits infinity = 0x7f800000, magnitude = 0x7fffffff;
  static float load(Bits bits) { return std::bit_cast<float>(bits); }
  static Bits store(float value) { return std::bit_cast<Bits>(value); }
};
struct Brain : BrainFloatAccess {
  using Bits = Stored;
  static constexpr Bits infinity = 0x7f80, magnitude = 0x7fff;
};

template <typename Type> bool isNan(typename Type::Bits bits) { return (bits & Type::magnitude) > Type::infinity; }

/// Calls `body` with the type of the library's elements.
template <typename Body> auto withType(ElementType type, Body body) {
  return type == ElementType::BF16 ? body(Brain()) : body(Single());
}

/// Calls `body(first, second, count, stride)` for runs of elements, which are `stride` apart.
template <typename Type, typename Body>
void forEachRun(const std::vector<BoxPair> &pairs, std::byte *first, std::byte *second, Body body) {
  using Bits = typename Type::Bits;
  for (const BoxPair &pair : pairs)
    pair.forEachRun(first, second,
                    [&](std::byte *target, const std::byte *source, int64_t count, int64_t stride, int64_t) {
                      body(reinterpret_cast<Bits *>(target), reinterpret_cast<const Bits *>(source), count,
                           stride / static_cast<int64_t>(sizeof(Bits)));
                    });
}

} // namespace

std::vector<EpilogueStep> dovetail::runtime::cutSteps(const PostOpInfo &op) {
  switch (op.kind) {
  case PostOpKind::Relu:
    return {{EpilogueStep::Relu, 0, 0}};
  case PostOpKind::LeakyRelu:
    // With a slope the library compares and selects.
    return op.alpha == 0 ? std::vector<EpilogueStep>{{EpilogueStep::Relu, 0, 0}} : std::vector<EpilogueStep>();
  case PostOpKind::Clip:
    return {{EpilogueStep::Clip, op.alpha, op.beta}};
  case PostOpKind::HardSigmoid:
    return {{EpilogueStep::Linear, op.alpha, op.beta}, {EpilogueStep::Clip, 0, 1}};
  default:
    return {};
  }
}

bool dovetail::runtime::mayLoseNan(const PostOpInfo &op) {
  return op.kind == PostOpKind::Sigmoid || !cutSteps(op).empty();
}

KernelPass::KernelPass(const PostOpInfo &op, const MemoryView &view, const layout::Box &box) : type(view.type) {
  isSigmoid = op.kind == PostOpKind::Sigmoid;
  for (const EpilogueStep &step : cutSteps(op))
    epilogue.steps[epilogue.numSteps++] = step;
  BoxPair::append(view, view, box, pairs);
}

void KernelPass::apply(float *data, int64_t count) const {
  if (isSigmoid)
    hostKernels().sigmoid(data, count);
  else
    hostKernels().finish(epilogue, data, count);
}

void KernelPass::run(std::byte *data) const {
  withType(type, [&](auto type) {
    using Type = decltype(type);
    forEachRun<Type>(pairs, data, data, [&](auto *elements, auto *, int64_t count, int64_t stride) {
      if constexpr (std::is_same_v<Type, Single>)
        if (stride == 1)
          return apply(reinterpret_cast<float *>(elements), count);
      // Elsewhere a few at a time.
      constexpr int64_t mostValues = 256;
      float values[mostValues];
      for (int64_t begin = 0; begin < count; begin += mostValues) {
        auto *first = elements + begin * stride;
        int64_t length = std::min(mostValues, count - begin);
        for (int64_t i = 0; i < length; ++i)
          values[i] = Type::load(first[i * stride]);
        apply(values, length);
        for (int64_t i = 0; i < length; ++i)
          first[i * stride] = Type::store(values[i]);
      }
    });
  });
}

NanRecovery::NanRecovery(const Describe &describe, const dnnl::primitive_attr &before, bool isRelu,
                         const MemoryView &view, const layout::Box &box, dnnl::memory::desc desc)
    : description(describe(before)), isRelu(isRelu), type(view.type), resultDesc(std::move(desc)) {
  BoxPair::append(view, view, box, pairs);
}

bool NanRecovery::isFinite(std::byte *data) const {
  bool isFinite = true;
  withType(type, [&](auto type) {
    using Type = decltype(type);
    forEachRun<Type>(pairs, data, data, [&](auto *values, auto *, int64_t count, int64_t stride) {
      if (!isFinite)
        return;
      if constexpr (std::is_same_v<Type, Single>)
        if (stride == 1) {
          isFinite = hostKernels().isFinite(reinterpret_cast<const float *>(values), count);
          return;
        }
      bool found = false;
      for (int64_t i = 0; i < count; ++i)
        found |= (values[i * stride] & Type::infinity) == Type::infinity;
      isFinite = !found;
    });
  });
  return isFinite;
}

void NanRecovery::Free::operator()(std::byte *memory) const { std::free(memory); }

absl::StatusOr<NanRecovery::Memory> NanRecovery::allocate(size_t bytes) {
  size_t size = alignedSize(std::max<size_t>(bytes, 1));
  Memory memory(static_cast<std::byte *>(std::aligned_alloc(bufferAlignment, size)));
  if (!memory)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", size, " bytes to find NaN in the result of a library call"));
  std::memset(memory.get(), 0, size);
  return memory;
}

absl::Status NanRecovery::recover(const LibraryCall &call, std::byte *data, std::byte *plain) {
  if (!primitive)
    primitive = dnnl::primitive(description);
  dnnl::memory::desc scratchDesc = description.scratchpad_desc();
  absl::StatusOr<Memory> scratch = allocate(scratchDesc.get_size());
  if (!scratch.ok())
    return scratch.status();
  LibraryCall again = call.like(primitive);
  again.setArgument(DNNL_ARG_DST, resultDesc, plain);
  if (scratchDesc.get_size() > 0)
    again.setArgument(DNNL_ARG_SCRATCHPAD, scratchDesc, scratch->get());
  if (absl::Status status = again.run(); !status.ok())
    return status;
  withType(type, [&](auto type) {
    using Type = decltype(type);
    forEachRun<Type>(pairs, data, plain, [&](auto *values, auto *sums, int64_t count, int64_t stride) {
      for (int64_t i = 0; i < count * stride; i += stride) {
        if (isNan<Type>(sums[i]))
          values[i] = sums[i];
        else if (isRelu && isNan<Type>(values[i]))
          values[i] = 0; // Some implementations multiply -infinity by 0.
      }
    });
  });
  return absl::OkStatus();
}

absl::Status NanRecovery::run(const LibraryCall &call, std::byte *data, Addend addend,
                              const std::function<absl::Status(std::byte *)> &refill) {
  // A call may write over its addend. Sums with a finite addend are NaN just where the other operand is NaN, so such an
  // addend is not needed again. Others are kept.
  Memory plain;
  if (addend == Addend::InPlace && !isFinite(data)) {
    absl::StatusOr<Memory> memory = allocate(resultDesc.get_size());
    if (!memory.ok())
      return memory.status();
    plain = *std::move(memory);
    for (const BoxPair &pair : pairs)
      pair.copy(plain.get(), data);
  }
  InvalidFlag::clear();
  if (absl::Status status = call.run(); !status.ok() || !InvalidFlag::isRaised())
    return status;
  return guardLibrary([&]() -> absl::Status {
    if (!plain) {
      absl::StatusOr<Memory> memory = allocate(resultDesc.get_size());
      if (!memory.ok())
        return memory.status();
      plain = *std::move(memory);
      if (addend == Addend::Kept)
        if (absl::Status status = refill(plain.get()); !status.ok())
          return status;
    }
    return recover(call, data, plain.get());
  });
}
