//===- KernelConvolution.cpp - Convolution by own kernels ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelConvolution.h"

#include "KernelEpilogue.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

bool KernelConvolution::takes(const MemoryView &view) { return view.strides[1] == 1 || view.box[1].size() == 1; }

bool KernelConvolution::takes(const std::vector<PostOpInfo> &ops) {
  return std::all_of(ops.begin(), ops.end(), [](const PostOpInfo &op) {
    switch (op.kind) {
    case PostOpKind::AddTensor:
    case PostOpKind::Relu:
    case PostOpKind::LeakyRelu:
    case PostOpKind::Clip:
    case PostOpKind::HardSwish:
    case PostOpKind::HardSigmoid:
      return true;
    default:
      return false;
    }
  });
}

KernelConvolution::KernelConvolution(Operands operands, ThreadPool *threads)
    : operands(std::move(operands)), kernels(hostKernels()), threads(threads) {}

std::string KernelConvolution::implementation() const { return absl::StrCat("own ", algorithm(), ", ", kernels.name); }

PostOps::Outcome KernelConvolution::create(const PostOps::Fused &fused, CallBudget &budget, int64_t scratchUse,
                                           bool isShared) {
  std::optional<Epilogue> found = kernelEpilogue(fused);
  if (!found)
    return PostOps::Outcome::Impossible;
  epilogue = *found;
  fusesBias = fused.hasBias;
  auto [packed, scratch] =
      CallBudget::needOf(isShared ? 0 : weightBytes(), threadBytes() * numThreads(), operands.packOnce);
  return budget.allows(packed, scratchUse + scratch) ? PostOps::Outcome::Fast : PostOps::Outcome::Impossible;
}

void KernelConvolution::prepare(ScratchPlan &scratch) {
  if (!operands.packOnce)
    weightsOffset = scratch.add(weightBytes());
  blocksOffset = scratch.add(threadBytes() * numThreads());
}

void KernelConvolution::bind(std::byte *scratch, std::byte *packed, std::byte *input, std::byte *output,
                             const std::byte *weights, const std::byte *bias) {
  auto *result = reinterpret_cast<float *>(output);
  // A tensor that is added lies there before the call.
  epilogue.addend = result;
  epilogue.bias = fusesBias ? reinterpret_cast<const float *>(bias) : nullptr;
  auto *target = reinterpret_cast<float *>(operands.packOnce ? packed : scratch + weightsOffset);
  setAddresses(reinterpret_cast<const float *>(input), result, reinterpret_cast<const float *>(weights), target,
               epilogue);
  blocks = scratch + blocksOffset;
}

void KernelConvolution::divide(void (KernelConvolution::*work)(int64_t part)) {
  if (!threads)
    return (this->*work)(0);
  std::pair arguments(this, work);
  threads->run(
      threads->size(),
      [](void *given, int thread) {
        auto [convolution, own] = *static_cast<decltype(arguments) *>(given);
        (convolution->*own)(thread);
      },
      &arguments);
}

void KernelConvolution::pack() {
  if (operands.packOnce)
    divide(&KernelConvolution::packThread);
}

void KernelConvolution::run() {
  if (!operands.packOnce)
    divide(&KernelConvolution::packThread);
  divide(&KernelConvolution::runThread);
}
