//===- Tuning.h - Finding the fastest way ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the plans and algorithms of libraries are measured.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_TUNING_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_TUNING_H

#include "Context.h"

#include "absl/functional/function_ref.h"

namespace dovetail::runtime::cuda {

/// Plans or algorithms to measure for a call.
inline constexpr size_t tunedWays = 8;

/// Measures `count` ways to do the same, each the same number of times after one run that does not count, and returns
/// the fastest; of equal ones the first. `issue` issues one way once. Those that it fails for are left out. Errors:
/// what is wrong with the first way when all fail, or with the device.
absl::StatusOr<size_t> findFastest(const Context &context, DeviceStream &stream, size_t count,
                                   absl::FunctionRef<absl::Status(size_t)> issue);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_TUNING_H
