//===- OtherVersions.h - Other versions in a process ----------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_API_OTHERVERSIONS_H
#define DOVETAIL_RUNTIME_API_OTHERVERSIONS_H

#include "absl/status/status.h"

namespace dovetail::api {

/// Checks that the process has loaded no other version of this library before this one was used first. Errors:
/// FAILED_PRECONDITION, with both versions and their files.
absl::Status checkOtherVersions();

} // namespace dovetail::api

#endif // DOVETAIL_RUNTIME_API_OTHERVERSIONS_H
