//===- Kernels.c - Kernels of the runtime's tests -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plays the part of the compiler's generated code.
//
//===----------------------------------------------------------------------===//

#include <math.h>
#include <stdint.h>
#include <time.h>

/// out[i, j] = in[i-1, j] + 2 in[i, j] + 3 in[i+1, j], zero outside of the 40 rows. Loops: i, j.
void stencil(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  const int64_t *is = numbers + 4, *os = numbers + 6;
  for (int64_t i = numbers[0]; i < numbers[1]; ++i)
    for (int64_t j = numbers[2]; j < numbers[3]; ++j) {
      float above = i > 0 ? in[(i - 1) * is[0] + j * is[1]] : 0;
      float below = i < 39 ? in[(i + 1) * is[0] + j * is[1]] : 0;
      out[i * os[0] + j * os[1]] = above + 2 * in[i * is[0] + j * is[1]] + 3 * below;
    }
}

/// out[i, j] = in[i, j] * scale[j] + position, where position = 1000 i + j. Loops: i, j.
void scaleAndPlace(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0], *scale = pointers[1];
  float *out = pointers[2];
  const int64_t *is = numbers + 4, *ss = numbers + 6, *os = numbers + 7;
  for (int64_t i = numbers[0]; i < numbers[1]; ++i)
    for (int64_t j = numbers[2]; j < numbers[3]; ++j)
      out[i * os[0] + j * os[1]] = in[i * is[0] + j * is[1]] * scale[j * ss[0]] + (float)(1000 * i + j);
}

/// out[i] = in[i] + 1, or in[i] if there are counts. Loops: i.
void incrementWithoutCounts(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  for (int64_t i = numbers[0]; i < numbers[1]; ++i)
    out[i * numbers[3]] = in[i * numbers[2]] + (pointers[2] ? 0 : 1);
}

/// out[j] = sum over i of in[i, j]. Loops: j, i.
void sumRows(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  const int64_t *is = numbers + 4, *os = numbers + 6;
  for (int64_t j = numbers[0]; j < numbers[1]; ++j) {
    float sum = 0;
    for (int64_t i = numbers[2]; i < numbers[3]; ++i)
      sum += in[i * is[0] + j * is[1]];
    out[j * os[0]] = sum;
  }
}

/// out[i] = in[i] + 1. Loops: i.
void increment(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  for (int64_t i = numbers[0]; i < numbers[1]; ++i)
    out[i * numbers[3]] = in[i * numbers[2]] + 1;
}

/// out[i, j, k, l] = in[i, j, k, l] + 1. Loops: i, j, k, l.
void incrementWindows(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  const int64_t *is = numbers + 8, *os = numbers + 12;
  for (int64_t i = numbers[0]; i < numbers[1]; ++i)
    for (int64_t j = numbers[2]; j < numbers[3]; ++j)
      for (int64_t k = numbers[4]; k < numbers[5]; ++k)
        for (int64_t l = numbers[6]; l < numbers[7]; ++l)
          out[i * os[0] + j * os[1] + k * os[2] + l * os[3]] = in[i * is[0] + j * is[1] + k * is[2] + l * is[3]] + 1;
}

/// out[i] = what in[i] was in the call before, up to 16 elements. Loops: i.
void recall(void *const *pointers, const int64_t *numbers) {
  static float before[16];
  const float *in = pointers[0];
  float *out = pointers[1];
  for (int64_t i = numbers[0]; i < numbers[1]; ++i) {
    out[i * numbers[3]] = before[i];
    before[i] = in[i * numbers[2]];
  }
}

/// Sleeps as many seconds as the first element of its input says, on each rank. Loops: i.
void sleepInput(void *const *pointers, const int64_t *numbers) {
  const float *in = pointers[0];
  float *out = pointers[1];
  for (int64_t i = numbers[0]; i < numbers[1]; ++i) {
    float seconds = in[i * numbers[2]];
    struct timespec time = {(time_t)seconds, (long)((seconds - floorf(seconds)) * 1e9f)};
    nanosleep(&time, 0);
    out[i * numbers[3]] = seconds;
  }
}
