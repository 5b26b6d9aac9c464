//===- HostFeatures.h - What this machine's CPU can do ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what compiler and runtime ask of the CPU at hand. Nothing else asks it.
//
// The environment variable DOVETAIL_MAX_CPU limits the answers to a level of x86-64: the process then behaves as on a
// CPU of that level, so that one machine can test what others do.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_HOSTFEATURES_H
#define DOVETAIL_RUNTIME_HOSTFEATURES_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>

namespace dovetail::runtime {

/// Levels of x86-64, as the System V ABI defines them: each has the features of those before it. V4 has AVX-512 without
/// VNNI, bf16 and AMX. `Unlimited` has all features.
enum class CpuLevel { V1 = 1, V2, V3, V4, Unlimited };

/// The level named `x86-64-v2`, `x86-64-v3` or `x86-64-v4`; an empty name is `Unlimited`. Errors: INVALID_ARGUMENT.
absl::StatusOr<CpuLevel> parseCpuLevel(absl::string_view name);

/// The name of a level, such as `x86-64-v3`; `native` for `Unlimited`.
std::string cpuLevelName(CpuLevel level);

/// Whether CPUs of `level` have the feature with the given LLVM name.
bool levelHasFeature(CpuLevel level, absl::string_view name);

/// The level that DOVETAIL_MAX_CPU limits this process to; `Unlimited` if the variable is unset or empty. The variable
/// is read once. Errors: INVALID_ARGUMENT, which names the variable.
absl::StatusOr<CpuLevel> maxCpuLevel();

/// Whether this machine has the CPU feature with the given LLVM name, such as `avx512f`, and DOVETAIL_MAX_CPU allows
/// it. Features that cannot be detected count as missing. If the variable is wrong, features beyond V1 count as
/// missing.
bool hostHasFeature(const std::string &name);

/// The CPUs that Dovetail runs on, whatever programs are compiled for: those of level V2 and above. Errors:
/// FAILED_PRECONDITION, naming what this machine's CPU lacks.
absl::Status checkBaseline();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_HOSTFEATURES_H
