//===- PostOpWork.cpp - Post-ops after library calls ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostOpWork.h"

#include "../device/kernels/JobLoops.h"
#include "Staging.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::runtime::device;
using layout::Box;

namespace {

bool isTranscendental(PostOpKind kind) {
  switch (kind) {
  case PostOpKind::Sigmoid:
  case PostOpKind::Tanh:
  case PostOpKind::Gelu:
  case PostOpKind::GeluTanh:
  case PostOpKind::Swish:
  case PostOpKind::Elu:
    return true;
  default:
    return false;
  }
}

constexpr int innermost = PostOpJob::maxLoops - 1;

/// Whether the job can go through vectors of 16 bytes.
bool hasVectors(const PostOpJob &job, int64_t size) {
  uint64_t common = static_cast<uint64_t>(job.counts[innermost].count) * size;
  auto isWide = [&](uint64_t address, const int64_t *strides) {
    common |= address;
    for (int loop = 0; loop < innermost; ++loop)
      common |= static_cast<uint64_t>(strides[loop]);
    return strides[innermost] == size;
  };
  if (!isWide(job.result, job.strides) || (job.source && !isWide(job.source, job.sourceStrides)))
    return false;
  for (int op = 0; op < job.ops; ++op)
    if (const PostOpJob::Op &read = job.op[op];
        read.operand && read.strides[innermost] != 0 && !isWide(read.operand, read.strides))
      return false;
  return common % 16 == 0;
}

/// Goes on by elements of the innermost loop.
void advance(PostOpJob &job, int64_t elements) {
  job.result += static_cast<uint64_t>(elements * job.strides[innermost]);
  if (job.source)
    job.source += static_cast<uint64_t>(elements * job.sourceStrides[innermost]);
  for (int op = 0; op < job.ops; ++op)
    if (job.op[op].operand)
      job.op[op].operand += static_cast<uint64_t>(elements * job.op[op].strides[innermost]);
}

} // namespace

absl::StatusOr<PostOpOperand> dovetail::runtime::cuda::operandOf(const RankMemory &memory, const PostOpInfo &op,
                                                                 const Box &box) {
  absl::StatusOr<PostOpRead> read = postOpRead(memory, op, box);
  if (!read.ok())
    return read.status();
  PostOpOperand operand;
  operand.strides = read->view.strides;
  for (int dim = 0; dim < box.rank(); ++dim)
    if (read->repeats[dim])
      operand.strides[dim] = 0;
  operand.isFull = read->isFull;
  operand.alignment = alignmentOf(read->view, read->box);
  operand.address = read->view.data ? read->view.address(read->box) : nullptr;
  operand.box = std::move(read->box);
  return operand;
}

