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

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_BOXKERNELS_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_BOXKERNELS_H

#include "../../Memory/CombineElement.h"

namespace dovetail::runtime::cuda {

/// Elements of two memories, given by loops. A *chunk* is `granule` bytes that are contiguous in both; a combination
/// has a chunk for each element.
struct BoxJob {
  static constexpr int maxLoops = 8;
  uint64_t target, source; ///< Addresses.
  int64_t first;           ///< Chunks of the jobs before.
  int32_t loops;           ///< At most `maxLoops`, outermost first.
  int32_t granule;         ///< 1, 2, 4, 8 or 16.
  uint32_t counts[maxLoops];
  int64_t targetStrides[maxLoops], sourceStrides[maxLoops]; ///< Bytes.
};

/// The kinds of reductions, numbered as `layout::ReductionKind`, and element types as `ElementType`; static_asserts
/// where jobs are made hold them together.
enum class JobReduction : int32_t { None, Sum, Prod, Max, Min };
enum class JobType : int32_t { F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool };

struct JobChunk {
  char *target;
  const char *source;
};

/// The job that `chunk` belongs to: the last that begins at or before it.
inline const BoxJob &findJob(const BoxJob *jobs, int64_t jobCount, int64_t chunk) {
  int64_t low = 0, high = jobCount;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (jobs[middle].first <= chunk)
      low = middle;
    else
      high = middle;
  }
  return jobs[low];
}

/// Where the elements of `chunk` are.
inline JobChunk locate(const BoxJob &job, int64_t chunk) {
  uint32_t rest = static_cast<uint32_t>(chunk - job.first);
  uint64_t target = job.target, source = job.source;
  for (int loop = job.loops - 1; loop >= 0; --loop) {
    uint32_t next = rest / job.counts[loop], index = rest - next * job.counts[loop];
    target += static_cast<uint64_t>(index * job.targetStrides[loop]);
    source += static_cast<uint64_t>(index * job.sourceStrides[loop]);
    rest = next;
  }
  return {reinterpret_cast<char *>(target), reinterpret_cast<const char *>(source)};
}

struct alignas(16) Bytes16 {
  uint64_t low, high;
};

template <typename T> void moveChunk(JobChunk chunk) {
  *reinterpret_cast<T *>(chunk.target) = *reinterpret_cast<const T *>(chunk.source);
}

/// What thread `index` of `threads` copies.
inline void copyBoxes(const BoxJob *jobs, int64_t jobCount, int64_t chunks, int64_t index, int64_t threads) {
  for (int64_t chunk = index; chunk < chunks; chunk += threads) {
    const BoxJob &job = findJob(jobs, jobCount, chunk);
    JobChunk where = locate(job, chunk);
    switch (job.granule) {
    case 16:
      moveChunk<Bytes16>(where);
      break;
    case 8:
      moveChunk<uint64_t>(where);
      break;
    case 4:
      moveChunk<uint32_t>(where);
      break;
    case 2:
      moveChunk<uint16_t>(where);
      break;
    default:
      moveChunk<uint8_t>(where);
    }
  }
}

template <typename Access> void combineChunk(JobChunk chunk, JobReduction kind) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  Stored *target = reinterpret_cast<Stored *>(chunk.target);
  Value a = Access::load(*target), b = Access::load(*reinterpret_cast<const Stored *>(chunk.source)), result = a;
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
  *target = Access::store(result);
}

/// What thread `index` of `threads` combines: target = target (kind) source.
inline void combineBoxes(const BoxJob *jobs, int64_t jobCount, int64_t chunks, JobType type, JobReduction kind,
                         int64_t index, int64_t threads) {
  for (int64_t chunk = index; chunk < chunks; chunk += threads) {
    const BoxJob &job = findJob(jobs, jobCount, chunk);
    JobChunk where = locate(job, chunk);
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

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_BOXKERNELS_H
