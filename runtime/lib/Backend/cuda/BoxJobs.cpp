//===- BoxJobs.cpp - Work for the box kernels -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BoxJobs.h"

#include "JobLoops.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using Kind = dovetail::layout::ReductionKind;

static_assert(int(JobReduction::None) == int(Kind::None) && int(JobReduction::Sum) == int(Kind::Sum) &&
              int(JobReduction::Prod) == int(Kind::Prod) && int(JobReduction::Max) == int(Kind::Max) &&
              int(JobReduction::Min) == int(Kind::Min));
static_assert(int(JobType::F32) == int(ElementType::F32) && int(JobType::F64) == int(ElementType::F64) &&
              int(JobType::F16) == int(ElementType::F16) && int(JobType::BF16) == int(ElementType::BF16) &&
              int(JobType::I8) == int(ElementType::I8) && int(JobType::I64) == int(ElementType::I64) &&
              int(JobType::U8) == int(ElementType::U8) && int(JobType::U64) == int(ElementType::U64) &&
              int(JobType::Bool) == int(ElementType::Bool));

namespace {

class Builder {
public:
  explicit Builder(BoxJobs &result) : result(result) {}

  void add(const StridedBox &box, int64_t granule) {
    std::vector<int64_t> counts;
    for (const BoxLoop &loop : box.loops)
      counts.push_back(loop.count);
    for (const LoopPart &part : splitLoops(counts, BoxJob::maxLoops)) {
      BoxJob job = {};
      job.target = reinterpret_cast<uintptr_t>(box.target);
      job.source = reinterpret_cast<uintptr_t>(box.source);
      job.first = result.chunks;
      job.granule = static_cast<int32_t>(granule);
      for (size_t i = 0; i < box.loops.size(); ++i) {
        const BoxLoop &loop = box.loops[i];
        job.target += static_cast<uint64_t>(part.first[i] * loop.targetStride);
        job.source += static_cast<uint64_t>(part.first[i] * loop.sourceStride);
        if (part.count[i] == 1)
          continue;
        job.counts[job.loops] = static_cast<uint32_t>(part.count[i]);
        job.targetStrides[job.loops] = loop.targetStride;
        job.sourceStrides[job.loops] = loop.sourceStride;
        ++job.loops;
      }
      result.jobs.push_back(job);
      result.chunks += part.rounds();
    }
  }

private:
  BoxJobs &result;
};

/// Without loops of one iteration, and with loops that follow on each other made one. False if the box is empty.
bool simplify(StridedBox &box) {
  std::vector<BoxLoop> loops;
  for (const BoxLoop &loop : box.loops) {
    if (loop.count <= 0)
      return false;
    if (loop.count == 1)
      continue;
    if (!loops.empty() && loops.back().targetStride == loop.targetStride * loop.count &&
        loops.back().sourceStride == loop.sourceStride * loop.count)
      loops.back() = {loops.back().count * loop.count, loop.targetStride, loop.sourceStride};
    else
      loops.push_back(loop);
  }
  box.loops = std::move(loops);
  return true;
}

/// Makes chunks of as many bytes as the hardware moves at once, and returns how many.
int64_t widen(StridedBox &box) {
  if (box.loops.empty())
    return box.elementBytes;
  BoxLoop &inner = box.loops.back();
  if (inner.targetStride != box.elementBytes || inner.sourceStride != box.elementBytes)
    return box.elementBytes;
  uint64_t common = reinterpret_cast<uintptr_t>(box.target) | reinterpret_cast<uintptr_t>(box.source) |
                    static_cast<uint64_t>(inner.count * box.elementBytes);
  for (size_t i = 0; i + 1 < box.loops.size(); ++i)
    common |= static_cast<uint64_t>(box.loops[i].targetStride) | static_cast<uint64_t>(box.loops[i].sourceStride);
  int64_t granule = box.elementBytes;
  while (granule < 16 && common % (2 * granule) == 0)
    granule *= 2;
  inner = {inner.count * box.elementBytes / granule, granule, granule};
  if (inner.count == 1)
    box.loops.pop_back();
  return granule;
}

} // namespace

BoxJobs BoxJobs::copies(const std::vector<StridedBox> &boxes) {
  BoxJobs result;
  Builder builder(result);
  for (StridedBox box : boxes)
    if (simplify(box)) {
      int64_t granule = widen(box);
      builder.add(box, granule);
    }
  return result;
}

BoxJobs BoxJobs::combinations(const CombinationDescription &description) {
  BoxJobs result;
  Builder builder(result);
  for (StridedBox box : description.boxes)
    if (simplify(box))
      builder.add(box, box.elementBytes);
  return result;
}

int64_t dovetail::runtime::cuda::contiguousBytes(const StridedBox &box) {
  StridedBox simple = box;
  if (!simplify(simple) || simple.loops.size() > 1)
    return -1;
  if (simple.loops.empty())
    return simple.elementBytes;
  const BoxLoop &loop = simple.loops.front();
  bool contiguous = loop.targetStride == simple.elementBytes && loop.sourceStride == simple.elementBytes;
  return contiguous ? loop.count * simple.elementBytes : -1;
}
