//===- KernelConvolution.h - Convolution by own kernels -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what convolutions that the runtime's own kernels do have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELCONVOLUTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELCONVOLUTION_H

#include "../../Memory/Alignment.h"
#include "../../Threads/ThreadPool.h"
#include "CallBudget.h"
#include "Kernels/VectorKernels.h"
#include "PostOps.h"

namespace dovetail::runtime {

/// A convolution in f32, or some groups of it. Input and result may lie anywhere in memory as long as channels follow
/// each other: no copies are needed for pads, slices or strides. Results do not depend on how threads divide them.
///
/// Use: construct; `create` until it suits; `prepare`; `bind`; `pack` once, if weights never change; `run`.
class KernelConvolution {
public:
  struct Operands {
    MemoryView input, output, weights; ///< The parts that are used, without addresses.
    std::vector<int> spatial;          ///< The spatial dimensions, outermost in memory first.
    bool packOnce;                     ///< Weights never change.
  };

  /// Whether `view` lies as the kernels want it, channels being in dimension 1.
  static bool takes(const MemoryView &view);
  /// Whether the kernels do all of `ops`, given that one at most adds a tensor like the result.
  static bool takes(const std::vector<PostOpInfo> &ops);

  virtual ~KernelConvolution() = default;

  /// Has it do with `bytes` of scratch memory, if it can.
  virtual void limitScratch(int64_t /*bytes*/) {}
  /// Whether what is fused can be done, within `budget`, besides `scratchUse` bytes of scratch memory; with `isShared`
  /// somebody else packs the weights.
  PostOps::Outcome create(const PostOps::Fused &fused, CallBudget &budget, int64_t scratchUse, bool isShared);
  void prepare(ScratchPlan &scratch);
  /// `packed` has room for `packedBytes`.
  void bind(std::byte *scratch, std::byte *packed, std::byte *input, std::byte *output, const std::byte *weights,
            const std::byte *bias);
  /// If weights never change, makes what the kernels want of them.
  void pack();
  void run();
  /// Of memory that is kept.
  int64_t packedBytes() const { return operands.packOnce ? weightBytes() : 0; }
  /// What computes it, and for which instruction set.
  std::string implementation() const;
  /// What `pack` makes of given weights, as text: equal where the bytes are.
  virtual std::string packedFormat() const = 0;

protected:
  /// `threads` outlives the object. Without them the thread that calls does all.
  KernelConvolution(Operands operands, ThreadPool *threads);

  virtual const char *algorithm() const = 0;
  /// What packed weights take, and scratch memory of each thread; multiples of the alignment.
  virtual int64_t weightBytes() const = 0;
  virtual int64_t threadBytes() const = 0;
  virtual void setAddresses(const float *input, float *output, const float *weights, float *packed,
                            const Epilogue &epilogue) = 0;
  /// Do one of `parts` parts of the work.
  virtual void packPart(int64_t part, int64_t parts) = 0;
  virtual void runPart(int64_t part, int64_t parts, std::byte *scratch) = 0;

  int numThreads() const { return threads ? threads->size() : 1; }

  Operands operands;
  const VectorKernels &kernels;

private:
  /// Has each thread do its part of the work, with its scratch memory.
  void divide(void (KernelConvolution::*work)(int64_t part));
  void packThread(int64_t thread) { packPart(thread, numThreads()); }
  void runThread(int64_t thread) { runPart(thread, numThreads(), blocks + threadBytes() * thread); }

  ThreadPool *threads;
  Epilogue epilogue;
  bool fusesBias = false;
  int64_t weightsOffset = 0, blocksOffset = 0;
  std::byte *blocks = nullptr;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELCONVOLUTION_H