absl::Status PostOpWork::prepare(ElementType type) {
  if (type != ElementType::F32 && type != ElementType::F16 && type != ElementType::BF16 && type != ElementType::F64)
    return absl::UnimplementedError(
        absl::StrCat("libraries do not compute post-operations on ", elementTypeName(type)));
  for (size_t i = first; i < ops.size(); ++i) {
    if (type == ElementType::F64 && isTranscendental(ops[i].kind))
      return absl::UnimplementedError("libraries do not compute this activation on float64; compile the model with "
                                      "--no-libraries, which uses generated kernels instead");
    if (ops[i].readsTensor())
      if (absl::Status status = operandOf(memory, ops[i], box).status(); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

void PostOpWork::addJob(PostOpJob job, int64_t rounds, int64_t size) {
  auto width = static_cast<uint32_t>(16 / size);
  // The few elements that are no vector have a launch of their own where it costs less than the others gain.
  constexpr uint32_t many = 1 << 18;
  uint32_t count = job.counts[innermost].count, rest = count % width;
  if (rounds == count && count >= many && rest > 0) {
    PostOpJob last = job;
    advance(last, count - rest);
    last.counts[innermost] = Divisor::of(rest);
    addJob(last, rest, size);
    rounds = count -= rest;
    job.counts[innermost] = Divisor::of(count);
  }
  job.width = 1;
  if (hasVectors(job, size)) {
    job.width = static_cast<int32_t>(width);
    job.counts[innermost] = Divisor::of(count / width);
    job.strides[innermost] *= width;
    job.sourceStrides[innermost] *= width;
    for (int op = 0; op < job.ops; ++op)
      job.op[op].strides[innermost] *= width;
    rounds /= width;
  }
  jobs.push_back(job);
  vectors.push_back(rounds);
}

void PostOpWork::addJobs(const std::vector<Loop> &loops, const PostOpJob &whole, int64_t size) {
  std::vector<int64_t> counts;
  for (const Loop &loop : loops)
    counts.push_back(loop.count);
  for (const LoopPart &part : splitLoops(counts, PostOpJob::maxLoops)) {
    if (part.rounds() == 0)
      continue;
    PostOpJob job = whole;
    std::fill(std::begin(job.counts), std::end(job.counts), Divisor::of(1));
    int next = PostOpJob::maxLoops;
    for (size_t i = loops.size(); i-- > 0;) {
      const Loop &loop = loops[i];
      job.result += static_cast<uint64_t>(part.first[i] * loop.targetStride);
      if (job.source)
        job.source += static_cast<uint64_t>(part.first[i] * loop.sourceStride);
      for (int op = 0; op < job.ops; ++op)
        if (job.op[op].operand)
          job.op[op].operand += static_cast<uint64_t>(part.first[i] * loop.operandStrides[op]);
      if (part.count[i] == 1)
        continue;
      job.counts[--next] = Divisor::of(static_cast<uint32_t>(part.count[i]));
      job.strides[next] = loop.targetStride;
      job.sourceStrides[next] = loop.sourceStride;
      for (int op = 0; op < job.ops; ++op)
        job.op[op].strides[next] = loop.operandStrides[op];
    }
    addJob(job, part.rounds(), size);
  }
}

absl::Status PostOpWork::bind(const MemoryView &target, const MemoryView &source) {
  int64_t size = elementSize(target.type);
  size_t begin = first;
  jobs.clear();
  vectors.clear();
  // A chain that is longer than a job goes on in place. A copy is a chain of no operations.
  do {
    size_t count = std::min<size_t>(ops.size() - begin, PostOpJob::maxOps);
    const MemoryView &from = begin == first ? source : target;
    PostOpJob job = {};
    job.result = reinterpret_cast<uintptr_t>(target.address(box));
    job.source = from.data ? reinterpret_cast<uintptr_t>(from.address(box)) : 0;
    job.type = static_cast<JobType>(target.type);
    job.ops = static_cast<int32_t>(count);
    std::vector<PostOpOperand> operands(count);
    for (size_t i = 0; i < count; ++i) {
      const PostOpInfo &op = ops[begin + i];
      job.op[i].kind = op.kind;
      job.op[i].alpha = op.alpha;
      job.op[i].beta = op.beta;
      operands[i].strides.assign(box.rank(), 0);
      if (!op.readsTensor())
        continue;
      absl::StatusOr<PostOpOperand> operand = operandOf(memory, op, box);
      if (!operand.ok())
        return operand.status();
      operands[i] = *std::move(operand);
      job.op[i].operand = reinterpret_cast<uintptr_t>(operands[i].address);
    }
    std::vector<Loop> loops;
    for (int dim = 0; dim < box.rank(); ++dim) {
      if (box[dim].size() == 1)
        continue;
      Loop loop{box[dim].size(), target.strides[dim] * size, from.data ? from.strides[dim] * size : 0, {}};
      for (const PostOpOperand &operand : operands)
        loop.operandStrides.push_back(operand.strides[dim] * size);
      loops.push_back(std::move(loop));
    }
    std::sort(loops.begin(), loops.end(), [](const Loop &a, const Loop &b) { return a.targetStride > b.targetStride; });
    std::vector<Loop> merged;
    for (Loop &loop : loops) {
      auto follows = [&](int64_t outer, int64_t inner) { return outer == inner * loop.count; };
      bool joins = !merged.empty() && follows(merged.back().targetStride, loop.targetStride) &&
                   follows(merged.back().sourceStride, loop.sourceStride);
      for (size_t i = 0; joins && i < count; ++i)
        joins = follows(merged.back().operandStrides[i], loop.operandStrides[i]);
      if (joins)
        loop.count *= merged.back().count;
      if (joins)
        merged.back() = std::move(loop);
      else
        merged.push_back(std::move(loop));
    }
    addJobs(merged, job, size);
    begin += count;
  } while (begin < ops.size());
  return absl::OkStatus();
}

absl::Status PostOpWork::issue(DeviceStream &stream) {
  DeviceScope scope(*context);
  for (size_t i = 0; i < jobs.size(); ++i) {
    void *parameters[] = {&jobs[i], &vectors[i]};
    int64_t blocks = std::max<int64_t>((vectors[i] + vectorsOfBlock - 1) / vectorsOfBlock, 1);
    if (absl::Status status =
            context->check(context->api.cuLaunchKernel(context->postOps, static_cast<unsigned>(blocks), 1, 1,
                                                       blockThreads, 1, 1, 0, handleOf(stream), parameters, nullptr),
                           "cuLaunchKernel");
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}
