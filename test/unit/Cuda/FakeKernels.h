//===- FakeKernels.h - The runtime's kernels on the host ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the host build of the runtime's own kernels is run.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_CUDA_FAKEKERNELS_H
#define DOVETAIL_TEST_CUDA_FAKEKERNELS_H

#include "FakeDriver.h"

#include "Backend/device/kernels/PostOpKernels.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dovetail::test {

/// A block whose threads go from barrier to barrier one after the other, with as much shared memory as is asked for.
class FakeBlock {
public:
  FakeBlock(int64_t index, int64_t count, unsigned threads, unsigned sharedBytes)
      : blockIndex(index), blocks(count), threads(threads), memory(new char[sharedBytes]) {}

  int64_t index() const { return blockIndex; }
  int64_t count() const { return blocks; }
  char *shared() const { return memory.get(); }
  template <typename Part> void run(Part part) const {
    for (unsigned thread = threads; thread-- > 0;)
      part(thread);
  }
  template <typename Part> void runAndWait(Part part) const { run(part); }

private:
  int64_t blockIndex, blocks;
  unsigned threads;
  std::unique_ptr<char[]> memory;
};

/// Runs one of the kernels. From the last block and thread to the first: the order must not matter.
inline void runKernel(const std::string &name, unsigned blocks, unsigned threads, unsigned shared,
                      const std::vector<int64_t> &numbers) {
  using namespace runtime::device;
  if (name == "dovetail_copy_boxes")
    for (int64_t block = blocks; block-- > 0;)
      copyBoxes(BoxTable{reinterpret_cast<const BoxJob *>(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4]},
                FakeBlock(block, blocks, threads, shared));
  int64_t count = static_cast<int64_t>(blocks) * threads;
  if (name == "dovetail_combine_boxes")
    for (int64_t index = count; index-- > 0;)
      combineBoxes(reinterpret_cast<const BoxJob *>(numbers[0]), numbers[1], numbers[2],
                   static_cast<JobType>(numbers[3]), static_cast<JobReduction>(numbers[4]), index, count);
}

/// Runs the kernel of post-ops, with the parameters of now.
inline std::function<void()> postOps(unsigned blocks, unsigned threads, void **parameters, FakeDriverLog &log) {
  using runtime::device::PostOpJob;
  return [=, &log, job = *static_cast<PostOpJob *>(parameters[0]), vectors = *static_cast<int64_t *>(parameters[1])] {
    ++log.launches;
    log.clock += log.launchTime;
    log.postOpWidth = job.width;
    for (int64_t block = blocks; block-- > 0;)
      for (unsigned thread = threads; thread-- > 0;)
        runtime::device::applyPostOps(job, vectors, block, thread);
  };
}

/// How many integers a kernel has as parameters; `others` for kernels of tests.
inline int kernelParameters(const std::string &name, int others) {
  return name == "dovetail_copy_boxes"      ? 5
         : name == "dovetail_combine_boxes" ? 5
         : name == "dovetail_post_ops"      ? 0
                                            : others;
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_CUDA_FAKEKERNELS_H
