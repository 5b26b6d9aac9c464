//===- FakeNccl.h - NCCL for tests -----------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKENCCL_H
#define DOVETAIL_TEST_CUDA_FAKENCCL_H

#include <atomic>

/// What was called in this process.
struct FakeNcclLog {
  std::atomic<int> groups = 0, collectives = 0, splits = 0;
  std::atomic<int> communicators = 0; ///< That are there.
};

/// `fakeNcclLog` in the library.
using FakeNcclLogFunction = FakeNcclLog *();

#endif // DOVETAIL_TEST_CUDA_FAKENCCL_H
