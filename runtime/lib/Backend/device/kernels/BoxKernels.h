//===- BoxKernels.h - Copies and combinations of boxes ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what the threads of the runtime's own device kernels do. Compiled for devices, without a standard library,
// and for the host by tests.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXKERNELS_H
#define DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXKERNELS_H

#include "../../../Memory/CombineElement.h"

namespace dovetail::runtime::device {

// Addresses of jobs are those of global memory, which the device reads and writes in fewer steps than memory of any
// kind.
#ifdef __NVPTX__
#define DOVETAIL_GLOBAL __attribute__((address_space(1)))
#define DOVETAIL_SHARED __attribute__((address_space(3)))
#else
#define DOVETAIL_GLOBAL
#define DOVETAIL_SHARED
#endif

// A function that stayed one would have a copy of a job in the memory of each thread.
#define DOVETAIL_INLINE __attribute__((always_inline)) inline
#define DOVETAIL_INLINED __attribute__((always_inline))

/// Threads of a block of each of these kernels.
constexpr uint32_t blockThreads = 256;

/// The rounds of a loop, and what divides by their number without a division.
struct Divisor {
  uint32_t count, factor, shift;

  static constexpr Divisor of(uint32_t count) {
    uint32_t shift = 0;
    while (uint64_t(1) << shift < count)
      ++shift;
    uint64_t factor = (((uint64_t(1) << shift) - count) << 32) / count + 1;
    return {count, static_cast<uint32_t>(factor), shift};
  }
  /// Of a number below 2^31.
  uint32_t quotient(uint32_t number) const {
    return (static_cast<uint32_t>((static_cast<uint64_t>(number) * factor) >> 32) + number) >> shift;
  }
};

/// Elements of two memories, given by loops. A *chunk* is `granule` bytes that are contiguous in both; a combination
/// has a chunk for each element.
///
/// Where chunks are neighbours along one loop in the target and along another in the source, blocks copy *tiles* of
/// both loops through shared memory. The last two loops of such a job go through the tiles: first along the target's
/// neighbours, then along the source's.
struct BoxJob {
  static constexpr int maxLoops = 8;
  uint64_t target, source; ///< Addresses.
  int64_t first;           ///< Chunks or tiles of the jobs before.
  uint32_t rounds;         ///< Its chunks or tiles.
  int32_t loops;           ///< At most `maxLoops`, outermost first.
  int32_t granule;         ///< 1, 2, 4, 8 or 16.
  Divisor counts[maxLoops];
  int64_t targetStrides[maxLoops], sourceStrides[maxLoops]; ///< Bytes.

  // A tile is 2^targetBits chunks along the target's neighbours by 2^sourceBits along the source's.
  int32_t targetBits, sourceBits;
  uint32_t targetExtent, sourceExtent; ///< Chunks from the first tile on.
  int64_t targetStep, sourceStep;      ///< Bytes between chunks along the loop of the other memory's neighbours.

  /// Bytes of shared memory between chunks that are neighbours in the source. A chunk more than the others take, so
  /// that threads that write them use different banks.
  uint32_t pitch() const { return (static_cast<uint32_t>(granule) << targetBits) + (granule < 4 ? 4 : granule); }
};

/// The copies of a launch: tiles first, then chunks.
struct BoxTable {
  const BoxJob *jobs; ///< Those with tiles first.
  int64_t tileJobs, tiles, chunkJobs, chunks;
};

/// The kinds of reductions, numbered as `layout::ReductionKind`, and element types as `ElementType`; static_asserts
/// where jobs are made hold them together.
enum class JobReduction : int32_t { None, Sum, Prod, Max, Min };
enum class JobType : int32_t { F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool };

/// The job that a chunk or tile belongs to: the last that begins at or before it.
inline const BoxJob &findJob(const BoxJob *jobs, int64_t jobCount, int64_t round) {
  int64_t low = 0, high = jobCount;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (jobs[middle].first <= round)
      low = middle;
    else
      high = middle;
  }
  return jobs[low];
}

/// Addresses of chunks.
template <int count> struct JobChunks {
  uint64_t target[count], source[count];
};

/// Where the elements of `rounds` of a job are.
template <int count> JobChunks<count> locate(const BoxJob &job, uint32_t (&rounds)[count]) {
  JobChunks<count> result;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    result.target[i] = job.target;
    result.source[i] = job.source;
  }
#pragma unroll 1
  for (int loop = job.loops - 1; loop >= 0; --loop) {
    Divisor divisor = job.counts[loop];
    int64_t targetStride = job.targetStrides[loop], sourceStride = job.sourceStrides[loop];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      uint32_t next = divisor.quotient(rounds[i]), index = rounds[i] - next * divisor.count;
      result.target[i] += static_cast<uint64_t>(index * targetStride);
      result.source[i] += static_cast<uint64_t>(index * sourceStride);
      rounds[i] = next;
    }
  }
  return result;
}

