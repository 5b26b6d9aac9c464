//===- PostOpWork.h - Post-ops after library calls -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how post-ops that a library does not fuse into its call are applied by the runtime's own kernel.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPWORK_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPWORK_H

#include "../common/PostOpRead.h"
#include "../device/kernels/PostOpKernels.h"
#include "Context.h"

namespace dovetail::runtime::cuda {

using namespace device;

/// What a post-op reads, with the dimensions of the result; strides are 0 where it repeats.
struct PostOpOperand {
  const std::byte *address = nullptr; ///< Of the element for the low corner of the result; null before `bind`.
  layout::Box box;                    ///< The part that is read; dimensions that repeat have extent 1.
  std::vector<int64_t> strides;       ///< In elements.
  bool isFull = false;                ///< Nothing repeats.
  int64_t alignment = 1;              ///< Of the address, in bytes.
};

/// Errors: DATA_LOSS when the rank does not hold what is needed.
absl::StatusOr<PostOpOperand> operandOf(const RankMemory &memory, const PostOpInfo &op, const layout::Box &box);

/// Applies `ops` from the one at `first` on to each element of `box` of a source, and writes the results to `target`.
class PostOpWork {
public:
  PostOpWork(std::shared_ptr<Context> context, const RankMemory &memory, const std::vector<PostOpInfo> &ops,
             size_t first, layout::Box box)
      : context(std::move(context)), memory(memory), ops(ops), first(first), box(std::move(box)) {}

  /// Whether it can be done.
  absl::Status prepare(ElementType type);
  /// Both views hold the box. Without data, the source is zeros.
  absl::Status bind(const MemoryView &target, const MemoryView &source);
  absl::Status issue(DeviceStream &stream);

private:
  struct Loop {
    int64_t count, targetStride, sourceStride;
    std::vector<int64_t> operandStrides;
  };

  /// With elements of `size` bytes.
  void addJobs(const std::vector<Loop> &loops, const PostOpJob &whole, int64_t size);
  void addJob(PostOpJob job, int64_t rounds, int64_t size);

  std::shared_ptr<Context> context;
  const RankMemory &memory;
  const std::vector<PostOpInfo> &ops;
  size_t first;
  layout::Box box;

  std::vector<PostOpJob> jobs;
  std::vector<int64_t> vectors; ///< Of each job.
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPWORK_H
