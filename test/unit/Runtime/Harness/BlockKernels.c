//===- BlockKernels.c - Kernels of the tests of devices -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plays the part of the code that the compiler generates for blocks of threads.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/EmulatedAbi.h"

#include <string.h>

typedef DovetailBlockThread Thread;

static float load(Thread *thread, const float *address) {
  thread->check(thread, address, sizeof(float), sizeof(float), 0);
  return *address;
}

static void store(Thread *thread, float *address, float value) {
  thread->check(thread, address, sizeof(float), sizeof(float), 1);
  *address = value;
}

static int64_t globalIndex(const Thread *thread) {
  return thread->blockIndex * thread->blockSize + thread->threadIndex;
}
static int64_t globalSize(const Thread *thread) { return thread->gridSize * thread->blockSize; }

/// out[i] = in[i] + 1. Loops: i.
void incrementBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  for (int64_t i = numbers[0] + globalIndex(thread); i < numbers[1]; i += globalSize(thread))
    store(thread, (float *)pointers[1] + i * numbers[3], load(thread, (const float *)pointers[0] + i * numbers[2]) + 1);
}

/// out = in[0] < 10.
void isBelowTenBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  (void)numbers;
  unsigned char *out = pointers[1];
  if (globalIndex(thread) != 0)
    return;
  thread->check(thread, out, 1, 1, 1);
  *out = load(thread, pointers[0]) < 10;
}

/// out[i] = in[i] + 1, or in[i] if there are counts. Loops: i.
void incrementWithoutCountsBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  for (int64_t i = numbers[0] + globalIndex(thread); i < numbers[1]; i += globalSize(thread))
    store(thread, (float *)pointers[1] + i * numbers[3],
          load(thread, (const float *)pointers[0] + i * numbers[2]) + (pointers[2] ? 0 : 1));
}

/// out[i, j] = in[i-1, j] + 2 in[i, j] + 3 in[i+1, j], zero outside of the 40 rows. Loops: i, j.
void stencilBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  const float *in = pointers[0];
  float *out = pointers[1];
  const int64_t *is = numbers + 4, *os = numbers + 6;
  int64_t columns = numbers[3] - numbers[2], count = (numbers[1] - numbers[0]) * columns;
  for (int64_t linear = globalIndex(thread); linear < count; linear += globalSize(thread)) {
    int64_t i = numbers[0] + linear / columns, j = numbers[2] + linear % columns;
    float above = i > 0 ? load(thread, in + (i - 1) * is[0] + j * is[1]) : 0;
    float below = i < 39 ? load(thread, in + (i + 1) * is[0] + j * is[1]) : 0;
    store(thread, out + i * os[0] + j * os[1], above + 2 * load(thread, in + i * is[0] + j * is[1]) + 3 * below);
  }
}

/// out[j] = sum over i of in[i, j]. Loops: j, i.
void sumRowsBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  const int64_t *is = numbers + 4, *os = numbers + 6;
  for (int64_t j = numbers[0] + globalIndex(thread); j < numbers[1]; j += globalSize(thread)) {
    float sum = 0;
    for (int64_t i = numbers[2]; i < numbers[3]; ++i)
      sum += load(thread, (const float *)pointers[0] + i * is[0] + j * is[1]);
    store(thread, (float *)pointers[1] + j * os[0], sum);
  }
}

static float shuffle(Thread *thread, float value, int32_t mask) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  bits = thread->shuffleXor(thread, bits, mask);
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/// out[i] = sum over j of in[i, j], a block for each row. Loops: i, j. Shared: a float for each warp.
void sumColumnsBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  const int64_t *is = numbers + 4, *os = numbers + 6;
  float *shared = thread->shared;
  for (int64_t i = numbers[0] + thread->blockIndex; i < numbers[1]; i += thread->gridSize) {
    float sum = 0;
    for (int64_t j = numbers[2] + thread->threadIndex; j < numbers[3]; j += thread->blockSize)
      sum += load(thread, (const float *)pointers[0] + i * is[0] + j * is[1]);
    for (int32_t mask = 16; mask > 0; mask /= 2)
      sum += shuffle(thread, sum, mask);
    if (thread->threadIndex % 32 == 0)
      shared[thread->threadIndex / 32] = sum;
    thread->barrier(thread);
    if (thread->threadIndex == 0) {
      float total = 0;
      for (int64_t warp = 0; warp < thread->blockSize / 32; ++warp)
        total += shared[warp];
      store(thread, (float *)pointers[1] + i * os[0], total);
    }
    // The next row writes to the shared memory.
    thread->barrier(thread);
  }
}

