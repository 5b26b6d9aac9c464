//===- PlanEnums.h - Enumerations of the schema as the runtime's -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what each enumeration of a plan's schema is in the runtime, whatever numbers they have.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_PLANENUMS_H
#define DOVETAIL_RUNTIME_PROGRAM_PLANENUMS_H

#include "dovetail/runtime/Plan.h"
#include "dovetail/runtime/plan_generated.h"

#include <optional>

namespace dovetail::runtime {

/// None: the schema has no such value, so that the plan is damaged.
std::optional<ElementType> fromSchema(artifact::ElementType value);
std::optional<layout::ReductionKind> fromSchema(artifact::Reduction value);
std::optional<BufferKind> fromSchema(artifact::BufferKind value);
std::optional<PostOpKind> fromSchema(artifact::PostOpKind value);
std::optional<PoolKind> fromSchema(artifact::PoolKind value);
std::optional<layout::ExchangeKind> fromSchema(artifact::ExchangeKind value);
std::optional<MathMode> fromSchema(artifact::MathMode value);
std::optional<ConvolutionAlgorithm> fromSchema(artifact::ConvolutionAlgorithm value);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_PLANENUMS_H
