//===- TileConvolution.cpp - Transposed convolution by tiles --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileConvolution.h"

#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;
using layout::Box;
using layout::Interval;

TileConvolution::TileConvolution(Operands given) : operands(std::move(given)) {
  innermost = operands.dims.back() - 2;
  width = operands.strides[innermost];
  channels = operands.output.box[1].size();

  Box weights = operands.weights.box;
  MemoryFormat plainFormat;
  for (size_t i = 2; i < operands.dims.size(); ++i)
    plainFormat.order.push_back(operands.dims[i]);
  plainFormat.order.insert(plainFormat.order.end(), {1, 0});
  plain = MemoryView::packed(operands.weights.type, weights, plainFormat);
  arrange = Copier(plain, operands.weights, weights);

  // A result is at (n, position of its input, index in the tile's row and channel).
  Box rowsBox = operands.input.box;
  rowsBox[1] = {0, width * channels};
  MemoryFormat rowsFormat;
  for (int dim : operands.order)
    rowsFormat.order.push_back(operands.dims[dim]);
  rows = MemoryView::packed(operands.output.type, rowsBox, rowsFormat);
  rowsKept = rows;
  rowsKept.strides[0] = operands.output.strides[0];
  for (size_t i = 0; i < operands.strides.size(); ++i)
    rowsKept.strides[2 + i] = operands.output.strides[2 + i] * operands.strides[i];
  rowsDesc = describe(rows, rowsBox, operands.dims, operands.order, operands.type);

  int64_t inputs = weights[0].size();
  memory::dims extents = {width * channels, inputs}, strides = {inputs, 1};
  extents.resize(operands.dims.size(), 1);
  strides.resize(operands.dims.size(), 1);
  plainDesc = memory::desc(extents, operands.type, strides);
}

int64_t TileConvolution::numTiles() const {
  int64_t count = 1;
  for (int64_t stride : operands.strides)
    count *= stride;
  return count / width;
}

int64_t TileConvolution::tileOffset(int64_t tile) const {
  int64_t offset = 0;
  for (size_t i = operands.dims.size() - 1; i-- > 2;) {
    int dim = operands.dims[i];
    offset += tile % operands.strides[dim - 2] * operands.output.strides[dim];
    tile /= operands.strides[dim - 2];
  }
  return offset;
}

void TileConvolution::stage(ScratchPlan &scratch) {
  rowsOffset = scratch.add(rows.bytes());
  biasOffset = scratch.add(width * channels * elementSize(rows.type));
}

PostOps::Outcome TileConvolution::create(const PostOps::Fused &fused, CallBudget &budget,
                                         const TileConvolution *shared) {
  dnnl::post_ops list = fused.attributes.get_post_ops();
  for (int i = 0; i < list.len(); ++i)
    if (list.kind(i) == dnnl::primitive::kind::sum)
      return PostOps::Outcome::Impossible;
  memory::desc anyWeights =
      shared ? shared->packedDesc : memory::desc(plainDesc.dims(), operands.type, memory::format_tag::any);
  memory::dims ones(operands.strides.size(), 1), zeros(operands.strides.size(), 0);
  auto kind = dnnl::prop_kind::forward_inference;
  auto algorithm = dnnl::algorithm::convolution_direct;
  using Op = dnnl::convolution_forward;
  biasDesc = memory::desc({width * channels}, operands.type, memory::format_tag::a);
  fusesBias = fused.hasBias;
  auto make = [=, hasBias = fusesBias, in = operands.inputDesc, out = rowsDesc,
               bias = biasDesc](const memory::desc &weights) {
    return hasBias ? Op::desc(kind, algorithm, in, weights, bias, out, ones, zeros, zeros)
                   : Op::desc(kind, algorithm, in, weights, out, ones, zeros, zeros);
  };
  // The library refers to it as long as it looks for other implementations.
  Op::desc operation = make(anyWeights);
  Op::primitive_desc created(operation, fused.attributes, cpuEngine());
  auto need = [&](const Op::primitive_desc &each) {
    packedDesc = each.weights_desc();
    scratchpadDesc = each.scratchpad_desc();
    return CallBudget::needOf(shared ? 0 : weightBytes(), alignedSize(scratchpadDesc.get_size()), operands.packOnce);
  };
  if (!budget.choose(created, need))
    return PostOps::Outcome::Impossible;
  primitive = Op(created);
  description = [make, packed = packedDesc](const dnnl::primitive_attr &attributes) {
    return Op::primitive_desc(make(packed), attributes, cpuEngine());
  };
  implementationName = created.impl_info_str();
  return isReference(created.impl_info_str()) ? PostOps::Outcome::Slow : PostOps::Outcome::Fast;
}