typedef uint32_t Bytes16 __attribute__((vector_size(16)));

template <typename T> T loadGlobal(uint64_t address) { return *reinterpret_cast<const T DOVETAIL_GLOBAL *>(address); }
template <typename T> void storeGlobal(uint64_t address, T value) {
  *reinterpret_cast<T DOVETAIL_GLOBAL *>(address) = value;
}

/// All are under way before the first is needed.
template <typename T, int count> void moveChunks(const JobChunks<count> &chunks) {
  T values[count];
#pragma unroll
  for (int i = 0; i < count; ++i)
    values[i] = loadGlobal<T>(chunks.source[i]);
#pragma unroll
  for (int i = 0; i < count; ++i)
    storeGlobal(chunks.target[i], values[i]);
}

template <int count> void copyRounds(const BoxJob &job, uint32_t (&rounds)[count]) {
  JobChunks<count> chunks = locate(job, rounds);
  switch (job.granule) {
  case 16:
    return moveChunks<Bytes16>(chunks);
  case 8:
    return moveChunks<uint64_t>(chunks);
  case 4:
    return moveChunks<uint32_t>(chunks);
  case 2:
    return moveChunks<uint16_t>(chunks);
  default:
    return moveChunks<uint8_t>(chunks);
  }
}

/// Chunks that a thread copies at once, and a block.
constexpr int chunksOfThread = 4;
constexpr int64_t chunksOfBlock = chunksOfThread * blockThreads;

/// Copies `chunk` and those that follow on it at distances of a block's threads.
inline void copyChunks(const BoxJob *jobs, int64_t jobCount, int64_t chunks, int64_t chunk) {
  if (chunk >= chunks)
    return;
  const BoxJob *job = &findJob(jobs, jobCount, chunk);
  if (chunk - job->first + (chunksOfThread - 1) * blockThreads < job->rounds) {
    uint32_t rounds[chunksOfThread];
#pragma unroll
    for (int i = 0; i < chunksOfThread; ++i)
      rounds[i] = static_cast<uint32_t>(chunk - job->first) + i * blockThreads;
    return copyRounds(*job, rounds);
  }
  for (int i = 0; i < chunksOfThread && chunk < chunks; ++i, chunk += blockThreads) {
    if (chunk - job->first >= job->rounds)
      job = &findJob(jobs, jobCount, chunk);
    uint32_t rounds[] = {static_cast<uint32_t>(chunk - job->first)};
    copyRounds(*job, rounds);
  }
}

/// The lines of a tile that a thread goes along, in steps, and its place in each.
struct TileLines {
  uint32_t line, step, place;

  TileLines(uint32_t thread, int bits)
      : line(thread >> bits), step(blockThreads >> bits), place(thread & ((uint32_t(1) << bits) - 1)) {}
};

/// Reads a thread's part of a tile along the source, whose lines are the rows.
template <typename T>
void readTile(char DOVETAIL_SHARED *tile, uint64_t source, int64_t stride, TileLines at, uint32_t lines,
              uint32_t pitch) {
  constexpr int atOnce = sizeof(T) < 4 ? 16 : 64 / sizeof(T);
  source += at.line * stride + at.place * sizeof(T);
  tile += at.place * pitch + at.line * sizeof(T);
  stride *= at.step;
  for (; at.line < lines; at.line += atOnce * at.step) {
    T values[atOnce] = {}; // Else all of them would keep their registers all the time.
#pragma unroll
    for (int i = 0; i < atOnce; ++i, source += stride)
      if (at.line + i * at.step < lines)
        values[i] = loadGlobal<T>(source);
#pragma unroll
    for (int i = 0; i < atOnce; ++i, tile += at.step * sizeof(T))
      if (at.line + i * at.step < lines)
        *reinterpret_cast<T DOVETAIL_SHARED *>(tile) = values[i];
  }
}

/// Writes it along the target, whose lines are the columns.
template <typename T>
void writeTile(const char DOVETAIL_SHARED *tile, uint64_t target, int64_t stride, TileLines at, uint32_t lines,
               uint32_t pitch) {
  target += at.line * stride + at.place * sizeof(T);
  tile += at.line * pitch + at.place * sizeof(T);
  stride *= at.step;
#pragma unroll 4
  for (; at.line < lines; at.line += at.step, target += stride, tile += at.step * pitch)
    storeGlobal<T>(target, *reinterpret_cast<const T DOVETAIL_SHARED *>(tile));
}

