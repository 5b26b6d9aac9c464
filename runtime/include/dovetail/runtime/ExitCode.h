//===- ExitCode.h - Numbers of errors ---------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the number of an error, which the C interface returns and the tools exit with.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_EXITCODE_H
#define DOVETAIL_RUNTIME_EXITCODE_H

#include "absl/status/status.h"

namespace dovetail::runtime {

/// The documented exit code for a result of the runtime: a value of `dovetail_status`.
int exitCodeOf(const absl::Status &status);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_EXITCODE_H
