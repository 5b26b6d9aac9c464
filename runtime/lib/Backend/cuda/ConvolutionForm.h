//===- ConvolutionForm.h - A way to do a convolution by cuDNN --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines one way to do a convolution: where its operands lie, which post-ops are the library's, and all that surrounds
// the library's call then.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONFORM_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONFORM_H

#include "CudnnGraph.h"
#include "PostOpWork.h"
#include "Staging.h"

namespace dovetail::runtime::cuda {

/// A convolution, whichever way it is done.
struct ConvolutionTask {
  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  bool packOnce; ///< Weights never change: they are packed when the session starts.
  ConvolutionGeometry geometry = {};

  int spatial() const { return static_cast<int>(call.form.windows.size()); }
};

/// Where the operands of a convolution lie, and what the library does of its post-ops.
struct ConvolutionChoice {
  StagingMode mode;
  size_t fused; ///< The first post-ops are the library's.
  /// It adds the second post-op's tensor, then the first one's, which is a bias.
  bool tensorFirst = false;

  /// All choices for a convolution, the best first as far as that is known. Those come first that copy nothing, and
  /// among them those with the most post-ops.
  static std::vector<ConvolutionChoice> all(const ConvolutionTask &task);
};

class ConvolutionForm {
public:
  /// `log` may be null.
  ConvolutionForm(const ConvolutionTask &task, ConvolutionChoice choice, CandidateLog *log);

  /// See `CudnnGraph::choosePlans`.
  absl::StatusOr<bool> plan(PlanSource source, size_t count, Workspace &workspace);
  size_t planCount() const { return graph ? graph->planCount() : 0; }
  /// Whether what is left to the runtime can be done.
  absl::Status prepare();
  /// All ways share `scratchMemory` and `packed`.
  absl::Status bind(std::byte *scratchMemory, std::byte *packed);
  absl::Status pack(DeviceStream &stream);
  absl::Status issue(DeviceStream &stream, size_t plan);
  /// Adds its operands to the report.
  void report(LibraryCallReport &report) const;
  std::string implementation(size_t plan) const { return graph->implementation(plan); }
  CallCandidate &candidate(size_t plan) const { return graph->candidate(plan); }
  int64_t packedBytes() const { return staging.packedBytes; }
  bool isCut() const { return staging.isCut; }
  /// Whether it is the same as another one.
  bool isLike(const ConvolutionForm &other) const;

private:
  absl::Status describe();
  bool addPostOp(const PostOpInfo &op, int input, int output);
  CudnnGraph::Tensor describe(const MemoryView &view, const layout::Box &box, int64_t alignment) const;
  CudnnGraph::Tensor describe(const StagedOperand &operand) const {
    return describe(operand.view, operand.view.box, operand.alignment);
  }
  const StagedOperand &target() const { return staging.isCut ? staging.full : staging.output; }

  /// The library's post-op of that number.
  const PostOpInfo &postOp(size_t number) const {
    return task.call.postOps[choice.tensorFirst && number < 2 ? 1 - number : number];
  }

  const ConvolutionTask &task;
  ConvolutionChoice choice;
  ConvolutionStaging staging;
  CandidateLog *log;
  int64_t workspaceOffset = 0;
  std::unique_ptr<CudnnGraph> graph;
  bool isDescribed = true;         ///< The library has all operations.
  std::vector<int> operandTensors; ///< The graph's number of each fused op's tensor, negative if there is none.
  int inTensor = 0, weightsTensor = 0, outTensor = 0;
  std::unique_ptr<PostOpWork> finish;               ///< The post-ops that remain, or a copy.
  std::shared_ptr<std::byte> padding, surroundings; ///< Zeros, for the copies.
  std::unique_ptr<DeviceWork> copyIn, copyWeights, cut;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONFORM_H
