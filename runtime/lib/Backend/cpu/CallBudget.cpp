//===- CallBudget.cpp - Memory that a library call may take -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallBudget.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;

bool CallBudget::allows(int64_t packedNeed, int64_t scratchNeed) {
  if (packedNeed <= packed && scratchNeed <= scratch)
    return true;
  if (!refused)
    refused = {packedNeed, scratchNeed};
  return false;
}

absl::Status CallBudget::explain(const absl::Status &status) const {
  if (status.ok() || !refused)
    return status;
  return absl::ResourceExhaustedError(
      absl::StrCat("oneDNN on this machine needs ", refused->first, " bytes for packed weights and ", refused->second,
                   " bytes of scratch memory, but the plan allows ", packed, " and ", scratch,
                   "; compile the model with --no-libraries, which uses generated kernels instead"));
}
