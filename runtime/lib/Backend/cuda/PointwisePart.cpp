//===- PointwisePart.cpp - Convolutions that are products ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointwisePart.h"
#include "Tuning.h"

#include <algorithm>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

absl::StatusOr<bool> PointwisePart::planCall(size_t fused) {
  const Box &outBox = geometry.outBox;
  const MemoryView &in = staging->input.view, &out = staging->output.view;
  MatrixProduct product;
  product.type = out.type;
  product.n = outBox[1].size();
  product.k = geometry.inBox[1].size();
  product.a.alignment = staging->input.alignment;
  product.b = staging->factor;
  product.c.alignment = product.d.alignment = staging->output.alignment;
  absl::StatusOr<bool> takes = epilogue.plan(memory, call.postOps, fused, outBox, /*columnDim=*/1, product);
  if (!takes.ok() || !*takes)
    return takes;
  const PostOpOperand *added = epilogue.addedOperand();
  if (added && added->strides[1] != 1 && product.n > 1)
    return false;

  calls = {};
  const std::vector<int64_t> &addedStrides = added ? added->strides : out.strides;
  for (int dim = 0; dim < outBox.rank(); ++dim)
    if (dim != 1)
      calls.add({outBox[dim].size(), {in.strides[dim], addedStrides[dim], out.strides[dim]}});
  BatchLoop<3> rows = calls.takeInnermost();
  product.m = rows.count;
  auto layoutOf = [&](int64_t stride, int64_t columns, int64_t alignment) {
    return MatrixLayout{rows.count == 1 ? columns : stride, 1, alignment};
  };
  product.a = layoutOf(rows.strides[0], product.k, staging->input.alignment);
  product.d = layoutOf(rows.strides[2], product.n, staging->output.alignment);
  product.hasC = added != nullptr;
  product.c = product.d;
  if (added)
    product.c = layoutOf(rows.strides[1], product.n, std::min(vectorAlignment, added->alignment));
  int64_t size = elementSize(product.type);
  for (const BatchLoop<3> &loop : calls.get()) {
    product.a.alignment = std::gcd(product.a.alignment, loop.strides[0] * size);
    product.c.alignment = std::gcd(product.c.alignment, loop.strides[1] * size);
    product.d.alignment = std::gcd(product.d.alignment, loop.strides[2] * size);
  }
  BatchLoop<3> batch = calls.takeLongest();
  product.batch = batch.count;
  product.batchA = batch.strides[0];
  product.batchC = batch.strides[1];
  product.batchD = batch.strides[2];

  log.fused = fused;
  matrixCall = std::make_unique<MatrixCall>(handles, product, options.explain ? &log : nullptr);
  return matrixCall->choose(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1, allowed);
}

absl::StatusOr<bool> PointwisePart::plan(StagingMode mode) {
  log.layout = mode;
  for (size_t fused = call.postOps.size();; --fused) {
    staging.emplace(memory, call, geometry, packOnce, mode, fused);
    absl::StatusOr<bool> found = planCall(fused);
    if (!found.ok())
      return found;
    if (*found) {
      workspaceOffset = staging->scratch.add(allowed.most);
      if (staging->output.isStaged || fused < call.postOps.size())
        finish = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, fused, geometry.outBox);
      return true;
    }
    if (fused == 0)
      return false;
  }
}

absl::StatusOr<std::unique_ptr<PointwisePart>> PointwisePart::create(LibraryHandles &handles, const RankMemory &memory,
                                                                     const ConvolutionCall &call,
                                                                     const ConvolutionChannels &channels,
                                                                     LibraryCallOptions options, int64_t workspace) {
  absl::StatusOr<ConvolutionGeometry> geometry = ConvolutionGeometry::plan(memory, call, channels);
  if (!geometry.ok())
    return geometry.status();
  if (!PointwiseStaging::takes(memory, call, *geometry, channels) || !handles.cublasLt().ok())
    return nullptr;
  std::unique_ptr<PointwisePart> part(
      new PointwisePart(handles, memory, call, *std::move(geometry), options, workspace));
  for (StagingMode mode : {StagingMode::Direct, StagingMode::Packed}) {
    absl::StatusOr<bool> found = part->plan(mode);
    if (!found.ok())
      return found.status();
    if (*found)
      return part;
  }
  return nullptr;
}

