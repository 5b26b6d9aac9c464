//===- ConvolutionPart.cpp - Convolution of whole groups -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionPart.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <tuple>

using namespace dovetail;
using namespace dovetail::runtime;
using dnnl::memory;
using layout::Box;

ConvolutionPart::ConvolutionPart(const RankMemory &context, const ConvolutionCall &call, ConvolutionChannels channels,
                                 WeightUse use, ThreadPool *threads)
    : context(context), call(call), channels(channels), use(use), packOnce(use != WeightUse::Changing),
      threads(threads), algorithm(call.algorithm), spatial(static_cast<int>(call.form.windows.size())) {}

void ConvolutionPart::chooseLayout() {
  // The library is fast when channels are innermost. The order of the others is free, as long as all operands agree:
  // take the one that costs fewer copies.
  std::vector<MemoryFormat> candidates;
  for (uint32_t tensor : {call.output, call.input})
    candidates.push_back(withChannels(context.plan.bufferOf(tensor).format, /*areLast=*/true));
  std::vector<HeldBox> operands = {{context.memory(call.output), geometry.outBox}};
  if (!geometry.nothingToSum)
    operands.push_back({context.memory(call.input), geometry.inBox});
  format = chooseFormat(candidates, operands);
  std::tie(dims, order) = libraryOrder(format);
}

memory::desc ConvolutionPart::weightsDesc() const {
  const MemoryView &view = context.memory(call.weights);
  const Box &box = geometry.weightsBox;
  int64_t groups = channels.groups, outer = box[0].size() / groups, inner = box[1].size();
  memory::dims extents, strides;
  if (groups > 1) {
    extents.push_back(groups);
    strides.push_back(outer * view.strides[0]);
  }
  if (call.form.isTransposed) {
    extents.insert(extents.end(), {inner, outer});
    strides.insert(strides.end(), {view.strides[1], view.strides[0]});
  } else {
    extents.insert(extents.end(), {outer, inner});
    strides.insert(strides.end(), {view.strides[0], view.strides[1]});
  }
  for (int i = 0; i < spatial; ++i) {
    extents.push_back(box[dims[2 + i]].size());
    strides.push_back(view.strides[dims[2 + i]]);
  }
  return memory::desc(extents, types.second, strides);
}

bool ConvolutionPart::canShareWeights(const ConvolutionPart &other) const {
  return packOnce && geometry.weightsBox == other.geometry.weightsBox && channels.groups == other.channels.groups &&
         dims == other.dims && !geometry.nothingToSum && !other.geometry.nothingToSum &&
         (tiles == nullptr) == (other.tiles == nullptr);
}

int64_t ConvolutionPart::packedBytes() const {
  if (tiles)
    return shared ? 0 : tiles->packedBytes();
  if (kernels)
    return shared ? 0 : kernels->packedBytes();
  return packs && packOnce && !shared ? alignedSize(packedDesc.get_size()) : 0;
}

std::string ConvolutionPart::packedKey() const {
  if (packedBytes() == 0)
    return {};
  if (kernels)
    return runtime::packedKey(context, call.weights, geometry.weightsBox, kernels->packedFormat());
  std::string key = runtime::packedKey(context, call.weights, geometry.weightsBox, weightsDesc(),
                                       tiles ? tiles->packedFormat() : packedDesc);
  // Which tiles there are depends on what is innermost.
  return key.empty() || !tiles ? key : absl::StrCat("tiles along ", dims.back(), " ", key);
}

absl::Status ConvolutionPart::bind(std::byte *scratch, std::byte *packed) {
  const MemoryView &output = context.memory(call.output), &input = context.memory(call.input);
  outView.data = stagedOut ? scratch + outOffset : output.address(geometry.outBox);
  if (stagedOut)
    copyOut.bind(output.data, outView.data);
  if (absl::Status status = postOps->bind(outView.data, scratch); !status.ok())
    return status;
  if (geometry.nothingToSum || geometry.fullResult) {
    zeroBegin = outView.data;
    zeroBytes = outView.bytes();
  }
  if (geometry.nothingToSum)
    return absl::OkStatus();

  inView.data = stagedIn ? scratch + inOffset : input.address(geometry.inBox);
  if (stagedIn)
    copyIn.bind(inView.data, input.data);
  if (geometry.readsPaddingOnly && !kernels) {
    zeroBegin = inView.data;
    zeroBytes = inView.bytes();
  }
  if (geometry.fullResult) {
    fullView.data = scratch + fullOffset;
    cut.bind(outView.data, fullView.data);
  }
  std::byte *source = context.memory(call.weights).address(geometry.weightsBox);
  packedData = shared ? shared->packedData : packed;
  if (tiles)
    return tiles->bind(scratch, packedData, inView.data, outView.data, source, postOps->biasData());
  if (kernels) {
    kernels->bind(scratch, packedData, inView.data, outView.data, source, postOps->biasData());
    return absl::OkStatus();
  }
  return guardLibrary([&]() -> absl::Status {
    void *weights = source;
    if (packs) {
      void *target = packOnce ? packedData : scratch + weightsOffset;
      packCall = LibraryCall(packer);
      packCall.setArgument(DNNL_ARG_FROM, weightsDesc(), weights);
      packCall.setArgument(DNNL_ARG_TO, packedDesc, target);
      weights = target;
    }
    mainCall = LibraryCall(primitive);
    mainCall.setArgument(DNNL_ARG_SRC, inDesc, inView.data);
    mainCall.setArgument(DNNL_ARG_WEIGHTS, packedDesc, weights);
    mainCall.setArgument(DNNL_ARG_DST, outDesc, geometry.fullResult ? fullView.data : outView.data);
    if (scratchpadDesc.get_size() > 0)
      mainCall.setArgument(DNNL_ARG_SCRATCHPAD, scratchpadDesc, scratch + scratchpadOffset);
    if (!geometry.fullResult)
      postOps->addArguments(mainCall);
    return absl::OkStatus();
  });
}

absl::Status ConvolutionPart::pack() {
  if (tiles)
    return shared ? absl::OkStatus() : tiles->pack();
  if (kernels) {
    if (!shared)
      kernels->pack();
    return absl::OkStatus();
  }
  return packs && packOnce && !shared ? packCall.run() : absl::OkStatus();
}

absl::Status ConvolutionPart::runLibrary() {
  if (tiles)
    return tiles->run(*postOps);
  return geometry.fullResult ? mainCall.run() : postOps->run(mainCall);
}

absl::Status ConvolutionPart::run() {
  if (absl::Status status = postOps->runBefore(); !status.ok())
    return status;
  if (zeroBytes > 0)
    std::memset(zeroBegin, 0, zeroBytes);
  if (!geometry.nothingToSum) {
    if (packs && !packOnce)
      if (absl::Status status = packCall.run(); !status.ok())
        return status;
    if (stagedIn)
      if (absl::Status status = copyIn.run(); !status.ok())
        return status;
    if (kernels)
      kernels->run();
    else if (absl::Status status = runLibrary(); !status.ok())
      return status;
    if (geometry.fullResult)
      if (absl::Status status = cut.run(); !status.ok())
        return status;
  }
  if (absl::Status status = postOps->runRest(); !status.ok())
    return status;
  return stagedOut ? copyOut.run() : absl::OkStatus();
}
