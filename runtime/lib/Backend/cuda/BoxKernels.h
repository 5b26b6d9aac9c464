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

/// Elements of two memories, given by loops. An *item* is `granule` bytes that are contiguous in both; a combination
/// has an item for each element.
struct BoxJob {
  static constexpr int maxLoops = 8;
  uint64_t target, source; ///< Addresses.
  int64_t first;           ///< Items of the jobs before.
  int32_t loops;           ///< At most `maxLoops`, outermost first.
  int32_t granule;         ///< 1, 2, 4, 8 or 16.
  uint32_t counts[maxLoops];
  int64_t targetStrides[maxLoops], sourceStrides[maxLoops]; ///< Bytes.
};

/// The kinds of reductions, numbered as `layout::ReductionKind`, and element types as `ElementType`; static_asserts
/// where jobs are made hold them together.
enum class JobReduction : int32_t { None, Sum, Prod, Max, Min };
enum class JobType : int32_t { F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool };

struct JobItem {
  char *target;
  const char *source;
};

/// The job that `item` belongs to: the last that begins at or before it.
inline const BoxJob &findJob(const BoxJob *jobs, int64_t jobCount, int64_t item) {
  int64_t low = 0, high = jobCount;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (jobs[middle].first <= item)
      low = middle;
    else
      high = middle;
  }
  return jobs[low];
}

/// Where the elements of `item` are.
inline JobItem locate(const BoxJob &job, int64_t item) {
  uint32_t rest = static_cast<uint32_t>(item - job.first);
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

template <typename T> void moveItem(JobItem item) {
  *reinterpret_cast<T *>(item.target) = *reinterpret_cast<const T *>(item.source);
}

/// What thread `index` of `threads` copies.
inline void copyBoxes(const BoxJob *jobs, int64_t jobCount, int64_t items, int64_t index, int64_t threads) {
  for (int64_t item = index; item < items; item += threads) {
    const BoxJob &job = findJob(jobs, jobCount, item);
    JobItem where = locate(job, item);
    switch (job.granule) {
    case 16:
      moveItem<Bytes16>(where);
      break;
    case 8:
      moveItem<uint64_t>(where);
      break;
    case 4:
      moveItem<uint32_t>(where);
      break;
    case 2:
      moveItem<uint16_t>(where);
      break;
    default:
      moveItem<uint8_t>(where);
    }
  }
}

template <typename Access> void combineItem(JobItem item, JobReduction kind) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  Stored *target = reinterpret_cast<Stored *>(item.target);
  Value a = Access::load(*target), b = Access::load(*reinterpret_cast<const Stored *>(item.source)), result = a;
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
inline void combineBoxes(const BoxJob *jobs, int64_t jobCount, int64_t items, JobType type, JobReduction kind,
                         int64_t index, int64_t threads) {
  for (int64_t item = index; item < items; item += threads) {
    const BoxJob &job = findJob(jobs, jobCount, item);
    JobItem where = locate(job, item);
    switch (type) {
    case JobType::F32:
      combineItem<PlainAccess<float>>(where, kind);
      break;
    case JobType::F64:
      combineItem<PlainAccess<double>>(where, kind);
      break;
    case JobType::F16:
      combineItem<HalfAccess>(where, kind);
      break;
    case JobType::BF16:
      combineItem<BrainFloatAccess>(where, kind);
      break;
    case JobType::I8:
      combineItem<PlainAccess<int8_t>>(where, kind);
      break;
    case JobType::I16:
      combineItem<PlainAccess<int16_t>>(where, kind);
      break;
    case JobType::I32:
      combineItem<PlainAccess<int32_t>>(where, kind);
      break;
    case JobType::I64:
      combineItem<PlainAccess<int64_t>>(where, kind);
      break;
    case JobType::U8:
      combineItem<PlainAccess<uint8_t>>(where, kind);
      break;
    case JobType::U16:
      combineItem<PlainAccess<uint16_t>>(where, kind);
      break;
    case JobType::U32:
      combineItem<PlainAccess<uint32_t>>(where, kind);
      break;
    case JobType::U64:
      combineItem<PlainAccess<uint64_t>>(where, kind);
      break;
    case JobType::Bool:
      // Booleans are 0 or 1: their sum is "or".
      combineItem<PlainAccess<uint8_t>>(where, kind == JobReduction::Sum ? JobReduction::Max : kind);
      break;
    }
  }
}

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_BOXKERNELS_H
