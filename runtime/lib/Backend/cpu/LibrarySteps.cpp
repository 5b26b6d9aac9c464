//===- LibrarySteps.cpp - Steps done by oneDNN -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibrarySteps.h"

using namespace dovetail::runtime;

StepExecutorOr dovetail::runtime::createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue) {
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action))
    return createConvolution(context, *call, inPrologue);
  if (const auto *call = std::get_if<MatMulCall>(&step.action))
    return createMatMul(context, *call, inPrologue);
  if (const auto *call = std::get_if<PoolCall>(&step.action))
    return createPool(context, *call);
  return createReorder(context, std::get<ReorderCall>(step.action));
}
