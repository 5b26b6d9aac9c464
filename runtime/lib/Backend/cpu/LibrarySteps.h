//===- LibrarySteps.h - Steps done by oneDNN -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H

#include "../../Session/StepExecutor.h"

namespace dovetail::runtime {

/// A library step of any kind. Null when the rank has nothing to do. `inPrologue`: the step runs once, so nothing is
/// packed for it.
StepExecutorOr createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue);

StepExecutorOr createConvolution(const RankMemory &context, const ConvolutionCall &call, bool inPrologue);
StepExecutorOr createMatMul(const RankMemory &context, const MatMulCall &call, bool inPrologue);
StepExecutorOr createPool(const RankMemory &context, const PoolCall &call);
StepExecutorOr createReorder(const RankMemory &context, const ReorderCall &call);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
