//===- OneDnn.cpp - Use of oneDNN -----------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OneDnn.h"

#include "../../Session/Backend.h"
#include "Kernels/VectorKernels.h"
#include "LibraryInstructions.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;

const dnnl::engine &dovetail::runtime::cpuEngine() {
  static const dnnl::engine engine = [] {
    // Where that fails, sessions say so.
    limitLibrary().IgnoreError();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

namespace {

/// Streams are not to be shared between threads.
const dnnl::stream &threadStream() {
  thread_local const dnnl::stream stream(cpuEngine());
  return stream;
}

/// The type whose elements can be moved instead of those of `type`, bit by bit.
std::optional<memory::data_type> carrierType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return memory::data_type::f32;
  case ElementType::I32:
  case ElementType::U32:
    return memory::data_type::s32;
  case ElementType::I8:
  case ElementType::U8:
  case ElementType::Bool:
    return memory::data_type::u8;
  default:
    return isNarrow(type) ? std::optional(memory::data_type::u8) : std::nullopt;
  }
}

} // namespace

absl::StatusOr<memory::data_type> dovetail::runtime::libraryType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return memory::data_type::f32;
  case ElementType::BF16:
    return memory::data_type::bf16;
  case ElementType::F16:
    return memory::data_type::f16;
  default:
    return absl::UnimplementedError(
        absl::StrCat("library calls are not possible on elements of type ", elementTypeName(type),
                     "; compile the model with --no-libraries, which uses generated kernels"));
  }
}

/// Whether the library adds products of integers of 8 bits in 32: without VNNI it adds pairs of them in 16 first.
static bool addsIn32Bits() {
  switch (libraryInstructions()) {
  case dnnl::cpu_isa::sse41:
  case dnnl::cpu_isa::avx:
  case dnnl::cpu_isa::avx2:
  case dnnl::cpu_isa::avx512_mic:
  case dnnl::cpu_isa::avx512_mic_4ops:
  case dnnl::cpu_isa::avx512_core:
    return false;
  default:
    return true;
  }
}

absl::StatusOr<ProductTypes> ProductTypes::find(ElementType first, ElementType second, ElementType result) {
  if (result != ElementType::I32) {
    absl::StatusOr<memory::data_type> type = libraryType(result);
    if (!type.ok())
      return type.status();
    return ProductTypes{*type, *type, *type};
  }
  // Of two factors with signs it rounds sums.
  if (first != ElementType::U8 || second != ElementType::I8)
    return absl::UnimplementedError(absl::StrCat(
        "products of ", elementTypeName(first), " and ", elementTypeName(second),
        " are not supported by libraries; compile the model with --no-libraries, which uses generated kernels"));
  if (!addsIn32Bits())
    return absl::UnimplementedError(
        "products of integers of 8 bits need instructions (VNNI) that oneDNN does not use here; unset "
        "ONEDNN_MAX_CPU_ISA and DOVETAIL_MAX_CPU, or compile the model with --no-libraries, which uses generated "
        "kernels");
  return ProductTypes{memory::data_type::u8, memory::data_type::s8, memory::data_type::s32};
}

memory::desc dovetail::runtime::describe(const MemoryView &view, const layout::Box &box, const std::vector<int> &dims,
                                         const std::vector<int> &order, memory::data_type type) {
  memory::dims extents(dims.size()), strides(dims.size());
  int64_t packed = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    int dim = dims[*it];
    extents[*it] = dim < 0 ? 1 : box[dim].size();
    // The stride of a single element is never used, but oneDNN recognises formats by it.
    strides[*it] = extents[*it] == 1 ? packed : view.strides[dim];
    packed = strides[*it] * extents[*it];
  }
  return memory::desc(extents, type, strides);
}

std::pair<std::vector<int>, std::vector<int>> dovetail::runtime::libraryOrder(const MemoryFormat &format) {
  std::vector<int> dims = {0, 1}, order;
  for (int dim : format.order) {
    order.push_back(dim < 2 ? dim : static_cast<int>(dims.size()));
    if (dim >= 2)
      dims.push_back(dim);
  }
  return {std::move(dims), std::move(order)};
}

bool dovetail::runtime::isDense(const MemoryView &view, const layout::Box &box, const MemoryFormat &format) {
  return view.isLike(MemoryView::packed(view.type, box, format), box);
}

MemoryFormat dovetail::runtime::withChannels(const MemoryFormat &format, bool areLast) {
  MemoryFormat result{{0}};
  if (!areLast)
    result.order.push_back(1);
  for (int dim : format.order)
    if (dim >= 2)
      result.order.push_back(dim);
  if (areLast)
    result.order.push_back(1);
  return result;
}

MemoryFormat dovetail::runtime::chooseFormat(const std::vector<MemoryFormat> &candidates,
                                             const std::vector<HeldBox> &operands) {
  auto countCopied = [&](const MemoryFormat &format) {
    int64_t copied = 0;
    for (const HeldBox &operand : operands)
      if (!isDense(operand.view, operand.box, format))
        copied += operand.box.volume();
    return copied;
  };
  return *std::min_element(candidates.begin(), candidates.end(), [&](const MemoryFormat &a, const MemoryFormat &b) {
    return countCopied(a) < countCopied(b);
  });
}

