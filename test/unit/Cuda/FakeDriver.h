//===- FakeDriver.h - A CUDA driver for tests -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what tests see of the fake driver, and how they make it fail.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKEDRIVER_H
#define DOVETAIL_TEST_CUDA_FAKEDRIVER_H

#include <atomic>
#include <cstdint>
#include <cuda.h>
#include <string>

struct FakeDriverLog {
  std::atomic<int> launches = 0, copies = 0, allocations = 0, fills = 0;
  std::string lastImage;                                       ///< The beginning of the code that was loaded last.
  unsigned lastShared = 0;                                     ///< Of the last launch: dynamic shared memory,
  int64_t lastParameters[8] = {};                              ///< and parameters.
  int postOpWidth = 0;                                         ///< Elements of a vector of the last post-ops.
  int parameters = 0;                                          ///< How many parameters kernels of tests have.
  float clock = 0;                                             ///< What events record, in milliseconds.
  std::atomic<int> graphs = 0;                                 ///< Executable ones that are there.
  float launchTime = 0;                                        ///< By this, a launch advances the clock.
  int owner = 0;                                               ///< The device whose memory all memory is.
  CUresult failure = CUDA_SUCCESS, lateFailure = CUDA_SUCCESS; ///< Of launches; of waiting for them.
};

/// `fakeDriverLog` in the library.
using FakeDriverLogFunction = FakeDriverLog *();

#endif // DOVETAIL_TEST_CUDA_FAKEDRIVER_H
