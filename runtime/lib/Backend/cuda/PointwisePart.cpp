//===- PointwisePart.cpp - Convolutions that are products ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointwisePart.h"
#include "Tuning.h"

#include "dovetail/Layout/Arith.h"

#include <algorithm>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

/// More calls than this take longer than copies around one.
static constexpr int64_t mostCalls = 16;

absl::StatusOr<int64_t> PointwisePart::joinedTaps(size_t fused) const {
  if (staging->joined == 1)
    return 1;
  for (size_t i = 0; i < fused; ++i) {
    const PostOpInfo &op = call.postOps[i];
    if (!op.readsTensor())
      continue;
    absl::StatusOr<PostOpOperand> operand = operandOf(memory, op, geometry.outBox);
    if (!operand.ok())
      return operand.status();
    // A matrix that is added lies as the result does. A bias is repeated once.
    if (operand->isFull ? operand->strides.back() != geometry.outBox[1].size()
                        : !memory.isConstant(static_cast<uint32_t>(op.tensor)))
      return 1;
  }
  return staging->joined;
}

absl::StatusOr<bool> PointwisePart::planProduct(size_t fused, const std::vector<int64_t> &taps) {
  const Box &outBox = geometry.outBox;
  const MemoryView &in = staging->input.view, &weights = staging->weights.view, &out = staging->output.view;
  Product planned;
  MatrixProduct product;
  product.type = out.type;
  product.n = joined * outBox[1].size();
  product.k = geometry.inBox[1].size();
  absl::StatusOr<bool> takes = planned.epilogue.plan(memory, call.postOps, fused, outBox, /*columnDim=*/1, product);
  if (!takes.ok() || !*takes)
    return takes;
  const PostOpOperand *added = planned.epilogue.addedOperand();
  if (added && added->strides[1] != 1 && product.n > 1)
    return false;

  const std::vector<int64_t> &addedStrides = added ? added->strides : out.strides;
  for (int dim = 0; dim < outBox.rank(); ++dim) {
    if (dim == 1)
      continue;
    BatchLoop<3> loop{outBox[dim].size(), {in.strides[dim], addedStrides[dim], out.strides[dim]}};
    if (dim >= 2 && call.form.isTransposed) {
      // Element i of the input gives elements i * stride - pad + tap of the result.
      const layout::Window &window = call.form.windows[dim - 2];
      int64_t shift = window.pad - taps[dim - 2];
      int64_t first = layout::ceilDiv(outBox[dim].lo + shift, window.stride),
              end = layout::ceilDiv(outBox[dim].hi + shift, window.stride);
      if (first >= end)
        return true;
      int64_t begin = first * window.stride - shift - outBox[dim].lo;
      planned.in += (first - in.box[dim].lo) * in.strides[dim];
      planned.added += begin * addedStrides[dim];
      planned.out += begin * out.strides[dim];
      planned.weights += taps[dim - 2] * weights.strides[dim];
      loop = {end - first, {loop.strides[0], loop.strides[1] * window.stride, loop.strides[2] * window.stride}};
    }
    planned.calls.add(loop);
  }
  BatchLoop<3> rows = planned.calls.takeInnermost();
  int64_t size = elementSize(product.type);
  auto layoutOf = [&](int operand, int64_t columns, int64_t first, int64_t alignment) {
    alignment = std::gcd(alignment, first * size);
    for (const BatchLoop<3> &loop : planned.calls.get())
      alignment = std::gcd(alignment, loop.strides[operand] * size);
    return MatrixLayout{rows.count == 1 ? columns : rows.strides[operand], 1, alignment};
  };
  product.m = rows.count;
  product.a = layoutOf(0, product.k, planned.in, staging->input.alignment);
  product.b = staging->factor;
  product.b.alignment = std::gcd(product.b.alignment, planned.weights * size);
  product.d = layoutOf(2, product.n, planned.out, staging->output.alignment);
  product.hasC = added != nullptr;
  product.c = product.d;
  if (added)
    product.c = layoutOf(1, product.n, planned.added, std::min(vectorAlignment, added->alignment));
  BatchLoop<3> batch = planned.calls.takeLongest();
  product.batch = batch.count;
  product.batchA = batch.strides[0];
  product.batchC = batch.strides[1];
  product.batchD = batch.strides[2];

  planned.call = std::make_unique<MatrixCall>(handles, product, options.explain ? &log : nullptr);
  absl::StatusOr<bool> found =
      planned.call->choose(memory.plan.math, options.autotune && !options.inPrologue ? tunedWays : 1, allowed);
  if (found.ok() && *found)
    products.push_back(std::move(planned));
  return found;
}

absl::StatusOr<bool> PointwisePart::planProducts(size_t fused) {
  log.fused = fused;
  products.clear();
  absl::StatusOr<int64_t> found = joinedTaps(fused);
  if (!found.ok())
    return found.status();
  joined = *found;
  int64_t count = 1, numCalls = 0;
  for (const layout::Window &window : call.form.windows)
    count *= window.kernel;
  for (int64_t number = 0; number < count; ++number) {
    std::vector<int64_t> taps(call.form.windows.size());
    int64_t rest = number;
    for (size_t dim = taps.size(); dim-- > 0; rest /= call.form.windows[dim].kernel)
      taps[dim] = rest % call.form.windows[dim].kernel;
    if (taps.back() % joined != 0)
      continue;
    size_t before = products.size();
    absl::StatusOr<bool> found = planProduct(fused, taps);
    if (!found.ok() || !*found)
      return found;
    if (products.size() > before)
      numCalls += products.back().calls.countIterations();
    if (numCalls > mostCalls)
      return false;
  }
  return true;
}

