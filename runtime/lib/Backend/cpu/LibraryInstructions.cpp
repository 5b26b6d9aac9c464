//===- LibraryInstructions.cpp - What oneDNN may use ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryInstructions.h"

#include "dovetail/runtime/HostFeatures.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <cstdlib>

using namespace dovetail::runtime;

namespace {

/// Instruction sets as oneDNN's variable names them, from the least on.
struct InstructionSet {
  CpuLevel level; ///< Of which it is all that oneDNN knows, or `V1`.
  const char *name;
  dnnl::cpu_isa value;
};
constexpr InstructionSet instructionSets[] = {{CpuLevel::V2, "SSE41", dnnl::cpu_isa::sse41},
                                              {CpuLevel::V1, "AVX", dnnl::cpu_isa::avx},
                                              {CpuLevel::V3, "AVX2", dnnl::cpu_isa::avx2},
                                              {CpuLevel::V4, "AVX512_CORE", dnnl::cpu_isa::avx512_core}};

/// Whether the user has chosen one of the sets before `set`.
bool isLowered(const InstructionSet &set) {
  const char *value = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!value || !*value)
    value = std::getenv("DNNL_MAX_CPU_ISA");
  for (const InstructionSet *lower = instructionSets; value && lower != &set; ++lower)
    if (absl::EqualsIgnoreCase(value, lower->name))
      return true;
  return false;
}

/// Whether all instructions of the first set are in the second one: each is a mask.
bool isWithin(dnnl::cpu_isa first, dnnl::cpu_isa second) {
  return (static_cast<unsigned>(first) & ~static_cast<unsigned>(second)) == 0;
}

absl::Status limitOnce() {
  absl::StatusOr<CpuLevel> level = maxCpuLevel();
  if (!level.ok())
    return level.status();
  for (const InstructionSet &set : instructionSets) {
    if (set.level != *level)
      continue;
    // oneDNN rejects that where it was used before; perhaps it has the same limit then.
    if (!isLowered(set))
      dnnl::set_max_cpu_isa(set.value);
    if (!isWithin(dnnl::get_effective_cpu_isa(), set.value))
      return absl::FailedPreconditionError(absl::StrCat(
          "DOVETAIL_MAX_CPU=", cpuLevelName(*level),
          " cannot limit oneDNN, which this process used before; set ONEDNN_MAX_CPU_ISA=", set.name, ", too"));
  }
  return absl::OkStatus();
}

} // namespace

absl::Status dovetail::runtime::limitLibrary() {
  static const auto *status = new absl::Status(limitOnce());
  return *status;
}

dnnl::cpu_isa dovetail::runtime::libraryInstructions() {
  // Where that fails, sessions say so.
  limitLibrary().IgnoreError();
  return dnnl::get_effective_cpu_isa();
}
