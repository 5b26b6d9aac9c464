//===- FakeLibraries.h - cuDNN and cuBLASLt for tests -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what tests see of the fake libraries, and how they make some of their plans slow or fail.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKELIBRARIES_H
#define DOVETAIL_TEST_CUDA_FAKELIBRARIES_H

#include <cstdint>
#include <cublasLt.h>
#include <functional>
#include <vector>

/// Plan 0 uses tensor cores, plans 1 and 2 do not, plan 3 is like them but needs a workspace of 4 GiB. In f32, plans 1
/// to 3 do what is compiled beforehand. Plan 4 is compiled at run time, has no tensor cores, and is in the fallback
/// list.
struct FakeCudnnLog {
  bool tensorCores = false;         ///< Whether plan 0 gives right results for f32.
  std::vector<int64_t> workspaces;  ///< What the plans need, if not what is said above.
  std::vector<int> executions;      ///< The plans that were executed.
  size_t operations = 0;            ///< Of the graph that is executed.
  std::function<bool(int)> execute; ///< If not null, called with the plan; false: it fails.
};

/// Algorithms are numbered from 0; there are 3.
struct FakeCublasLtLog {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F; ///< Of the last product that was asked about.
  uint64_t mostWorkspace = 0;                       ///< What the last question allows it to use.
  std::vector<uint64_t> workspaces;                 ///< What the algorithms need, if not about 1000 bytes.
  float plainWaves = 1, fusedWaves = 1; ///< How often blocks fill the device, without an epilogue and with one.
  std::vector<int> executions;          ///< The algorithms that were executed.
  std::function<bool(int)> execute;     ///< If not null, called with the algorithm; false: it fails.
};

/// `fakeCudnnLog` and `fakeCublasLtLog` in the libraries.
using FakeCudnnLogFunction = FakeCudnnLog *();
using FakeCublasLtLogFunction = FakeCublasLtLog *();

#endif // DOVETAIL_TEST_CUDA_FAKELIBRARIES_H
