//===- NanRecovery.h - NaN in library calls ---------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how NaN comes out of library calls whose post-ops cut values off.
//
// oneDNN cuts off with `maxps` and `minps`, which give their second operand, the bound, for NaN. Where it computes
// Sigmoid element by element, it compares, and gives zero for NaN. All of these also raise the thread's flag of invalid
// operations for any NaN. Finite values never raise this flag, so a call that leaves it clear has lost no NaN, which
// costs two instructions to find out. Any other call is computed once more, to memory of its own, without the operation
// that loses NaN. Each NaN found there is put into the result.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_NANRECOVERY_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_NANRECOVERY_H

#include "Kernels/VectorKernels.h"
#include "OneDnn.h"

#include <functional>
#include <memory>

namespace dovetail::runtime {

/// The post-op as steps of own kernels if it turns NaN into a bound in the library; else none.
std::vector<EpilogueStep> cutSteps(const PostOpInfo &op);

/// Whether the library makes numbers of NaN, at least where it computes the post-op element by element.
bool mayLoseNan(const PostOpInfo &op);

/// A post-op that may lose NaN in the library, by own kernels on the elements of `box` of `view`. NaN stays NaN.
class KernelPass {
public:
  KernelPass(const PostOpInfo &op, const MemoryView &view, const layout::Box &box);
  /// `data` is the view's.
  void run(std::byte *data) const;

private:
  void apply(float *data, int64_t count) const;

  Epilogue epilogue;
  bool isSigmoid; ///< Else it is `epilogue`.
  ElementType type;
  std::vector<BoxPair> pairs;
};

/// Puts NaN into the results of a call, whichever memory it writes to.
class NanRecovery {
public:
  /// Makes the library's description of the call, with other attributes and the same packed weights. May throw
  /// dnnl::error.
  using Describe = std::function<dnnl::primitive_desc(const dnnl::primitive_attr &)>;

  /// `before`: the attributes without the operation that may lose NaN, and what follows. `isRelu`: the operation cuts
  /// off below zero, and is the last. The call writes `box` of `view`, which the library sees as `desc`.
  NanRecovery(const Describe &describe, const dnnl::primitive_attr &before, bool isRelu, const MemoryView &view,
              const layout::Box &box, dnnl::memory::desc desc);

  /// The tensor that the call adds before it cuts off, as it finds it in the result's memory.
  enum class Addend {
    None,
    Kept,   ///< Also lies elsewhere: `refill` copies it.
    InPlace ///< The call writes over it, and cuts off the sums as they are.
  };

  /// Runs `call`, whose result is the view's `data`. Errors: INTERNAL, RESOURCE_EXHAUSTED when there is no memory for
  /// the second time.
  absl::Status run(const LibraryCall &call, std::byte *data, Addend addend,
                   const std::function<absl::Status(std::byte *)> &refill);

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  static absl::StatusOr<Memory> allocate(size_t bytes);
  bool isFinite(std::byte *data) const;
  absl::Status recover(const LibraryCall &call, std::byte *data, std::byte *plain);

  dnnl::primitive_desc description; ///< Of the call up to what loses NaN.
  bool isRelu;
  ElementType type;
  std::vector<BoxPair> pairs; ///< All elements, in two memories that lie as the view does.
  dnnl::memory::desc resultDesc;
  dnnl::primitive primitive; ///< Created when it is needed.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_NANRECOVERY_H
