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

namespace {

class ConvolutionStep : public StepExecutor {
public:
  absl::Status prepare(const RankMemory &context, const ConvolutionCall &call, bool inPrologue);

  int64_t scratchBytes() const override { return parts.scratchBytes(); }
  int64_t packedBytes() const override { return parts.packedBytes(); }
  absl::Status bind(std::byte *scratch) override {
    return parts.forEach([&](ConvolutionPart &part) { return part.bind(scratch); });
  }
  absl::Status pack() override {
    return parts.forEach([](ConvolutionPart &part) { return part.pack(); });
  }
  absl::Status run() override {
    return parts.forEach([](ConvolutionPart &part) { return part.run(); });
  }

private:
  ConvolutionParts<ConvolutionPart> parts;
};

} // namespace

absl::Status ConvolutionStep::prepare(const RankMemory &context, const ConvolutionCall &call, bool inPrologue) {
  bool packOnce = !inPrologue && context.isConstant(call.weights);
  return parts.prepare(context, call, [&](const ConvolutionChannels &channels) {
    return std::make_unique<ConvolutionPart>(context, call, channels, packOnce);
  });
}

StepExecutorOr dovetail::runtime::createConvolution(const RankMemory &context, const ConvolutionCall &call,
                                                    bool inPrologue) {
  if (context.resultBox(call.loops, call.output).empty())
    return nullptr;
  auto step = std::make_unique<ConvolutionStep>();
  if (absl::Status status = step->prepare(context, call, inPrologue); !status.ok())
    return status;
  return step;
}
