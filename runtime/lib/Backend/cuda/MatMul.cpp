//===- MatMul.cpp - Matrix product steps ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../common/BatchLoops.h"
#include "../common/DeviceStaging.h"
#include "../common/PostOpRead.h"
#include "../common/ProductGeometry.h"
#include "LibraryCalls.h"
#include "MatrixCall.h"
#include "PostOpWork.h"
#include "ProductEpilogue.h"
#include "Staging.h"
#include "Tuning.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

namespace {

class MatMulStep : public DeviceLibraryCall {
public:
  MatMulStep(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory, const MatMulCall &call,
             LibraryCallOptions options, int64_t workspace)
      : handles(std::move(handles)), memory(memory), call(call), options(options), allowed{workspace} {}

  absl::Status prepare();
  absl::Status bind(std::byte *scratchMemory, std::byte *packed) override;
  absl::Status pack(DeviceStream &stream) override;
  absl::Status issue(DeviceStream &stream) override;
  LibraryCallReport report() const override;

private:
  /// Elements between neighbours of a dimension of the result.
  int64_t batchStride(const StagedOperand &factor, uint32_t tensor, int dim) const;
  absl::StatusOr<bool> plan(StagingMode mode);
  absl::StatusOr<bool> planCall(size_t fused, MatrixProduct product);
  void planBatch(MatrixProduct &product, const PostOpOperand *added);

  std::shared_ptr<LibraryHandles> handles;
  const RankMemory &memory;
  MatMulCall call;
  LibraryCallOptions options;
  Workspace allowed;
  ProductGeometry geometry;
  std::optional<ProductStaging> staging; ///< Null if there is nothing to sum.
  int64_t workspaceOffset = 0;
  std::unique_ptr<DeviceWork> copyA, copyB;
  std::byte *workspace = nullptr;
  std::unique_ptr<MatrixCall> matrixCall;
  CandidateLog log;
  BatchLoops<4> calls; ///< Batch dimensions that the library does not know, with strides of a, b, c and d.
  ProductEpilogue epilogue;
  std::unique_ptr<PostOpWork> finish;
};

} // namespace

int64_t MatMulStep::batchStride(const StagedOperand &factor, uint32_t tensor, int dim) const {
  const std::vector<int64_t> &shape = memory.plan.bufferOf(tensor).shape;
  int own = dim - (geometry.outBox.rank() - static_cast<int>(shape.size()));
  return own < 0 || shape[own] == 1 ? 0 : factor.view.strides[own];
}

/// Makes the batch dimensions one batch of the library, and calls one after another for what is left.
void MatMulStep::planBatch(MatrixProduct &product, const PostOpOperand *addedOperand) {
  const MemoryView &out = staging->output.view;
  calls = {};
  for (int dim = 0; dim + 1 + call.rowDims < geometry.outBox.rank(); ++dim)
    calls.add({geometry.outBox[dim].size(),
               {batchStride(staging->a, call.a, dim), batchStride(staging->b, call.b, dim),
                addedOperand ? addedOperand->strides[dim] : out.strides[dim], out.strides[dim]}});
  int64_t size = elementSize(product.type);
  for (const BatchLoop<4> &loop : calls.get()) {
    product.a.alignment = std::gcd(product.a.alignment, loop.strides[0] * size);
    product.b.alignment = std::gcd(product.b.alignment, loop.strides[1] * size);
    product.c.alignment = std::gcd(product.c.alignment, loop.strides[2] * size);
    product.d.alignment = std::gcd(product.d.alignment, loop.strides[3] * size);
  }
  BatchLoop<4> batch = calls.takeLongest();
  product.batch = batch.count;
  product.batchA = batch.strides[0];
  product.batchB = batch.strides[1];
  product.batchC = batch.strides[2];
  product.batchD = batch.strides[3];
}

absl::StatusOr<bool> MatMulStep::planCall(size_t fused, MatrixProduct product) {
  const Box &outBox = geometry.outBox;
  int rank = outBox.rank();
  absl::StatusOr<bool> takes = epilogue.plan(memory, call.postOps, fused, outBox, rank - 1, product);
  if (!takes.ok() || !*takes)
    return takes;
  const PostOpOperand *added = epilogue.addedOperand();
  if (added) {
    std::vector<int64_t> extents;
    for (int dim = 0; dim < rank; ++dim)
      extents.push_back(outBox[dim].size());
    auto rows = mergeRows(extents, added->strides, call.rowDims);
    if (!rows)
      return false;
    product.hasC = true;
    product.c = {rows->stride, added->strides[rank - 1], std::min(vectorAlignment, added->alignment)};
  }
  planBatch(product, added);
  log.fused = fused;
  matrixCall = std::make_unique<MatrixCall>(*handles, product, options.explain ? &log : nullptr);
  return matrixCall->choose(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1, allowed);
}

absl::StatusOr<bool> MatMulStep::plan(StagingMode mode) {
  log.layout = mode;
  const Box &outBox = geometry.outBox, &aBox = geometry.aBox;
  auto planFused = [&](size_t fused) -> absl::StatusOr<std::optional<float>> {
    staging.emplace(memory, call, geometry, mode, fused);
    MatrixProduct product;
    product.type = staging->output.view.type;
    product.m = mergeRows(staging->output.view, outBox, call.rowDims)->extent;
    product.n = outBox[outBox.rank() - 1].size();
    product.k = aBox[aBox.rank() - (call.form.transposesA ? 2 : 1)].size();
    product.a = staging->layoutA;
    product.b = staging->layoutB;
    product.c = product.d = staging->layoutOut;
    absl::StatusOr<bool> found = planCall(fused, product);
    if (!found.ok())
      return found.status();
    return *found ? std::optional(matrixCall->waves()) : std::nullopt;
  };
  absl::StatusOr<std::optional<size_t>> fused = chooseFused(call.postOps.size(), planFused);
  if (!fused.ok())
    return fused.status();
  if (!*fused)
    return false;
  workspaceOffset = staging->scratch.add(allowed.most);
  if (staging->output.isStaged || **fused < call.postOps.size())
    finish = std::make_unique<PostOpWork>(handles->context, memory, call.postOps, **fused, outBox);
  return true;
}