template <typename T, typename Block> void copyTile(const BoxJob &job, uint32_t tile, const Block &block) {
  const Divisor &alongSource = job.counts[job.loops - 1], &alongTarget = job.counts[job.loops - 2];
  uint32_t rest = alongSource.quotient(tile), rounds[] = {tile};
  uint32_t column = tile - rest * alongSource.count, row = rest - alongTarget.quotient(rest) * alongTarget.count;
  auto extent = [](uint32_t all, uint32_t index, int bits) {
    uint32_t left = all - (index << bits), most = uint32_t(1) << bits;
    return left < most ? left : most;
  };
  uint32_t rows = extent(job.targetExtent, row, job.targetBits);
  uint32_t columns = extent(job.sourceExtent, column, job.sourceBits), pitch = job.pitch();
  JobChunks<1> begin = locate(job, rounds);
  block.runAndWait([&](uint32_t thread) {
    TileLines at(thread, job.sourceBits);
    if (at.place < columns)
      readTile<T>(block.shared(), begin.source[0], job.sourceStep, at, rows, pitch);
  });
  block.runAndWait([&](uint32_t thread) {
    TileLines at(thread, job.targetBits);
    if (at.place < rows)
      writeTile<T>(block.shared(), begin.target[0], job.targetStep, at, columns, pitch);
  });
}

/// Copies the part of a block. The block has an `index` among `count` blocks, `shared` memory, and runs a function for
/// each of its threads.
template <typename Block> void copyBoxes(const BoxTable &table, const Block &block) {
  int64_t pieces = table.tiles + (table.chunks + chunksOfBlock - 1) / chunksOfBlock;
  for (int64_t piece = block.index(); piece < pieces; piece += block.count()) {
    if (piece >= table.tiles) {
      block.run([&](uint32_t thread) {
        copyChunks(table.jobs + table.tileJobs, table.chunkJobs, table.chunks,
                   (piece - table.tiles) * chunksOfBlock + thread);
      });
      continue;
    }
    const BoxJob &job = findJob(table.jobs, table.tileJobs, piece);
    uint32_t tile = static_cast<uint32_t>(piece - job.first);
    switch (job.granule) {
    case 16:
      copyTile<Bytes16>(job, tile, block);
      break;
    case 8:
      copyTile<uint64_t>(job, tile, block);
      break;
    case 4:
      copyTile<uint32_t>(job, tile, block);
      break;
    case 2:
      copyTile<uint16_t>(job, tile, block);
      break;
    default:
      copyTile<uint8_t>(job, tile, block);
    }
  }
}

template <typename Access> void combineChunk(const JobChunks<1> &chunk, JobReduction kind) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  Value a = Access::load(loadGlobal<Stored>(chunk.target[0])), b = Access::load(loadGlobal<Stored>(chunk.source[0]));
  Value result = a;
  switch (kind) {
  case JobReduction::Sum:
    result = combineSum(a, b);
    break;
  case JobReduction::Prod:
    result = combineProd(a, b);
    break;
  case JobReduction::Max:
    result = combineMax(a, b);
    break;
  case JobReduction::Min:
    result = combineMin(a, b);
    break;
  default:
    break;
  }
  storeGlobal<Stored>(chunk.target[0], Access::store(result));
}

/// What thread `index` of `threads` combines: target = target (kind) source.
inline void combineBoxes(const BoxJob *jobs, int64_t jobCount, int64_t chunks, JobType type, JobReduction kind,
                         int64_t index, int64_t threads) {
  for (int64_t chunk = index; chunk < chunks; chunk += threads) {
    const BoxJob &job = findJob(jobs, jobCount, chunk);
    uint32_t rounds[] = {static_cast<uint32_t>(chunk - job.first)};
    JobChunks<1> where = locate(job, rounds);
    switch (type) {
    case JobType::F32:
      combineChunk<PlainAccess<float>>(where, kind);
      break;
    case JobType::F64:
      combineChunk<PlainAccess<double>>(where, kind);
      break;
    case JobType::F16:
      combineChunk<HalfAccess>(where, kind);
      break;
    case JobType::BF16:
      combineChunk<BrainFloatAccess>(where, kind);
      break;
    case JobType::I8:
      combineChunk<PlainAccess<int8_t>>(where, kind);
      break;
    case JobType::I16:
      combineChunk<PlainAccess<int16_t>>(where, kind);
      break;
    case JobType::I32:
      combineChunk<PlainAccess<int32_t>>(where, kind);
      break;
    case JobType::I64:
      combineChunk<PlainAccess<int64_t>>(where, kind);
      break;
    case JobType::U8:
      combineChunk<PlainAccess<uint8_t>>(where, kind);
      break;
    case JobType::U16:
      combineChunk<PlainAccess<uint16_t>>(where, kind);
      break;
    case JobType::U32:
      combineChunk<PlainAccess<uint32_t>>(where, kind);
      break;
    case JobType::U64:
      combineChunk<PlainAccess<uint64_t>>(where, kind);
      break;
    case JobType::Bool:
      // Booleans are 0 or 1: their sum is "or".
      combineChunk<PlainAccess<uint8_t>>(where, kind == JobReduction::Sum ? JobReduction::Max : kind);
      break;
    }
  }
}

} // namespace dovetail::runtime::device

#endif // DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_BOXKERNELS_H
