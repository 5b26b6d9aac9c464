//===- PlanDecoder.cpp - What plans consist of, from FlatBuffers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanDecoder.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Version.h"

#include <set>

using namespace dovetail;
using namespace dovetail::runtime;

static constexpr int64_t maxRanks = 1 << 16;

absl::Status dovetail::runtime::decodeOrder(const std::string &where, const flatbuffers::Vector<uint8_t> &order,
                                            size_t rank, std::vector<int> &result) {
  std::vector<bool> seen(rank);
  for (uint8_t dim : order) {
    if (dim >= rank || seen[dim])
      return damaged(where, " that is not a permutation of its dimensions");
    seen[dim] = true;
    result.push_back(dim);
  }
  if (result.size() != rank)
    return damaged(where, " that is not a permutation of its dimensions");
  return absl::OkStatus();
}

absl::Status dovetail::runtime::decodeDim(const std::string &where, const artifact::Dim &dim,
                                          layout::DimSharding &result) {
  if (!isAligned(dim.pieces()))
    return damaged(where, " has misaligned pieces");
  if (dim.axes())
    result.axes.assign(dim.axes()->begin(), dim.axes()->end());
  if (dim.pieces()) {
    result.pieces.reserve(dim.pieces()->size());
    for (const artifact::Interval *piece : *dim.pieces())
      result.pieces.push_back({piece->lo(), piece->hi()});
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeMesh() {
  std::vector<layout::MeshAxis> axes;
  int64_t ranks = 1;
  for (const artifact::MeshAxis *axis : *source.mesh()) {
    if (axis->size() < 1 || axis->size() > maxRanks || (ranks *= axis->size()) > maxRanks)
      return damaged("mesh axis '", str(axis->name()), "' has size ", axis->size(), "; a mesh has at most ", maxRanks,
                     " ranks");
    axes.push_back({str(axis->name()), static_cast<int>(axis->size())});
  }
  plan.mesh = layout::Mesh(std::move(axes));
  if (std::string why; !plan.mesh.verify(&why))
    return damaged(why);
  return absl::OkStatus();
}

absl::Status Decoder::decodeCounts() {
  if (!source.counts())
    return absl::OkStatus();
  for (const artifact::Count *count : *source.counts()) {
    if (count->bound() < 0 || count->bound() > maxExtent)
      return damaged("count '", str(count->name()), "' has an impossible bound ", count->bound());
    plan.counts.push_back({str(count->name()), count->bound(), count->tensor(), count->given()});
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeShape(const std::string &where, const flatbuffers::Vector<int64_t> &shape,
                                  std::vector<int64_t> &result) {
  if (shape.size() > 64 || !isAligned(&shape))
    return damaged(where, " has an impossible shape of ", shape.size(), " dimensions");
  // Zero extents do not shorten the bound on the others: strides are products of them.
  int64_t volume = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > maxExtent || volume > maxBytes / 8 / std::max<int64_t>(extent, 1))
      return damaged(where, " has an impossible extent ", extent);
    volume *= std::max<int64_t>(extent, 1);
    result.push_back(extent);
  }
  return absl::OkStatus();
}

absl::Status Decoder::decodeSharding(const std::string &where,
                                     const flatbuffers::Vector<flatbuffers::Offset<artifact::Dim>> &dims,
                                     const flatbuffers::Vector<uint8_t> *partialAxes, artifact::Reduction kind,
                                     const std::vector<int64_t> &shape, layout::Sharding &result) {
  for (const artifact::Dim *dim : dims)
    RETURN_IF_ERROR(decodeDim(where, *dim, result.dims.emplace_back()));
  if (partialAxes)
    result.partialAxes.assign(partialAxes->begin(), partialAxes->end());
  std::optional<layout::ReductionKind> partialKind = fromSchema(kind);
  if (!partialKind)
    return damaged(where, " has an unknown reduction ", static_cast<int>(kind));
  result.partialKind = *partialKind;
  if (std::string why; !result.verify(plan.mesh, shape, &why))
    return damaged(where, ": ", why);
  return absl::OkStatus();
}

absl::Status Decoder::decodeFormat(const std::string &where, const artifact::Format &format, size_t rank,
                                   MemoryFormat &result) {
  RETURN_IF_ERROR(decodeOrder(absl::StrCat(where, " has a format"), *format.order(), rank, result.order));
  if (format.block_dim() >= 0)
    return absl::FailedPreconditionError(
        absl::StrCat(where, " is in blocks of channels (--channel-blocks), which Dovetail ", version(),
                     " does not read; compile the model again with this version"));
  return absl::OkStatus();
}

absl::Status Decoder::decodeBuffer(size_t index, const artifact::Buffer &buffer) {
  std::string where = absl::StrCat("buffer ", index);
  BufferInfo info{};
  std::optional<BufferKind> kind = fromSchema(buffer.kind());
  std::optional<ElementType> type = fromSchema(buffer.type());
  if (!kind || !type)
    return damaged(where, " has an unknown kind or element type");
  info.kind = *kind;
  info.type = *type;
  RETURN_IF_ERROR(decodeShape(where, *buffer.shape(), info.shape));
  RETURN_IF_ERROR(decodeSharding(where, *buffer.dims(), nullptr, artifact::Reduction::None, info.shape, info.sharding));
  RETURN_IF_ERROR(decodeFormat(where, *buffer.format(), info.shape.size(), info.format));
  if (info.kind == BufferKind::Constant) {
    info.dataOffset = buffer.data_offset();
    info.dataSize = buffer.data_size();
    uint64_t needed = layout::Box::ofShape(info.shape).volume() * elementSize(info.type);
    if (info.dataSize != needed)
      return damaged(where, " has ", info.dataSize, " bytes of data instead of ", needed);
    if (info.dataOffset > weightsSize || info.dataSize > weightsSize - info.dataOffset)
      return damaged(where, " has data outside of the weights");
    if (info.dataOffset % elementSize(info.type) != 0)
      return damaged(where, " has misaligned data");
  }
  plan.buffers.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status Decoder::decodeTensor(size_t index, const artifact::Tensor &tensor) {
  TensorInfo info;
  info.name = str(tensor.name());
  info.buffer = tensor.buffer();
  std::string where = absl::StrCat("tensor ", index, " '", info.name, "'");
  if (info.buffer >= plan.buffers.size())
    return damaged(where, " lies in buffer ", info.buffer, " of ", plan.buffers.size());
  RETURN_IF_ERROR(decodeSharding(where, *tensor.dims(), tensor.partial_axes(), tensor.partial_kind(),
                                 plan.buffers[info.buffer].shape, info.sharding));
  if (isNarrow(plan.buffers[info.buffer].type) && info.sharding.partialKind != layout::ReductionKind::None &&
      info.sharding.partialKind != layout::ReductionKind::Owner)
    return damaged(where, " is partial, but elements of ", elementTypeName(plan.buffers[info.buffer].type),
                   " cannot be combined");
  if (tensor.counts())
    info.counts.assign(tensor.counts()->begin(), tensor.counts()->end());
  plan.tensors.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status Decoder::decodePorts(const char *list,
                                  const flatbuffers::Vector<flatbuffers::Offset<artifact::Port>> &ports,
                                  std::vector<PortInfo> &result) {
  std::set<std::string> names;
  for (const artifact::Port *port : ports) {
    PortInfo info;
    info.name = str(port->name());
    info.tensor = port->tensor();
    std::string where = absl::StrCat(list, " '", info.name, "'");
    RETURN_IF_ERROR(tensorIndex(where, info.tensor));
    std::optional<ElementType> type = fromSchema(port->type());
    if (!type)
      return damaged(where, " has an unknown element type");
    info.type = *type;
    RETURN_IF_ERROR(decodeShape(where, *port->shape(), info.shape));
    const BufferInfo &buffer = plan.bufferOf(info.tensor);
    if (buffer.type != info.type || buffer.shape != info.shape)
      return damaged(where, " has another type or shape than its tensor");
    if (!names.insert(info.name).second)
      return damaged("there are two ", list, "s called '", info.name, "'");
    if (port->fed_by() >= 0) {
      info.fedBy = port->fed_by();
      info.next = port->next();
      RETURN_IF_ERROR(tensorIndex(where, info.next));
    }
    result.push_back(std::move(info));
  }
  return absl::OkStatus();
}

absl::Status Decoder::decode() {
  plan.producer = str(source.producer());
  plan.model = str(source.model());
  plan.target = str(source.target());
  std::optional<MathMode> math = fromSchema(source.math());
  if (!math)
    return damaged("library calls have an unknown precision");
  plan.math = *math;
  plan.cpu = str(source.cpu());
  if (source.cpu_features())
    for (const flatbuffers::String *feature : *source.cpu_features())
      plan.cpuFeatures.push_back(str(feature));
  if (source.kernel_uses())
    for (const artifact::KernelUse *use : *source.kernel_uses())
      plan.kernelUses.push_back({str(use->symbol()), archName(use->arch()), use->registers(), use->shared_bytes(),
                                 use->spill_stores(), use->spill_loads()});
  RETURN_IF_ERROR(decodeMesh());
  RETURN_IF_ERROR(decodeCounts());
  for (const artifact::Buffer *buffer : *source.buffers())
    RETURN_IF_ERROR(decodeBuffer(plan.buffers.size(), *buffer));
  for (const artifact::Tensor *tensor : *source.tensors())
    RETURN_IF_ERROR(decodeTensor(plan.tensors.size(), *tensor));
  RETURN_IF_ERROR(decodeSteps("prologue step", *source.prologue(), plan.prologue));
  RETURN_IF_ERROR(decodeSteps("step", *source.steps(), plan.steps));
  RETURN_IF_ERROR(decodePorts("input", *source.inputs(), plan.inputs));
  RETURN_IF_ERROR(decodePorts("output", *source.outputs(), plan.outputs));
  return validatePlan(plan);
}

absl::StatusOr<Plan> dovetail::runtime::decodePlan(absl::Span<const std::byte> bytes, uint64_t weightsSize) {
  const uint8_t *data = reinterpret_cast<const uint8_t *>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size(), /*max_depth=*/64, /*max_tables=*/100'000'000);
  if (!artifact::VerifyPlanBuffer(verifier))
    return damaged("its structure is broken");
  Plan plan;
  if (absl::Status status = Decoder(*artifact::GetPlan(data), plan, weightsSize).decode(); !status.ok())
    return status;
  return plan;
}
