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

class ConvolutionStep : public LibraryStep {
public:
  ConvolutionStep(const RankMemory &context, const ConvolutionCall &call, const layout::Box &loops, WeightUse use,
                  ThreadPool *threads)
      : context(context), call(call), loops(loops), use(use), threads(threads) {}

  absl::Status plan() override;
  int64_t stagingBytes() const override { return parts.scratchBytes(); }
  absl::Status create(CallBudget &budget) override;
  bool isSlow() const override;
  bool sharesWeights(LibraryStep &first) override;
  int64_t packedUse() const override;
  std::string packedKey() const override;
  std::string implementation() const override { return parts.size() > 0 ? parts[0].implementation() : std::string(); }
  bool isReference() const override;
  void setPackedMemory(std::byte *memory) override { packed = memory; }
  absl::Status bind(std::byte *scratch) override;
  absl::Status pack() override {
    return parts.forEach([](ConvolutionPart &part) { return part.pack(); });
  }
  absl::Status run() override {
    return parts.forEach([](ConvolutionPart &part) { return part.run(); });
  }

private:
  const RankMemory &context;
  const ConvolutionCall &call;
  layout::Box loops;
  WeightUse use;
  ThreadPool *threads;
  std::byte *packed = nullptr;
  ConvolutionParts<ConvolutionPart> parts;
};

} // namespace

absl::Status ConvolutionStep::plan() {
  return parts.prepare(call, loops, [&](const ConvolutionChannels &channels) {
    return std::make_unique<ConvolutionPart>(context, call, channels, use, threads);
  });
}

absl::Status ConvolutionStep::create(CallBudget &budget) {
  return parts.forEach([&](ConvolutionPart &part) {
    absl::Status status = part.create(budget);
    if (status.ok()) {
      budget.keep(part.packedBytes());
      budget.takeScratch(part.scratchUse());
    }
    return status;
  });
}

bool ConvolutionStep::isSlow() const {
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].isSlow())
      return true;
  return false;
}

bool ConvolutionStep::isReference() const {
  for (size_t i = 0; i < parts.size(); ++i)
    if (runtime::isReference(parts[i].implementation().c_str()))
      return true;
  return false;
}

bool ConvolutionStep::sharesWeights(LibraryStep &first) {
  auto &other = static_cast<ConvolutionStep &>(first);
  bool shares = parts.size() == other.parts.size();
  for (size_t i = 0; shares && i < parts.size(); ++i)
    shares = parts[i].canShareWeights(other.parts[i]);
  for (size_t i = 0; shares && i < parts.size(); ++i)
    parts[i].shareWeights(other.parts[i]);
  return shares;
}

int64_t ConvolutionStep::packedUse() const {
  int64_t bytes = 0;
  (void)parts.forEach([&](const ConvolutionPart &part) {
    bytes += part.packedBytes();
    return absl::OkStatus();
  });
  return bytes;
}

std::string ConvolutionStep::packedKey() const {
  std::string keys;
  absl::Status status = parts.forEach([&](const ConvolutionPart &part) {
    std::string key = part.packedKey();
    keys += key;
    return part.packedBytes() > 0 && key.empty() ? absl::UnknownError("not shared") : absl::OkStatus();
  });
  return status.ok() ? keys : std::string();
}

absl::Status ConvolutionStep::bind(std::byte *scratch) {
  return parts.forEach([&](ConvolutionPart &part) {
    absl::Status status = part.bind(scratch, packed);
    packed += part.packedBytes();
    return status;
  });
}

std::unique_ptr<LibraryStep> dovetail::runtime::makeConvolution(const RankMemory &context, const ConvolutionCall &call,
                                                                const layout::Box &loops, WeightUse use,
                                                                ThreadPool *threads) {
  return std::make_unique<ConvolutionStep>(context, call, loops, use, threads);
}
