//===- LibraryCalls.cpp - Steps done by libraries ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

/// Waits for the call in `DOVETAIL_CUDA_SYNCHRONOUS` mode, and adds the step to errors.
class NamedCall : public DeviceLibraryCall {
public:
  NamedCall(std::unique_ptr<DeviceLibraryCall> call, std::string name, bool synchronous)
      : call(std::move(call)), name(std::move(name)), synchronous(synchronous) {}

  absl::Status bind(std::byte *scratch, std::byte *packed) override {
    return annotate(call->bind(scratch, packed), name);
  }
  absl::Status pack(DeviceStream &stream) override { return annotate(call->pack(stream), name); }
  absl::Status issue(DeviceStream &stream) override {
    absl::Status status = call->issue(stream);
    if (status.ok() && synchronous)
      status = stream.synchronize();
    return status.ok() ? status : annotate(status, name);
  }
  LibraryCallReport report() const override { return call->report(); }

private:
  std::unique_ptr<DeviceLibraryCall> call;
  std::string name;
  bool synchronous;
};

LibraryCallOr create(const std::shared_ptr<LibraryHandles> &handles, const RankMemory &memory, const StepInfo &step,
                     LibraryCallOptions options) {
  int64_t workspace = step.memory ? step.memory->scratchBytes(memory.rank, /*threads=*/1) : 0;
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return createConvolution(handles, memory, *call, options, workspace);
  if (const auto *call = std::get_if<MatMulCall>(&step.action))
    return createMatMul(handles, memory, *call, options, workspace);
  if (const auto *call = std::get_if<TransformCall>(&step.action))
    return createTransform(handles, memory, *call, workspace);
  return absl::UnimplementedError(absl::StrCat("target 'cuda' has no library for a step of kind ", step.kind(),
                                               "; compile the model with --no-libraries"));
}

} // namespace

LibraryCallOr dovetail::runtime::cuda::createLibraryCall(const std::shared_ptr<LibraryHandles> &handles,
                                                         const RankMemory &memory, const StepInfo &step,
                                                         LibraryCallOptions options) {
  LibraryCallOr call = create(handles, memory, step, options);
  if (!call.ok() || !*call)
    return call;
  return std::make_unique<NamedCall>(*std::move(call),
                                     absl::StrCat("rank ", memory.rank, ", step '", step.title(), "'"),
                                     handles->context->synchronous);
}
