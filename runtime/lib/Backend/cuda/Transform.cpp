//===- Transform.cpp - Fourier transform steps ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"
#include "Staging.h"

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

class TransformStep : public DeviceLibraryCall {
public:
  TransformStep(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory, const TransformCall &call,
                TransformStaging staging, int64_t workspace)
      : handles(std::move(handles)), memory(memory), call(call), allowed{workspace}, staging(std::move(staging)) {}
  ~TransformStep() override;

  absl::Status prepare();
  absl::Status bind(std::byte *scratchMemory, std::byte *packed) override;
  absl::Status issue(DeviceStream &stream) override;

private:
  bool isWide() const { return staging.output.view.type == ElementType::F64; }
  /// Makes a plan for so many lines. False if it needs more workspace than is allowed.
  absl::StatusOr<bool> makePlan(int64_t lines, std::optional<cufftHandle> &plan);
  void destroy(std::optional<cufftHandle> &handle);
  /// Makes `handle` a plan for so many lines, and returns the workspace that it needs, in bytes.
  absl::StatusOr<int64_t> describe(int64_t lines, cufftHandle handle) const;
  absl::Status issueBatch(DeviceStream &stream, std::byte *input, std::byte *output) const;
  absl::Status execute(cufftHandle handle, std::byte *input, std::byte *output) const;

  std::shared_ptr<LibraryHandles> handles;
  const RankMemory &memory;
  TransformCall call;
  Workspace allowed;
  TransformStaging staging;
  const CufftApi *api = nullptr;
  int64_t lines = 0;                     ///< Of a batch that are transformed at once.
  std::optional<cufftHandle> plan, rest; ///< For these, and for those that are left of a batch.
  int64_t workspaceOffset = 0;
  std::unique_ptr<DeviceWork> copyIn, copyOut;
};

} // namespace

TransformStep::~TransformStep() {
  destroy(plan);
  destroy(rest);
}

void TransformStep::destroy(std::optional<cufftHandle> &handle) {
  if (!handle)
    return;
  DeviceScope scope(*handles->context);
  api->cufftDestroy(*handle);
  handle.reset();
}

absl::StatusOr<bool> TransformStep::makePlan(int64_t count, std::optional<cufftHandle> &made) {
  destroy(made);
  DeviceScope scope(*handles->context);
  cufftHandle handle;
  if (absl::Status status = api->check(api->cufftCreate(&handle), "cufftCreate"); !status.ok())
    return status;
  made = handle;
  absl::StatusOr<int64_t> bytes = describe(count, handle);
  if (!bytes.ok())
    return bytes.status();
  if (*bytes <= allowed.most)
    return true;
  allowed.refuse(*bytes);
  return false;
}

absl::StatusOr<int64_t> TransformStep::describe(int64_t count, cufftHandle handle) const {
  // Work areas belong to the step's memory.
  if (absl::Status status = api->check(api->cufftSetAutoAllocation(handle, 0), "cufftSetAutoAllocation"); !status.ok())
    return status;
  const calls::TransformForm &form = call.form;
  cufftType type = form.readsReal    ? isWide() ? CUFFT_D2Z : CUFFT_R2C
                   : form.writesReal ? isWide() ? CUFFT_Z2D : CUFFT_C2R
                   : isWide()        ? CUFFT_Z2Z
                                     : CUFFT_C2C;
  // Distances count numbers, which have two elements where they are complex. Lines of one point have any but none.
  auto distance = [](int64_t elements, bool isReal) { return std::max<int64_t>(isReal ? elements : elements / 2, 1); };
  // Of a single dimension, the library only asks that there are such extents.
  long long length = form.length, inExtent = staging.inBox[static_cast<int>(form.axis)].size(),
            outExtent = staging.outBox[static_cast<int>(form.axis)].size();
  size_t bytes = 0;
  cufftResult result = api->cufftMakePlanMany64(
      handle, 1, &length, &inExtent, distance(staging.inputPoint, form.readsReal),
      distance(staging.batch.strides[0], form.readsReal), &outExtent, distance(staging.outputPoint, form.writesReal),
      distance(staging.batch.strides[1], form.writesReal), type, count, &bytes);
  if (absl::Status status = api->check(result, "cufftMakePlanMany64"); !status.ok())
    return status;
  return static_cast<int64_t>(bytes);
}

absl::Status TransformStep::prepare() {
  absl::StatusOr<const CufftApi *> opened = handles->cufft();
  if (!opened.ok())
    return opened.status();
  api = *opened;
  workspaceOffset = staging.scratch.add(allowed.most);
  const BatchLoop<2> &batch = staging.batch;
  // Real numbers of each call begin at an address of complex ones.
  int64_t unit = batch.strides[0] % 2 != 0 || batch.strides[1] % 2 != 0 ? 2 : 1;
  for (lines = batch.count;; lines = (lines / 2 + unit - 1) / unit * unit) {
    absl::StatusOr<bool> fits = makePlan(lines, plan);
    if (fits.ok() && *fits && batch.count % lines != 0)
      fits = makePlan(batch.count % lines, rest);
    if (!fits.ok())
      return fits.status();
    if (*fits)
      return absl::OkStatus();
    if (lines <= unit)
      break;
  }
  return allowed.tooSmall(absl::StrCat("cuFFT ", api->version, " on ", handles->context->label()));
}

