//===- Convolution.cpp - Convolution steps -------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "LibraryCalls.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

class ConvolutionStep : public DeviceLibraryCall {
public:
  ConvolutionStep(std::shared_ptr<LibraryHandles> handles, const ConvolutionCall &call)
      : handles(std::move(handles)), call(call) {}

  absl::Status prepare(const RankMemory &memory, LibraryCallOptions options, int64_t workspace) {
    return parts.prepare(call, memory.loopBox(call.loops), [&](const ConvolutionChannels &channels) {
      return std::make_unique<ConvolutionPart>(*handles, memory, call, channels, options, workspace);
    });
  }

  absl::Status bind(std::byte *scratch, std::byte *packed) override {
    return parts.forEach([&](ConvolutionPart &part) { return part.bind(scratch, packed); });
  }
  absl::Status pack(DeviceStream &stream) override {
    return parts.forEach([&](ConvolutionPart &part) { return part.pack(stream); });
  }
  absl::Status issue(DeviceStream &stream) override {
    return parts.forEach([&](ConvolutionPart &part) { return part.issue(stream); });
  }
  LibraryCallReport report() const override {
    LibraryCallReport report;
    (void)parts.forEach([&](const ConvolutionPart &part) {
      part.report(report);
      return absl::OkStatus();
    });
    return report;
  }

private:
  std::shared_ptr<LibraryHandles> handles;
  ConvolutionCall call;
  ConvolutionParts<ConvolutionPart> parts;
};

} // namespace

LibraryCallOr dovetail::runtime::cuda::createConvolution(std::shared_ptr<LibraryHandles> handles,
                                                         const RankMemory &memory, const ConvolutionCall &call,
                                                         LibraryCallOptions options, int64_t workspace) {
  if (memory.resultBox(call.loops, call.output).empty())
    return nullptr;
  auto step = std::make_unique<ConvolutionStep>(std::move(handles), call);
  if (absl::Status status = step->prepare(memory, options, workspace); !status.ok())
    return status;
  return step;
}