absl::StatusOr<bool> PointwisePart::plan(StagingMode mode) {
  log.layout = mode;
  auto planFused = [&](size_t fused) -> absl::StatusOr<std::optional<float>> {
    staging.emplace(memory, call, geometry, packOnce, mode, fused);
    absl::StatusOr<bool> found = planProducts(fused);
    if (!found.ok())
      return found.status();
    return *found ? std::optional(products.front().call->waves()) : std::nullopt;
  };
  absl::StatusOr<std::optional<size_t>> fused = chooseFused(call.postOps.size(), planFused);
  if (!fused.ok())
    return fused.status();
  if (!*fused)
    return false;
  workspaceOffset = staging->scratch.add(allowed.most);
  if (staging->output.isStaged || **fused < call.postOps.size())
    finish = std::make_unique<PostOpWork>(handles.context, memory, call.postOps, **fused, geometry.outBox);
  return true;
}

absl::StatusOr<std::unique_ptr<PointwisePart>> PointwisePart::create(LibraryHandles &handles, const RankMemory &memory,
                                                                     const ConvolutionCall &call,
                                                                     const ConvolutionChannels &channels,
                                                                     LibraryCallOptions options, int64_t workspace) {
  absl::StatusOr<ConvolutionGeometry> geometry = ConvolutionGeometry::plan(memory, call, channels);
  if (!geometry.ok())
    return geometry.status();
  if (!PointwiseStaging::takes(call, *geometry, channels) || !handles.cublasLt().ok())
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

absl::Status PointwisePart::bindBias(std::byte *address) {
  const PostOpInfo &op = call.postOps[*products.front().epilogue.biasNumber()];
  absl::StatusOr<PostOpOperand> operand = operandOf(memory, op, geometry.outBox);
  if (!operand.ok())
    return operand.status();
  MemoryView source =
      MemoryView::rowMajor(memory.memory(call.output).type, operand->box, const_cast<std::byte *>(operand->address));
  for (int64_t tap = 0; tap < joined; ++tap) {
    MemoryView target = source;
    target.data = address + tap * source.bytes();
    absl::StatusOr<std::unique_ptr<DeviceWork>> copy = copyBetween(handles.context, target, source, operand->box);
    if (!copy.ok())
      return copy.status();
    biasCopies.push_back(*std::move(copy));
  }
  return absl::OkStatus();
}

absl::Status PointwisePart::bind(std::byte *scratchMemory, std::byte *&packed) {
  scratchMemory = DeviceScratch::align(scratchMemory);
  std::byte *packedMemory = packed;
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
  std::byte *bias = nullptr;
  if (joined > 1 && products.front().epilogue.biasNumber()) {
    bias = packedMemory + staging->biasOffset;
    if (absl::Status status = bindBias(bias); !status.ok())
      return status;
  }
  for (Product &product : products)
    if (absl::Status status = product.epilogue.bind(memory, call.postOps, geometry.outBox, *product.call, bias);
        !status.ok())
      return status;
  return finish ? finish->bind(outView, out.view) : absl::OkStatus();
}

absl::Status PointwisePart::pack(DeviceStream &stream) {
  if (packOnce && copyWeights)
    if (absl::Status status = copyWeights->issue(stream); !status.ok())
      return status;
  for (const std::unique_ptr<DeviceWork> &copy : biasCopies)
    if (absl::Status status = copy->issue(stream); !status.ok())
      return status;
  for (Product &product : products)
    if (product.call->algorithmCount() > 1)
      if (absl::Status status = forOperands(product, {},
                                            [&](const void *a, const void *b, const void *c, void *d) {
                                              return product.call->tune(stream, a, b, c, d, workspace);
                                            });
          !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status PointwisePart::issue(DeviceStream &stream) {
  if (copyWeights && !packOnce)
    if (absl::Status status = copyWeights->issue(stream); !status.ok())
      return status;
  if (copyIn)
    if (absl::Status status = copyIn->issue(stream); !status.ok())
      return status;
  auto multiply = [&](const Product &product, const std::array<int64_t, 3> &at) {
    return forOperands(product, at, [&](const void *a, const void *b, const void *c, void *d) {
      return product.call->issue(stream, a, b, c, d, workspace);
    });
  };
  for (const Product &product : products)
    if (absl::Status status =
            product.calls.forEach([&](const std::array<int64_t, 3> &at) { return multiply(product, at); });
        !status.ok())
      return status;
  return finish ? finish->issue(stream) : absl::OkStatus();
}

void PointwisePart::report(LibraryCallReport &report) const {
  report.postOps = static_cast<int64_t>(call.postOps.size());
  for (const Product &product : products)
    addImplementation(report, product.call->implementation());
  log.addTo(report);
  report.addStaged(staging->input.isStaged, "input");
  report.addStaged(staging->weights.isStaged, packOnce ? "weights, once" : "weights");
  report.addStaged(staging->output.isStaged, "output");
}
