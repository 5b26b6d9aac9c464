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

#include "dovetail/runtime/CallReport.h"

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include <vector>

namespace dovetail::runtime::cuda {

/// Plans or algorithms to measure for a call: of the form that is best without measuring, and of each other form.
inline constexpr size_t tunedWays = 8, tunedWaysOfOthers = 2;

/// The best of several ways to do the same.
struct FastestWay {
  size_t number;
  std::vector<absl::StatusOr<double>> milliseconds; ///< Of one run of each way, or the error that it ended with.
};

/// Measures `count` ways to do the same, each the same number of times after one run that does not count, with cold
/// caches as far as there is memory to overwrite them, and returns the one with the least median; of equal ones the
/// first. `issue` issues one way once. Those that it fails for are left out. Errors: what is wrong with the first way
/// when all fail, or with the device.
absl::StatusOr<FastestWay> findFastest(const Context &context, DeviceStream &stream, size_t count,
                                       absl::FunctionRef<absl::Status(size_t)> issue);

/// Writes down what was measured; `candidates` has the candidate of each way.
void noteTimes(const FastestWay &fastest, absl::Span<CallCandidate *const> candidates);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_TUNING_H