bool dovetail::runtime::isReference(const char *implementation) {
  return std::strncmp(implementation, "ref", 3) == 0 || std::strstr(implementation, ":ref");
}

std::string dovetail::runtime::hostPacker() {
  const dnnl_version_t *version = dnnl_version();
  return absl::StrCat("oneDNN ", version->major, ".", version->minor, ".", version->patch, " (",
                      absl::string_view(version->hash).substr(0, 10), ") with instruction set ",
                      static_cast<int>(libraryInstructions()), " and kernels ", VectorKernels::packedVersion, " for ",
                      hostKernels().name);
}

std::string dovetail::runtime::formatKey(const memory::desc &desc) {
  const dnnl_memory_desc_t &data = desc.data;
  const dnnl_blocking_desc_t &blocking = data.format_desc.blocking;
  auto list = [](const auto *values, int count) { return absl::StrJoin(values, values + count, ","); };
  return absl::StrCat(static_cast<int>(data.data_type), " ", static_cast<int>(data.format_kind), " ", data.extra.flags,
                      " ", data.offset0, " ", list(data.dims, data.ndims), " ", list(data.padded_dims, data.ndims), " ",
                      list(data.padded_offsets, data.ndims), " ", list(blocking.strides, data.ndims), " ",
                      list(blocking.inner_blks, blocking.inner_nblks), " ",
                      list(blocking.inner_idxs, blocking.inner_nblks));
}

std::string dovetail::runtime::packedKey(const RankMemory &context, uint32_t tensor, const layout::Box &box,
                                         const std::string &format) {
  if (context.plan.tensors[tensor].sharding.isPartial())
    return {};
  return absl::StrCat(context.plan.tensors[tensor].buffer, " ", box.str(), " ", format, ";");
}

std::string dovetail::runtime::packedKey(const RankMemory &context, uint32_t tensor, const layout::Box &box,
                                         const memory::desc &source, const memory::desc &packed) {
  return packedKey(context, tensor, box, absl::StrCat(formatKey(source), " ", formatKey(packed)));
}

void LibraryCall::setArgument(int index, const memory::desc &desc, void *data) {
  memories.emplace_back(desc, cpuEngine(), data);
  for (dnnl_exec_arg_t &argument : arguments)
    if (argument.arg == index) {
      argument.memory = memories.back().get();
      return;
    }
  arguments.push_back({index, memories.back().get()});
}

LibraryCall LibraryCall::like(dnnl::primitive other) const {
  LibraryCall result = *this;
  result.primitive = std::move(other);
  return result;
}

absl::Status LibraryCall::run() const {
  // The C interface takes the list as it is; the C++ one would build it anew for each call.
  dnnl_status_t status = dnnl_primitive_execute(primitive.get(), threadStream().get(),
                                                static_cast<int>(arguments.size()), arguments.data());
  if (status != dnnl_success)
    return absl::InternalError(absl::StrCat("oneDNN failed with status ", static_cast<int>(status)));
  return absl::OkStatus();
}

Copier::Copier(const MemoryView &target, const MemoryView &source, const layout::Box &box) {
  BoxPair::append(target, source, box, pairs);
  std::optional<memory::data_type> type = carrierType(target.type);
  constexpr int64_t longRun = 64;
  if (pairs.size() != 1 || pairs[0].contiguousBytes() >= longRun || !type || box.rank() > DNNL_MAX_NDIMS)
    return;
  std::vector<int> dims;
  for (int dim = 0; dim < box.rank(); ++dim) {
    dims.push_back(dim);
    if (source.strides[dim] == 0 && box[dim].size() > 1)
      return; // A broadcast, which the library does not know.
  }
  try {
    targetDesc = describe(target, box, dims, dims, *type);
    sourceDesc = describe(source, box, dims, dims, *type);
    dnnl::reorder::primitive_desc desc(cpuEngine(), sourceDesc, cpuEngine(), targetDesc);
    if (isReference(desc.impl_info_str()))
      return;
    reorder = dnnl::reorder(desc);
  } catch (const dnnl::error &) {
    return; // Our own loops can do everything.
  }
  for (int dim = 0; dim < box.rank(); ++dim) {
    targetOffset += target.offset(dim, box[dim].lo) * elementSize(target.type);
    sourceOffset += source.offset(dim, box[dim].lo) * elementSize(source.type);
  }
}

void Copier::bind(std::byte *target, std::byte *source) {
  this->target = target;
  this->source = source;
  if (!reorder)
    return;
  call = LibraryCall(*reorder);
  call.setArgument(DNNL_ARG_FROM, sourceDesc, source + sourceOffset);
  call.setArgument(DNNL_ARG_TO, targetDesc, target + targetOffset);
}

absl::Status Copier::run() const {
  if (call)
    return call.run();
  for (const BoxPair &pair : pairs)
    pair.copy(target, source);
  return absl::OkStatus();
}
