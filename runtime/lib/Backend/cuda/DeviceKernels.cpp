//===- DeviceKernels.cpp - The runtime's own device kernels ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by clang for NVPTX to PTX, and by ptxas to machine code. The plug-in carries both: see KernelImages.h.
//
//===----------------------------------------------------------------------===//

#include "../device/kernels/PostOpKernels.h"

using namespace dovetail::runtime::device;

static int64_t threadIndex() {
  return static_cast<int64_t>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() +
         __nvvm_read_ptx_sreg_tid_x();
}

static int64_t threadCount() {
  return static_cast<int64_t>(__nvvm_read_ptx_sreg_nctaid_x()) * __nvvm_read_ptx_sreg_ntid_x();
}

/// As much as the launch asks for.
alignas(16) extern DOVETAIL_SHARED char sharedMemory[];

namespace {

/// The block of this thread, which does its own part.
struct ThisBlock {
  int64_t index() const { return __nvvm_read_ptx_sreg_ctaid_x(); }
  int64_t count() const { return __nvvm_read_ptx_sreg_nctaid_x(); }
  char DOVETAIL_SHARED *shared() const { return sharedMemory; }
  template <typename Part> void run(Part part) const { part(__nvvm_read_ptx_sreg_tid_x()); }
  template <typename Part> void runAndWait(Part part) const {
    run(part);
    __syncthreads();
  }
};

} // namespace

extern "C" {

__attribute__((device_kernel)) void dovetail_copy_boxes(const BoxJob *jobs, int64_t tileJobs, int64_t tiles,
                                                        int64_t chunkJobs, int64_t chunks) {
  copyBoxes(BoxTable{jobs, tileJobs, tiles, chunkJobs, chunks}, ThisBlock());
}

__attribute__((device_kernel)) void dovetail_combine_boxes(const BoxJob *jobs, int64_t jobCount, int64_t chunks,
                                                           int64_t type, int64_t kind) {
  combineBoxes(jobs, jobCount, chunks, static_cast<JobType>(type), static_cast<JobReduction>(kind), threadIndex(),
               threadCount());
}

__attribute__((device_kernel)) void dovetail_post_ops(PostOpJob job, int64_t vectors) {
  applyPostOps(job, vectors, __nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_tid_x());
}
}
