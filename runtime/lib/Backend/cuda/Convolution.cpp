//===- Convolution.cpp - Convolution steps -------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "LibraryCalls.h"
#include "PointwisePart.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

class ConvolutionStep : public DeviceLibraryCall {
public:
  ConvolutionStep(std::shared_ptr<LibraryHandles> handles, const ConvolutionCall &call)
      : handles(std::move(handles)), call(call) {}

  absl::Status prepare(const RankMemory &memory, LibraryCallOptions options, int64_t workspace) {
    for (const ConvolutionChannels &channels : planConvolutionChannels(call, memory.loopBox(call.loops))) {
      absl::StatusOr<std::unique_ptr<PointwisePart>> product =
          PointwisePart::create(*handles, memory, call, channels, options, workspace);
      if (!product.ok())
        return product.status();
      if (*product)
        parts.push_back(*std::move(product));
      else
        parts.push_back(std::make_unique<ConvolutionPart>(*handles, memory, call, channels, options, workspace));
      if (absl::Status status = parts.back()->prepare(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status bind(std::byte *scratch, std::byte *packed) override {
    return forEach([&](ConvolutionWork &part) { return part.bind(scratch, packed); });
  }
  absl::Status pack(DeviceStream &stream) override {
    return forEach([&](ConvolutionWork &part) { return part.pack(stream); });
  }
  absl::Status issue(DeviceStream &stream) override {
    return forEach([&](ConvolutionWork &part) { return part.issue(stream); });
  }
  LibraryCallReport report() const override {
    LibraryCallReport report;
    (void)forEach([&](const ConvolutionWork &part) {
      part.report(report);
      return absl::OkStatus();
    });
    return report;
  }

private:
  template <typename Body> absl::Status forEach(Body body) const {
    for (const std::unique_ptr<ConvolutionWork> &part : parts)
      if (absl::Status status = body(*part); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::shared_ptr<LibraryHandles> handles;
  ConvolutionCall call;
  std::vector<std::unique_ptr<ConvolutionWork>> parts; ///< Done one after another in the same scratch memory.
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
