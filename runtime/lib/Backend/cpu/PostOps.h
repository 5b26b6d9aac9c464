//===- PostOps.h - Post-ops of library calls --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the operations applied to a library call's result are fused into the call or, where the library cannot,
// follow it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_POSTOPS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_POSTOPS_H

#include "../../Session/StepExecutor.h"
#include "NanRecovery.h"
#include "OneDnn.h"

#include <functional>

namespace dovetail::runtime {

/// The post-ops of one call: the first few are fused, the others are primitives that work in place on the result. What
/// can be fused are a bias, element by element operations, and one addition of a full tensor, which the library does as
/// a "sum" with what it finds in the result's memory. It offers more, but some of its kernels then give wrong results
/// for small extents.
///
/// Use: construct; `stageOperands`; `prepare` with a function that tries to create the call's primitive; `keepNans`,
/// if the primitive is the library's; `bind`. Each run is `runBefore`, `run` with the call, and `runRest`.
class PostOps {
public:
  /// What is fused into the call.
  struct Fused {
    dnnl::primitive_attr attributes;
    bool hasBias = false;
    dnnl::memory::desc biasDesc;
  };
  enum class Outcome { Fast, Slow, Impossible };

  /// The call computes `box` of `output` and writes it to memory laid out as `view`: the output's own if `direct`, else
  /// memory from which it is copied later. `dims` gives the logical dimension for each of oneDNN's and `order` oneDNN's
  /// dimensions from the outermost to the innermost in that memory; `channel` is the logical dimension along which
  /// the library applies vectors.
  PostOps(const RankMemory &context, const std::vector<PostOpInfo> &ops, uint32_t output, bool direct,
          const layout::Box &box, const MemoryView &view, std::vector<int> dims, std::vector<int> order, int channel,
          dnnl::memory::data_type type);

  /// Whether a post-op reads memory that a call which writes directly to `output` would overwrite too early. (One
  /// addition is possible: the library can add what it finds there.)
  static bool needsStaging(const RankMemory &context, const std::vector<PostOpInfo> &ops, uint32_t output);

  /// Plans the copies of operands that do not lie as the library wants them. Errors: DATA_LOSS.
  absl::Status stageOperands(ScratchPlan &scratch);
  /// Fuses as many ops as possible without making the call slow. `create` tries to create the call's primitive with
  /// what is fused. With `biasFirst`, an addition for each channel (dimension 1) that comes first becomes the call's
  /// bias.
  absl::Status prepare(bool biasFirst, ScratchPlan &scratch, const std::function<Outcome(const Fused &)> &create);
  /// Whether only the library's slow way was possible.
  bool isSlow() const { return slow; }
  /// The same of what follows the call.
  bool isRestSlow() const { return slowRest; }
  /// Fuses nothing: the result does not come from a call.
  absl::Status prepareSeparate(ScratchPlan &scratch);

  /// Has `run` keep NaN in the library's call, which `describe` describes.
  void keepNans(const NanRecovery::Describe &describe) { keepNans(describe, view, box, resultDesc); }
  /// The same where the call writes `box` of `view` in other memory than the result's, as it does with no addition.
  void keepNans(const NanRecovery::Describe &describe, const MemoryView &view, const layout::Box &box,
                const dnnl::memory::desc &desc);

  /// Sets addresses: the result's and the beginning of the scratch memory.
  absl::Status bind(std::byte *result, std::byte *scratch);
  /// Adds the bias to the call, if there is one.
  void addArguments(LibraryCall &call) const;
  /// The fused bias, one element for each channel, after `bind`; null if there is none.
  const std::byte *biasData() const { return fusedBias ? operands[0]->data : nullptr; }
  /// Copies operands to where the library needs them. To be called before the call.
  absl::Status runBefore() const;
  /// Runs the library's call, which writes to `target`, or to the result.
  absl::Status run(const LibraryCall &call, std::byte *target) const;
  absl::Status run(const LibraryCall &call) const { return run(call, data); }
  absl::Status runRest() const;

private:
  /// A tensor that a post-op reads, with the dimensions of the result (new ones have extent 1).
  struct Operand {
    MemoryView source; ///< As the tensor lies in memory, repeated to the result's box; without address.
    MemoryView view;   ///< As the library reads it: `source`, or staged.
    layout::Box box;   ///< The part that is read, inside of `view`'s.
    dnnl::memory::desc desc;
    bool full = false;             ///< One element for each of the result.
    bool inPlace = false;          ///< The operand's elements are the result's memory.
    std::optional<Copier> staging; ///< Into a form that the library takes.
    int64_t stagedOffset = 0;
    std::byte *data = nullptr;
  };
  struct Separate {
    size_t first, count; ///< Ops: one primitive for `first`, the others fused into it.
    dnnl::primitive primitive;
    int64_t scratchpad = 0, scratchpadOffset = 0;
    dnnl::memory::desc scratchpadDesc;
    LibraryCall call;
    std::optional<KernelPass> pass; ///< Done in place of a primitive.
  };

  absl::Status prepareOperand(size_t index, ScratchPlan &scratch);
  void stage(Operand &operand, ScratchPlan &scratch) const;
  /// Whether the operand varies with the channel only, and is one vector in memory.
  bool isBias(size_t index) const;
  /// The first `count` ops as attributes of the call, or nothing if they cannot be fused.
  std::optional<dnnl::primitive_attr> fuse(size_t count);
  absl::Status prepareRest(size_t first, ScratchPlan &scratch);
  bool createSeparate(Separate &separate) const;

  const RankMemory &context;
  const std::vector<PostOpInfo> &ops;
  uint32_t output;
  bool direct;
  layout::Box box;
  std::vector<int> dims, order;
  int channel; ///< Logical dimension.
  dnnl::memory::data_type type;
  dnnl::memory::desc resultDesc;
  std::vector<std::optional<Operand>> operands; ///< For each op.
  MemoryView view;
  MemoryFormat format; ///< That of `view`.
  size_t fusedCount = 0;
  /// The fused operation that may lose NaN, and the attributes of the call up to it.
  struct Cut {
    size_t op;
    bool isRelu; ///< It cuts off below zero.
    dnnl::primitive_attr before;
  };
  std::optional<Cut> cut;
  std::unique_ptr<NanRecovery> recovery;
  std::byte *data = nullptr;     ///< The result.
  std::optional<size_t> sum;     ///< The fused op that adds what is in the result's memory,
  std::optional<Copier> preload; ///< and how it gets there, if it is not there anyway.
  bool biasFirst = false, fusedBias = false, slow = false, slowRest = false;
  std::vector<Separate> rest;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_POSTOPS_H
