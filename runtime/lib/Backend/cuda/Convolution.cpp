//===- Convolution.cpp - Convolution steps ------------------------------- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "LibraryCalls.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

class ConvolutionStep : public DeviceLibraryCall {
public:
  ConvolutionStep(std::shared_ptr<LibraryHandles> handles, const ConvolutionCall &call)
      : handles(std::move(handles)), call(call) {}

  absl::Status prepare(const RankMemory &memory, LibraryCallOptions options) {
    int64_t inGroup = memory.plan.bufferOf(call.input).shape[1] / call.groups;
    bool partial = memory.plan.tensors[call.output].sharding.isPartial();
    for (const ConvolutionChannels &channels : planConvolutionChannels(memory, call)) {
      if (!partial && channels.in.size() != inGroup * channels.groups)
        return absl::DataLossError(absl::StrCat("damaged plan: the sum is over ", inGroup * channels.groups,
                                                " channels, but this rank holds ", channels.in.size(), " of ",
                                                memory.name(call.input), " with weights for them"));
      parts.push_back(std::make_unique<ConvolutionPart>(*handles, memory, call, channels, options));
      if (absl::Status status = parts.back()->prepare(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  int64_t scratchBytes() const override {
    int64_t bytes = 0;
    for (const auto &part : parts)
      bytes = std::max(bytes, part->scratchBytes());
    return bytes;
  }
  int64_t packedBytes() const override {
    int64_t bytes = 0;
    for (const auto &part : parts)
      bytes += part->packedBytes();
    return bytes;
  }
  absl::Status bind(std::byte *scratch) override {
    return forEach([&](ConvolutionPart &part) { return part.bind(scratch); });
  }
  absl::Status pack(DeviceStream &stream) override {
    return forEach([&](ConvolutionPart &part) { return part.pack(stream); });
  }
  absl::Status issue(DeviceStream &stream) override {
    return forEach([&](ConvolutionPart &part) { return part.issue(stream); });
  }

private:
  template <typename Body> absl::Status forEach(Body body) {
    for (const auto &part : parts)
      if (absl::Status status = body(*part); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::shared_ptr<LibraryHandles> handles;
  ConvolutionCall call;
  std::vector<std::unique_ptr<ConvolutionPart>> parts;
};

} // namespace

LibraryCallOr dovetail::runtime::cuda::createConvolution(std::shared_ptr<LibraryHandles> handles,
                                                         const RankMemory &memory, const ConvolutionCall &call,
                                                         LibraryCallOptions options) {
  if (memory.box(call.output).empty())
    return nullptr;
  auto step = std::make_unique<ConvolutionStep>(std::move(handles), call);
  if (absl::Status status = step->prepare(memory, options); !status.ok())
    return status;
  return step;
}
