//===- PlanValidator.h - How parts of a plan must fit -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_PLANVALIDATOR_H
#define DOVETAIL_RUNTIME_PROGRAM_PLANVALIDATOR_H

#include "dovetail/runtime/Plan.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace dovetail::runtime {

template <typename... Args> absl::Status damaged(const Args &...args) {
  return absl::DataLossError(absl::StrCat("damaged plan: ", args...));
}

/// Checks a plan whose indices, shapes and shardings are valid by themselves: tensors lie inside of their buffers,
/// exchanges can be planned, library calls have operands that fit, nothing is read before it is written. Errors:
/// DATA_LOSS.
absl::Status validatePlan(const Plan &plan);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_PLANVALIDATOR_H
