//===- PlanEnums.h - Enumerations of the plan as the schema's -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what each enumeration of the plan dialect is in an artifact, whatever numbers they have.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_ARTIFACT_PLANENUMS_H
#define DOVETAIL_LIB_ARTIFACT_PLANENUMS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/runtime/plan_generated.h"

namespace dovetail {

artifact::BufferKind toSchema(plan::BufferKind value);
artifact::ExchangeKind toSchema(plan::ExchangeKind value);
artifact::ConvolutionAlgorithm toSchema(plan::ConvolutionAlgorithm value);
artifact::MathMode toSchema(plan::MathMode value);
artifact::Reduction toSchema(ReduceKind value);
artifact::PostOpKind toSchema(PostOpKind value);
/// None: artifacts have no such pools, as no library takes them.
std::optional<artifact::PoolKind> toSchema(PoolKind value);

} // namespace dovetail

#endif // DOVETAIL_LIB_ARTIFACT_PLANENUMS_H