absl::Status PointwisePart::prepare() {
  return finish ? finish->prepare(memory.memory(call.output).type) : absl::OkStatus();
}

absl::Status PointwisePart::bind(std::byte *scratchMemory, std::byte *&packed) {
  scratchMemory = DeviceScratch::align(scratchMemory);
  const MemoryView &weightsView = memory.memory(call.weights), &outView = memory.memory(call.output);
  auto copy = [&](StagedOperand &operand, const MemoryView &from, std::unique_ptr<DeviceWork> &slot) {
    absl::StatusOr<std::unique_ptr<DeviceWork>> made = copyBetween(handles.context, operand.view, from, from.box);
    if (made.ok())
      slot = *std::move(made);
    return made.status();
  };

  StagedOperand &in = staging->input, &weights = staging->weights, &out = staging->output;
  MemoryView &source = staging->source;
  source.data = memory.memory(call.input).address(staging->readBox);
  in.view.data = in.isStaged ? scratchMemory + in.offset : source.data;
  if (in.isStaged)
    if (absl::Status status = copy(in, source, copyIn); !status.ok())
      return status;
  weights.view.data = !weights.isStaged ? weightsView.address(geometry.weightsBox)
                      : packOnce        ? packed
                                        : scratchMemory + weights.offset;
  packed += staging->packedBytes;
  if (weights.isStaged)
    if (absl::Status status = copy(weights, weightsView.part(geometry.weightsBox), copyWeights); !status.ok())
      return status;
  out.view.data = out.isStaged ? scratchMemory + out.offset : outView.address(geometry.outBox);
  workspace = scratchMemory + workspaceOffset;
  if (absl::Status status = epilogue.bind(memory, call.postOps, geometry.outBox, *matrixCall); !status.ok())
    return status;
  return finish ? finish->bind(outView, out.view) : absl::OkStatus();
}

absl::Status PointwisePart::pack(DeviceStream &stream) {
  if (packOnce && copyWeights)
    if (absl::Status status = copyWeights->issue(stream); !status.ok())
      return status;
  if (matrixCall->algorithmCount() == 1)
    return absl::OkStatus();
  return matrixCall->tune(stream, staging->input.view.data, staging->weights.view.data, epilogue.addedData(),
                          staging->output.view.data, workspace);
}

absl::Status PointwisePart::issue(DeviceStream &stream) {
  if (copyWeights && !packOnce)
    if (absl::Status status = copyWeights->issue(stream); !status.ok())
      return status;
  if (copyIn)
    if (absl::Status status = copyIn->issue(stream); !status.ok())
      return status;
  const std::byte *in = staging->input.view.data, *weights = staging->weights.view.data, *added = epilogue.addedData();
  std::byte *out = staging->output.view.data;
  int64_t size = elementSize(staging->output.view.type);
  absl::Status status = calls.forEach([&](const std::array<int64_t, 3> &at) {
    return matrixCall->issue(stream, in + at[0] * size, weights, added ? added + at[1] * size : nullptr,
                             out + at[2] * size, workspace);
  });
  return status.ok() && finish ? finish->issue(stream) : status;
}

void PointwisePart::report(LibraryCallReport &report) const {
  report.postOps = static_cast<int64_t>(call.postOps.size());
  addImplementation(report, matrixCall->implementation());
  log.addTo(report);
  report.addStaged(staging->input.isStaged, "input");
  report.addStaged(staging->weights.isStaged, packOnce ? "weights, once" : "weights");
  report.addStaged(staging->output.isStaged, "output");
}