/// out[j, i] = in[i, j] in tiles of 16 times 16, with as many threads. Loops: i, j. Shared: 16 times 17 floats.
static void transpose(void *const *pointers, const int64_t *numbers, Thread *thread, int barriers) {
  const int64_t *is = numbers + 4, *os = numbers + 6;
  float *tile = thread->shared;
  int64_t rows = (numbers[1] - numbers[0] + 15) / 16, columns = (numbers[3] - numbers[2] + 15) / 16;
  int64_t x = thread->threadIndex % 16, y = thread->threadIndex / 16;
  for (int64_t linear = thread->blockIndex; linear < rows * columns; linear += thread->gridSize) {
    int64_t i = numbers[0] + linear / columns * 16, j = numbers[2] + linear % columns * 16;
    if (i + y < numbers[1] && j + x < numbers[3])
      tile[y * 17 + x] = load(thread, (const float *)pointers[0] + (i + y) * is[0] + (j + x) * is[1]);
    if (barriers)
      thread->barrier(thread);
    if (i + x < numbers[1] && j + y < numbers[3])
      store(thread, (float *)pointers[1] + (j + y) * os[0] + (i + x) * os[1], tile[x * 17 + y]);
    if (barriers)
      thread->barrier(thread);
  }
}

void transposeBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  transpose(pointers, numbers, thread, 1);
}

/// The same with a race.
void transposeRace(void *const *pointers, const int64_t *numbers, Thread *thread) {
  transpose(pointers, numbers, thread, 0);
}

static const float table[4] = {10, 20, 30, 40};

/// out[i] = table[i % 4]; numbers[2] more than that. Loops: i.
void constantBlocks(void *const *pointers, const int64_t *numbers, Thread *thread) {
  for (int64_t i = numbers[0] + globalIndex(thread); i < numbers[1]; i += globalSize(thread))
    store(thread, (float *)pointers[0] + i, load(thread, &table[i % 4]));
}

/// Threads do what they must not: numbers[0] says what, on tensors of 100 elements.
void misbehave(void *const *pointers, const int64_t *numbers, Thread *thread) {
  const float *in = pointers[0];
  float *out = pointers[1];
  int first = thread->threadIndex == 3 && thread->blockIndex == 0;
  switch (numbers[0]) {
  case 0: // Reads past the end.
    if (first)
      store(thread, out, load(thread, in + 100));
    break;
  case 1: // Writes before the beginning.
    if (first)
      store(thread, out - 1, 0);
    break;
  case 2: // Writes to what it may only read.
    if (first)
      store(thread, (float *)in + 5, 0);
    break;
  case 3: // Leaves the others at a barrier.
    if (!first)
      thread->barrier(thread);
    break;
  case 4: // Has another kind of barrier than the others.
    if (first)
      thread->shuffleXor(thread, 0, 1);
    else
      thread->barrier(thread);
    break;
  case 5: // Shuffles with another mask than the others.
    thread->shuffleXor(thread, 0, first ? 2 : 1);
    break;
  case 6: // Shuffles with a thread that does not exist.
    thread->shuffleXor(thread, 0, 32);
    break;
  case 7: // Writes past the shared memory of 16 bytes.
    ((float *)thread->shared)[4] = 0;
    break;
  case 8: // Reads across the end.
    if (first)
      thread->check(thread, in + 99, 8, 4, 0);
    break;
  case 9: // Reads what it takes for a vector.
    if (first)
      thread->check(thread, in + 6, 4, 16, 0);
    break;
  case 10: // Reads past the shared memory of 16 bytes.
    if (first)
      thread->checkShared(thread, (float *)thread->shared + 3, 8, 0);
    break;
  case 11: // Writes before it.
    if (first)
      thread->checkShared(thread, (float *)thread->shared - 1, 4, 1);
    break;
  case 12: // Reads what it takes for a vector.
    if (first)
      thread->checkShared(thread, (float *)thread->shared + 1, 8, 0);
    break;
  }
}
