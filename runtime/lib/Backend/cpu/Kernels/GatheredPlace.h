//===- GatheredPlace.h - Where windows of results lie -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the window of a result of a convolution, for the file that includes it; see Vectors.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDPLACE_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDPLACE_H

#include "Vectors.h"

namespace {

using dovetail::runtime::GatheredTask;

/// Where the window of a result lies, and the result.
struct GatheredPlace {
  GatheredPlace(const GatheredTask &task, int64_t row) : task(task) {
    for (int dim = GatheredTask::numDims; dim-- > 0;) {
      at[dim] = row % task.dims[dim].results;
      row /= task.dims[dim].results;
    }
    image = row;
  }
  /// Goes on by `count` results of the innermost dimension, which it does not leave.
  void advance(int64_t count) {
    at[GatheredTask::numDims - 1] += count;
    for (int dim = GatheredTask::numDims; dim-- > 0 && at[dim] == task.dims[dim].results;) {
      at[dim] = 0;
      ++(dim > 0 ? at[dim - 1] : image);
    }
  }
  int64_t outputOffset() const {
    int64_t offset = image * task.outputImage;
    for (int dim = 0; dim < GatheredTask::numDims; ++dim)
      offset += at[dim] * task.dims[dim].outputStride;
    return offset;
  }

  const GatheredTask &task;
  int64_t image, at[GatheredTask::numDims];
};

int64_t atLeast(int64_t value, int64_t low) { return value < low ? low : value; }
int64_t atMost(int64_t value, int64_t high) { return value > high ? high : value; }
/// The quotient, rounded up; `b` is positive.
int64_t ceilOf(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_GATHEREDPLACE_H
