//===- ExitCode.cpp - Numbers of errors -----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ExitCode.h"

#include "dovetail/dovetail.h"

using namespace dovetail;

int runtime::exitCodeOf(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kOk:
    return DOVETAIL_OK;
  case absl::StatusCode::kInvalidArgument:
    return DOVETAIL_ERROR_USAGE;
  case absl::StatusCode::kNotFound:
  case absl::StatusCode::kPermissionDenied:
  case absl::StatusCode::kAlreadyExists:
  case absl::StatusCode::kOutOfRange: // A file with other contents than its name says.
    return DOVETAIL_ERROR_FILE;
  case absl::StatusCode::kUnimplemented:
    return DOVETAIL_ERROR_UNSUPPORTED;
  case absl::StatusCode::kResourceExhausted:
    return DOVETAIL_ERROR_DOES_NOT_FIT;
  case absl::StatusCode::kFailedPrecondition:
  case absl::StatusCode::kDataLoss:
    return DOVETAIL_ERROR_ARTIFACT;
  case absl::StatusCode::kDeadlineExceeded:
  case absl::StatusCode::kAborted:
  case absl::StatusCode::kUnavailable:
  case absl::StatusCode::kCancelled:
    return DOVETAIL_ERROR_DEVICE;
  default:
    return DOVETAIL_ERROR_INTERNAL;
  }
}
