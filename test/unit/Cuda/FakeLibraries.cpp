//===- FakeLibraries.cpp - Libraries that know their version alone -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cufft.h>
#include <nccl.h>

extern "C" {
#ifdef FAKE_CUBLASLT
size_t cublasLtGetVersion() { return FAKE_CUBLASLT; }
#endif
#ifdef FAKE_CUDNN
size_t cudnnGetVersion() { return FAKE_CUDNN; }
#endif
#ifdef FAKE_CUFFT
cufftResult cufftGetVersion(int *version) {
  *version = FAKE_CUFFT;
  return CUFFT_SUCCESS;
}
#endif
#ifdef FAKE_NCCL
ncclResult_t ncclGetVersion(int *version) {
  *version = FAKE_NCCL;
  return ncclSuccess;
}
#endif
}
