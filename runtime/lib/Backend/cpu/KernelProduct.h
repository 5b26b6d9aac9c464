//===- KernelProduct.h - Product of matrices by own kernels -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines products with weights that the runtime's own kernels do.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELPRODUCT_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELPRODUCT_H

#include "CallBudget.h"
#include "Kernels/VectorKernels.h"
#include "PostOps.h"

namespace dovetail::runtime {

/// A product in f32 whose second factor, one matrix, never changes. The others may be several matrices.
///
/// Use: construct if `isFaster` and `takes`; `create` until it suits; `bind`; `pack` once; `run`.
class KernelProduct {
public:
  /// Whether the kernels are faster than oneDNN on this machine: with AVX-512 that keeps weights in blocks, but with
  /// AVX2 it copies factors in each call, and takes up to three times as long.
  static bool isFaster() { return &hostKernels() == fastKernels(); }
  /// Whether they do products of `rows` x `depth` with `depth` x `columns`, with dimensions before the last two as a
  /// batch. `rowsOfAll`: how many all ranks have together. Of few rows all that takes time is to read weights; that is
  /// asked of the whole product, as ranks are to give what one would, which libraries do not for values that are no
  /// numbers.
  static bool takes(const dnnl::memory::desc &input, const dnnl::memory::desc &weights,
                    const dnnl::memory::desc &output, int64_t rowsOfAll);

  KernelProduct(const dnnl::memory::desc &input, const dnnl::memory::desc &weights, const dnnl::memory::desc &output);

  /// Whether what is fused can be done, within `budget`; with `isShared` somebody else packs the weights.
  PostOps::Outcome create(const PostOps::Fused &fused, CallBudget &budget, bool isShared);
  /// What computes it, and for which instruction set.
  std::string implementation() const;
  /// Of packed weights; a multiple of the alignment.
  int64_t packedBytes() const;
  /// What `pack` makes of given weights, as text: equal where the bytes are.
  std::string packedFormat() const;

  void bind(const std::byte *input, const std::byte *weights, std::byte *packed, std::byte *output,
            const std::byte *bias);
  void pack() const;
  void run() const;

private:
  static const VectorKernels *fastKernels();

  const VectorKernels &kernels;
  ProductTask task{};
  ProductWeights weights{};
  bool fusesBias = false;
  float *packed = nullptr;
  /// Matrices of the batch, in each of its dimensions, and how far they are apart.
  struct Loop {
    int64_t extent, inputStride, outputStride;
  };
  std::vector<Loop> batch;
  int64_t matrices = 1;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELPRODUCT_H