absl::Status MatMulStep::prepare() {
  const MemoryView &output = memory.memory(call.output);
  absl::StatusOr<ProductGeometry> planned = ProductGeometry::plan(memory, call, memory.loopBox(call.loops));
  if (!planned.ok())
    return planned.status();
  geometry = *std::move(planned);
  const Box &outBox = geometry.outBox;
  if (geometry.nothingToSum) {
    finish = std::make_unique<PostOpWork>(handles->context, memory, call.postOps, 0, outBox);
    return finish->prepare(output.type);
  }
  for (StagingMode mode : {StagingMode::Direct, StagingMode::Packed}) {
    absl::StatusOr<bool> found = plan(mode);
    if (!found.ok())
      return found.status();
    if (*found)
      return finish ? finish->prepare(output.type) : absl::OkStatus();
  }
  if (allowed.refused)
    return allowed.tooSmall(
        absl::StrCat("cuBLASLt ", handles->cublasLtApi().version, " on ", handles->context->label()));
  return absl::UnimplementedError(
      absl::StrCat("cuBLASLt ", handles->cublasLtApi().version, " on ", handles->context->label(),
                   " has no algorithm for ", elementTypeName(output.type), " matrices of ", outBox.str(),
                   "; compile the model with --no-libraries, which uses generated kernels instead"));
}

LibraryCallReport MatMulStep::report() const {
  LibraryCallReport report;
  report.postOps = static_cast<int64_t>(call.postOps.size());
  if (!matrixCall)
    return report;
  report.implementation = matrixCall->implementation();
  log.addTo(report);
  report.addStaged(staging->a.isStaged, "a");
  report.addStaged(staging->b.isStaged, "b");
  report.addStaged(staging->output.isStaged, "output");
  return report;
}

absl::Status MatMulStep::bind(std::byte *scratchMemory, std::byte *) {
  scratchMemory = DeviceScratch::align(scratchMemory);
  const MemoryView &output = memory.memory(call.output);
  const Box &outBox = geometry.outBox;
  if (geometry.nothingToSum)
    return finish->bind(output, MemoryView{});
  auto bindFactor = [&](StagedOperand &factor, uint32_t tensor, const Box &box,
                        std::unique_ptr<DeviceWork> &copy) -> absl::Status {
    const MemoryView &view = memory.memory(tensor);
    factor.view.data = factor.isStaged ? scratchMemory + factor.offset : view.address(box);
    if (!factor.isStaged)
      return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<DeviceWork>> made = copyBetween(handles->context, factor.view, view, box);
    if (made.ok())
      copy = *std::move(made);
    return made.status();
  };
  if (absl::Status status = bindFactor(staging->a, call.a, geometry.aBox, copyA); !status.ok())
    return status;
  if (absl::Status status = bindFactor(staging->b, call.b, geometry.bBox, copyB); !status.ok())
    return status;
  StagedOperand &out = staging->output;
  out.view.data = out.isStaged ? scratchMemory + out.offset : output.address(outBox);
  workspace = scratchMemory + workspaceOffset;
  if (absl::Status status = epilogue.bind(memory, call.postOps, outBox, *matrixCall); !status.ok())
    return status;
  return finish ? finish->bind(output, out.view) : absl::OkStatus();
}

absl::Status MatMulStep::pack(DeviceStream &stream) {
  if (geometry.nothingToSum || matrixCall->algorithmCount() == 1)
    return absl::OkStatus();
  return matrixCall->tune(stream, staging->a.view.data, staging->b.view.data, epilogue.addedData(),
                          staging->output.view.data, workspace);
}

absl::Status MatMulStep::issue(DeviceStream &stream) {
  if (geometry.nothingToSum)
    return finish->issue(stream);
  for (const std::unique_ptr<DeviceWork> *copy : {&copyA, &copyB})
    if (*copy)
      if (absl::Status status = (*copy)->issue(stream); !status.ok())
        return status;
  const MemoryView &a = staging->a.view, &b = staging->b.view, &out = staging->output.view;
  int64_t size = elementSize(out.type);
  const std::byte *added = epilogue.addedData();
  absl::Status status = calls.forEach([&](const std::array<int64_t, 4> &at) {
    return matrixCall->issue(stream, a.data + at[0] * size, b.data + at[1] * size,
                             added ? added + at[2] * size : nullptr, out.data + at[3] * size, workspace);
  });
  if (!status.ok())
    return status;
  return finish ? finish->issue(stream) : absl::OkStatus();
}

LibraryCallOr dovetail::runtime::cuda::createMatMul(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory,
                                                    const MatMulCall &call, LibraryCallOptions options,
                                                    int64_t workspace) {
  if (memory.resultBox(call.loops, call.output).empty())
    return nullptr;
  auto step = std::make_unique<MatMulStep>(std::move(handles), memory, call, options, workspace);
  if (absl::Status status = step->prepare(); !status.ok())
    return status;
  return step;
}
