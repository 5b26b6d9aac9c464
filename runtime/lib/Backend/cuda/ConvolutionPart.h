//===- ConvolutionPart.h - A convolution by cuDNN --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines one call of cuDNN of a convolution step with all that surrounds it: copies into layouts that the library has
// plans for, padding, packed weights and post-ops.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H

#include "CudnnGraph.h"
#include "PostOpWork.h"
#include "Staging.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace dovetail::runtime::cuda {

/// A part of a convolution step, by whatever library.
class ConvolutionWork {
public:
  virtual ~ConvolutionWork() = default;
  virtual absl::Status prepare() = 0;
  /// Of `packed`, which is advanced.
  virtual absl::Status bind(std::byte *scratchMemory, std::byte *&packed) = 0;
  virtual absl::Status pack(DeviceStream &stream) = 0;
  virtual absl::Status issue(DeviceStream &stream) = 0;
  /// Adds to the report of all parts.
  virtual void report(LibraryCallReport &report) const = 0;

protected:
  /// Parts differ in their shapes, and then perhaps in their engines.
  static void addImplementation(LibraryCallReport &report, const std::string &own) {
    if (!absl::StrContains(report.implementation, own))
      absl::StrAppend(&report.implementation, report.implementation.empty() ? "" : ", ", own);
  }
};

class ConvolutionPart : public ConvolutionWork {
public:
  ConvolutionPart(LibraryHandles &handles, const RankMemory &memory, const ConvolutionCall &call,
                  ConvolutionChannels channels, LibraryCallOptions options, int64_t workspace)
      : handles(handles), memory(memory), call(call), channels(channels), options(options), workspace{workspace},
        packOnce(!options.inPrologue && memory.isConstant(call.weights)),
        spatial(static_cast<int>(call.form.windows.size())) {}

  absl::Status prepare() override;
  absl::Status bind(std::byte *scratchMemory, std::byte *&packed) override;
  absl::Status pack(DeviceStream &stream) override;
  absl::Status issue(DeviceStream &stream) override;
  void report(LibraryCallReport &report) const override;

private:
  absl::StatusOr<bool> plan(StagingMode mode);
  /// A graph with the first `fused` post-ops.
  absl::StatusOr<bool> planGraph(size_t fused);
  bool addPostOp(CudnnGraph &graph, const PostOpInfo &op, int input, int output);
  CudnnGraph::Tensor describe(const MemoryView &view, const layout::Box &box, int64_t alignment) const;
  CudnnGraph::Tensor describe(const StagedOperand &operand) const {
    return describe(operand.view, operand.view.box, operand.alignment);
  }
  const StagedOperand &target() const { return staging->isCut ? staging->full : staging->output; }

  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  ConvolutionChannels channels;
  LibraryCallOptions options;
  Workspace workspace;
  bool packOnce; ///< Weights never change: they are packed when the session starts.
  int spatial;

  ConvolutionGeometry geometry;
  std::optional<ConvolutionStaging> staging; ///< Null if there is nothing to sum.
  int64_t workspaceOffset = 0;
  std::unique_ptr<CudnnGraph> graph;
  CandidateLog log;
  std::vector<int> operandTensors; ///< The graph's number of each fused op's tensor, negative if there is none.
  int inTensor = 0, weightsTensor = 0, outTensor = 0, tensorCount = 0;
  std::unique_ptr<PostOpWork> finish; ///< What remains: post-ops, or a copy.

  std::unique_ptr<DeviceWork> copyIn, copyWeights, cut;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H