absl::Status TransformStep::bind(std::byte *scratchMemory, std::byte *) {
  scratchMemory = DeviceScratch::align(scratchMemory);
  const MemoryView &input = memory.memory(call.input), &output = memory.memory(call.output);
  StagedOperand &in = staging.input, &out = staging.output;
  in.view.data = in.isStaged ? scratchMemory + in.offset : input.address(staging.inBox);
  out.view.data = out.isStaged ? scratchMemory + out.offset : output.address(staging.outBox);
  auto copy = [&](const MemoryView &target, const MemoryView &source, const layout::Box &box,
                  std::unique_ptr<DeviceWork> &work) {
    absl::StatusOr<std::unique_ptr<DeviceWork>> made = copyBetween(handles->context, target, source, box);
    if (made.ok())
      work = *std::move(made);
    return made.status();
  };
  if (in.isStaged)
    if (absl::Status status = copy(in.view, input, staging.inBox, copyIn); !status.ok())
      return status;
  if (out.isStaged)
    if (absl::Status status = copy(output, out.view, staging.outBox, copyOut); !status.ok())
      return status;
  DeviceScope scope(*handles->context);
  for (const std::optional<cufftHandle> *handle : {&plan, &rest})
    if (*handle)
      if (absl::Status status =
              api->check(api->cufftSetWorkArea(**handle, scratchMemory + workspaceOffset), "cufftSetWorkArea");
          !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status TransformStep::execute(cufftHandle handle, std::byte *input, std::byte *output) const {
  auto run = [&]<typename Real, typename Complex>(cufftResult (*fromReal)(cufftHandle, Real *, Complex *),
                                                  cufftResult (*toReal)(cufftHandle, Complex *, Real *),
                                                  cufftResult (*complex)(cufftHandle, Complex *, Complex *, int),
                                                  std::array<const char *, 3> names) {
    if (call.form.readsReal)
      return api->check(fromReal(handle, reinterpret_cast<Real *>(input), reinterpret_cast<Complex *>(output)),
                        names[0]);
    if (call.form.writesReal)
      return api->check(toReal(handle, reinterpret_cast<Complex *>(input), reinterpret_cast<Real *>(output)), names[1]);
    return api->check(complex(handle, reinterpret_cast<Complex *>(input), reinterpret_cast<Complex *>(output),
                              call.isInverse ? CUFFT_INVERSE : CUFFT_FORWARD),
                      names[2]);
  };
  return isWide() ? run(api->cufftExecD2Z, api->cufftExecZ2D, api->cufftExecZ2Z,
                        {"cufftExecD2Z", "cufftExecZ2D", "cufftExecZ2Z"})
                  : run(api->cufftExecR2C, api->cufftExecC2R, api->cufftExecC2C,
                        {"cufftExecR2C", "cufftExecC2R", "cufftExecC2C"});
}

absl::Status TransformStep::issueBatch(DeviceStream &stream, std::byte *input, std::byte *output) const {
  DeviceScope scope(*handles->context);
  const BatchLoop<2> &batch = staging.batch;
  int64_t size = elementSize(staging.output.view.type);
  for (int64_t first = 0; first < batch.count; first += lines) {
    cufftHandle handle = first + lines <= batch.count ? *plan : *rest;
    absl::Status status =
        api->check(api->cufftSetStream(handle, reinterpret_cast<cudaStream_t>(handleOf(stream))), "cufftSetStream");
    if (status.ok())
      status = execute(handle, input + first * batch.strides[0] * size, output + first * batch.strides[1] * size);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status TransformStep::issue(DeviceStream &stream) {
  if (copyIn)
    if (absl::Status status = copyIn->issue(stream); !status.ok())
      return status;
  int64_t size = elementSize(staging.output.view.type);
  absl::Status status = staging.calls.forEach([&](const std::array<int64_t, 2> &at) {
    return issueBatch(stream, staging.input.view.data + at[0] * size, staging.output.view.data + at[1] * size);
  });
  if (!status.ok())
    return status;
  return copyOut ? copyOut->issue(stream) : absl::OkStatus();
}

LibraryCallOr dovetail::runtime::cuda::createTransform(std::shared_ptr<LibraryHandles> handles,
                                                       const RankMemory &memory, const TransformCall &call,
                                                       int64_t workspace) {
  if (memory.resultBox(call.loops, call.output).empty())
    return nullptr;
  absl::StatusOr<TransformStaging> staging = TransformStaging::plan(memory, call);
  if (!staging.ok())
    return staging.status();
  auto step = std::make_unique<TransformStep>(std::move(handles), memory, call, *std::move(staging), workspace);
  if (absl::Status status = step->prepare(); !status.ok())
    return status;
  return step;
}
