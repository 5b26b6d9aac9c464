//===- InstructionSets.h - The instruction sets of a machine ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which of the kernels written by hand the machine can run.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_RUNTIME_BACKEND_INSTRUCTIONSETS_H
#define DOVETAIL_TEST_UNIT_RUNTIME_BACKEND_INSTRUCTIONSETS_H

#include "Backend/cpu/Kernels/VectorKernels.h"
#include "dovetail/runtime/HostFeatures.h"

#include <vector>

namespace dovetail::runtime {

struct InstructionSet {
  const char *name;
  const VectorKernels *kernels;
};

inline std::vector<InstructionSet> instructionSets() {
  std::vector<InstructionSet> sets = {{"generic", &genericKernels}};
#ifdef __x86_64__
  if (hostHasFeature("avx2") && hostHasFeature("fma"))
    sets.push_back({"avx2", &avx2Kernels});
  if (hostHasFeature("avx512f") && hostHasFeature("avx512vl"))
    sets.push_back({"avx512", &avx512Kernels});
#endif
  return sets;
}

} // namespace dovetail::runtime

#endif // DOVETAIL_TEST_UNIT_RUNTIME_BACKEND_INSTRUCTIONSETS_H
