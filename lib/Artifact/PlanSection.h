//===- PlanSection.h - The plan section of an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a plan.program becomes a FlatBuffer.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_ARTIFACT_PLANSECTION_H
#define DOVETAIL_LIB_ARTIFACT_PLANSECTION_H

#include "Weights.h"

#include "dovetail/Artifact/Writer.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "flatbuffers/flatbuffers.h"

namespace dovetail {

/// Parts that a plan may have or not.
struct PlanContents {
  /// Without code, kernels for devices need not say how they are launched.
  bool hasCode = true;
  /// Whether steps have what users call them.
  bool hasSourceNames = true;
};

/// Finishes `buffer` with the plan of `program`, and adds its constants to `weights`. Fails after an error.
llvm::LogicalResult buildPlan(plan::ProgramOp program, const ProgramCode &code, WeightsBuilder &weights,
                              flatbuffers::FlatBufferBuilder &buffer, PlanContents contents);

} // namespace dovetail

#endif // DOVETAIL_LIB_ARTIFACT_PLANSECTION_H
