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

StepExecutorOr createConvolution(SessionContext &context, const ConvolutionCall &call, bool inPrologue);
StepExecutorOr createMatMul(SessionContext &context, const MatMulCall &call, bool inPrologue);
StepExecutorOr createPool(SessionContext &context, const PoolCall &call);
StepExecutorOr createReorder(SessionContext &context, const ReorderCall &call);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
