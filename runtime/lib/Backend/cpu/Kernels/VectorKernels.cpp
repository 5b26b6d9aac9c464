//===- VectorKernels.cpp - Kernels written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the kernels for the machine at hand.
//
//===----------------------------------------------------------------------===//

#include "VectorKernels.h"

#include "dovetail/runtime/HostFeatures.h"

using namespace dovetail::runtime;

static const VectorKernels &chooseKernels() {
#ifdef __x86_64__
  if (hostHasFeature("avx512f") && hostHasFeature("avx512vl"))
    return avx512Kernels;
  if (hostHasFeature("avx2") && hostHasFeature("fma"))
    return avx2Kernels;
#endif
  return genericKernels;
}

const VectorKernels &dovetail::runtime::hostKernels() {
  static const VectorKernels &kernels = chooseKernels();
  return kernels;
}
