//===- Convolution.cpp - Convolution steps -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"
#include "LibrarySteps.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

namespace {

class ConvolutionStep : public StepExecutor {
public:
  absl::Status prepare(const RankMemory &context, const ConvolutionCall &call, bool inPrologue);

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
  absl::Status pack() override {
    return forEach([](ConvolutionPart &part) { return part.pack(); });
  }
  absl::Status run() override {
    return forEach([](ConvolutionPart &part) { return part.run(); });
  }

private:
  template <typename Body> absl::Status forEach(Body body) {
    for (const auto &part : parts)
      if (absl::Status status = body(*part); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::vector<std::unique_ptr<ConvolutionPart>> parts;
};

} // namespace

absl::Status ConvolutionStep::prepare(const RankMemory &context, const ConvolutionCall &call, bool inPrologue) {
  const std::vector<int64_t> &input = context.plan.bufferOf(call.input).shape;
  int64_t inGroup = input[1] / call.groups;
  bool partial = context.plan.tensors[call.output].sharding.isPartial();
  for (const ConvolutionChannels &channels : planConvolutionChannels(context, call)) {
    if (!partial && channels.in.size() != inGroup * channels.groups)
      return absl::DataLossError(absl::StrCat("damaged plan: the sum is over ", inGroup * channels.groups,
                                              " channels, but this rank holds ", channels.in.size(), " of ",
                                              context.name(call.input), " with weights for them"));
    parts.push_back(
        std::make_unique<ConvolutionPart>(context, call, channels, !inPrologue && context.isConstant(call.weights)));
    if (absl::Status status = parts.back()->prepare(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

StepExecutorOr dovetail::runtime::createConvolution(const RankMemory &context, const ConvolutionCall &call,
                                                    bool inPrologue) {
  if (context.box(call.output).empty())
    return nullptr;
  auto step = std::make_unique<ConvolutionStep>();
  if (absl::Status status = step->prepare(context, call, inPrologue); !status.ok())
    return status;
  return step;
}