absl::Status TileConvolution::prepare(ScratchPlan &scratch) {
  return guardLibrary([&]() -> absl::Status {
    packer = dnnl::reorder(dnnl::reorder::primitive_desc(cpuEngine(), plainDesc, cpuEngine(), packedDesc));
    scratchpadOffset = scratch.add(scratchpadDesc.get_size());
    if (!operands.packOnce)
      weightsOffset = scratch.add(weightBytes());
    return absl::OkStatus();
  });
}

absl::Status TileConvolution::bind(std::byte *scratch, std::byte *packed, std::byte *input, std::byte *output,
                                   std::byte *weights, const std::byte *tileBias) {
  return guardLibrary([&]() -> absl::Status {
    int64_t packedBytes = alignedSize(packedDesc.get_size());
    std::byte *packedData = operands.packOnce ? packed : scratch + weightsOffset;
    std::byte *plainData = packedData + packedBytes * numTiles();
    arrange.bind(plainData, weights);
    bias = tileBias;
    repeatedBias = scratch + biasOffset;
    rowsData = scratch + rowsOffset;
    for (int64_t tile = 0; tile < numTiles(); ++tile) {
      LibraryCall pack(packer);
      pack.setArgument(DNNL_ARG_FROM, plainDesc, plainData + tile * plainDesc.get_size());
      pack.setArgument(DNNL_ARG_TO, packedDesc, packedData + tile * packedBytes);
      packs.push_back(std::move(pack));
      LibraryCall call(primitive);
      call.setArgument(DNNL_ARG_SRC, operands.inputDesc, input);
      call.setArgument(DNNL_ARG_WEIGHTS, packedDesc, packedData + tile * packedBytes);
      call.setArgument(DNNL_ARG_DST, rowsDesc, rowsData);
      if (fusesBias)
        call.setArgument(DNNL_ARG_BIAS, biasDesc, repeatedBias);
      if (scratchpadDesc.get_size() > 0)
        call.setArgument(DNNL_ARG_SCRATCHPAD, scratchpadDesc, scratch + scratchpadOffset);
      calls.push_back(std::move(call));
      scatter.emplace_back(rowsKept, rows, rows.box);
      scatter.back().bind(output + tileOffset(tile) * elementSize(rows.type), rowsData);
    }
    return absl::OkStatus();
  });
}

absl::Status TileConvolution::packTiles() const {
  if (absl::Status status = arrange.run(); !status.ok())
    return status;
  for (const LibraryCall &pack : packs)
    if (absl::Status status = pack.run(); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status TileConvolution::pack() { return operands.packOnce ? packTiles() : absl::OkStatus(); }

absl::Status TileConvolution::run(const PostOps &postOps) {
  if (!operands.packOnce)
    if (absl::Status status = packTiles(); !status.ok())
      return status;
  if (fusesBias) {
    int64_t bytes = channels * elementSize(rows.type);
    for (int64_t i = 0; i < width; ++i)
      std::memcpy(repeatedBias + i * bytes, bias, bytes);
  }
  for (size_t tile = 0; tile < calls.size(); ++tile) {
    if (absl::Status status = postOps.run(calls[tile], rowsData); !status.ok())
      return status;
    if (absl::Status status = scatter[tile].run(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}
