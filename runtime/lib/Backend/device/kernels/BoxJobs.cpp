//===- BoxJobs.cpp - Work for the box kernels -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BoxJobs.h"

#include "JobLoops.h"

#include <algorithm>
#include <utility>

using namespace dovetail::runtime;
using namespace dovetail::runtime::device;
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

std::vector<int64_t> countsOf(const StridedBox &box) {
  std::vector<int64_t> counts;
  for (const BoxLoop &loop : box.loops)
    counts.push_back(loop.count);
  return counts;
}

void addLoop(BoxJob &job, int64_t count, const BoxLoop &loop) {
  job.counts[job.loops] = Divisor::of(static_cast<uint32_t>(count));
  job.targetStrides[job.loops] = loop.targetStride;
  job.sourceStrides[job.loops] = loop.sourceStride;
  ++job.loops;
}

/// A job for a part of the loops. Of the first `outer` ones, those of one iteration are left out.
BoxJob jobOf(const StridedBox &box, const LoopPart &part, size_t outer, int64_t granule) {
  BoxJob job = {};
  job.target = reinterpret_cast<uintptr_t>(box.target);
  job.source = reinterpret_cast<uintptr_t>(box.source);
  job.rounds = static_cast<uint32_t>(part.rounds());
  job.granule = static_cast<int32_t>(granule);
  for (size_t i = 0; i < box.loops.size(); ++i) {
    job.target += static_cast<uint64_t>(part.first[i] * box.loops[i].targetStride);
    job.source += static_cast<uint64_t>(part.first[i] * box.loops[i].sourceStride);
    if (part.count[i] > 1 || i >= outer)
      addLoop(job, part.count[i], box.loops[i]);
  }
  return job;
}

void addChunks(const StridedBox &box, int64_t granule, BoxJobs &result) {
  for (const LoopPart &part : splitLoops(countsOf(box), BoxJob::maxLoops)) {
    BoxJob job = jobOf(box, part, box.loops.size(), granule);
    job.first = result.chunks;
    result.chunks += job.rounds;
    result.jobs.push_back(job);
  }
}

int bitsFor(int64_t count) {
  int bits = 0;
  while (int64_t(1) << bits < count)
    ++bits;
  return bits;
}

/// Tiles that keep the processors of a GPU busy.
constexpr int64_t enoughTiles = 256;

/// The extents of tiles, as powers of two.
struct TileShape {
  int targetBits, sourceBits;

  TileShape(int64_t alongTarget, int64_t alongSource, int64_t others, int64_t granule) {
    // A block's threads go along at most one line at once, and a tile has at most 16 KiB.
    constexpr int64_t longest = blockThreads;
    int all = bitsFor((int64_t(16) << 10) / std::max<int64_t>(granule, 4));
    int mostTarget = bitsFor(std::min(alongTarget, longest)), mostSource = bitsFor(std::min(alongSource, longest));
    targetBits = std::min(mostTarget, all / 2);
    sourceBits = std::min(mostSource, all - targetBits);
    targetBits = std::min(mostTarget, all - sourceBits);
    // Smaller ones where there are too few for the processors of a GPU.
    constexpr int least = 5;
    auto tiles = [&] {
      return (((alongTarget - 1) >> targetBits) + 1) * (((alongSource - 1) >> sourceBits) + 1) * others;
    };
    while (std::max(targetBits, sourceBits) > least && tiles() < enoughTiles)
      --(targetBits > sourceBits ? targetBits : sourceBits);
  }
};

/// Smaller tiles leave threads of a block without work: chunk by chunk, blocks share such boxes.
constexpr int64_t leastChunksOfTile = 256;

/// Makes tiles of a box whose chunks are neighbours along one loop in the target and along another in the source.
bool addTiles(const StridedBox &box, int64_t granule, BoxJobs &result) {
  const BoxLoop *alongTarget = nullptr, *alongSource = nullptr;
  for (const BoxLoop &loop : box.loops) {
    if (loop.targetStride == granule)
      alongTarget = &loop;
    if (loop.sourceStride == granule)
      alongSource = &loop;
  }
  // A job counts along these loops in 32 bits.
  constexpr int64_t mostCount = int64_t(1) << 31;
  if (!alongTarget || !alongSource || alongTarget == alongSource || alongTarget->count > mostCount ||
      alongSource->count > mostCount || alongTarget->count * alongSource->count < leastChunksOfTile)
    return false;

  StridedBox tiled{box.target, box.source, box.elementBytes, {}};
  int64_t others = 1;
  for (const BoxLoop &loop : box.loops)
    if (&loop != alongTarget && &loop != alongSource) {
      tiled.loops.push_back(loop);
      others = std::min(others * std::min(loop.count, enoughTiles), enoughTiles);
    }
  size_t outer = tiled.loops.size();
  TileShape shape(alongTarget->count, alongSource->count, others, granule);
  auto addLoopOfTiles = [&](const BoxLoop &loop, int bits) {
    tiled.loops.push_back({((loop.count - 1) >> bits) + 1, loop.targetStride << bits, loop.sourceStride << bits});
  };
  addLoopOfTiles(*alongTarget, shape.targetBits);
  addLoopOfTiles(*alongSource, shape.sourceBits);
  for (const LoopPart &part : splitLoops(countsOf(tiled), BoxJob::maxLoops - 2)) {
    BoxJob job = jobOf(tiled, part, outer, granule);
    job.first = result.tiles;
    job.targetBits = shape.targetBits;
    job.sourceBits = shape.sourceBits;
    job.targetExtent = static_cast<uint32_t>(alongTarget->count - (part.first[outer] << shape.targetBits));
    job.sourceExtent = static_cast<uint32_t>(alongSource->count - (part.first[outer + 1] << shape.sourceBits));
    job.targetStep = alongSource->targetStride;
    job.sourceStep = alongTarget->sourceStride;
    result.tiles += job.rounds;
    result.sharedBytes = std::max(result.sharedBytes, job.pitch() << shape.sourceBits);
    result.jobs.push_back(job);
    ++result.tileJobs;
  }
  return true;
}

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
  std::vector<std::pair<StridedBox, int64_t>> others;
  for (StridedBox box : boxes) {
    if (!simplify(box))
      continue;
    int64_t granule = widen(box);
    if (!addTiles(box, granule, result))
      others.push_back({std::move(box), granule});
  }
  for (const auto &[box, granule] : others)
    addChunks(box, granule, result);
  return result;
}

BoxJobs BoxJobs::combinations(const CombinationDescription &description) {
  BoxJobs result;
  for (StridedBox box : description.boxes)
    if (simplify(box))
      addChunks(box, box.elementBytes, result);
  return result;
}

int64_t dovetail::runtime::device::contiguousBytes(const StridedBox &box) {
  StridedBox simple = box;
  if (!simplify(simple) || simple.loops.size() > 1)
    return -1;
  if (simple.loops.empty())
    return simple.elementBytes;
  const BoxLoop &loop = simple.loops.front();
  bool contiguous = loop.targetStride == simple.elementBytes && loop.sourceStride == simple.elementBytes;
  return contiguous ? loop.count * simple.elementBytes : -1;
}
