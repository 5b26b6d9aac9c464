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

#include "../common/ConvolutionGeometry.h"
#include "../common/WindowGeometry.h"
#include "CudnnGraph.h"
#include "PostOpWork.h"
#include "Staging.h"

namespace dovetail::runtime::cuda {

class ConvolutionPart {
public:
  ConvolutionPart(LibraryHandles &handles, const RankMemory &memory, const ConvolutionCall &call,
                  ConvolutionChannels channels, LibraryCallOptions options)
      : handles(handles), memory(memory), call(call), channels(channels), options(options),
        packOnce(!options.inPrologue && memory.isConstant(call.weights)),
        spatial(static_cast<int>(call.strides.size())) {}

  absl::Status prepare();
  int64_t scratchBytes() const { return scratch.size(); }
  int64_t packedBytes() const { return packOnce && stagedWeights ? weightsView.bytes() : 0; }
  absl::Status bind(std::byte *scratchMemory);
  absl::Status pack(DeviceStream &stream);
  absl::Status issue(DeviceStream &stream);

private:
  /// With all operands copied to packed memory, or those only that must be.
  absl::StatusOr<bool> plan(bool stageAll);
  /// A graph with the first `fused` post-ops.
  absl::StatusOr<bool> planGraph(size_t fused);
  bool addPostOp(CudnnGraph &graph, const PostOpInfo &op, int input, int output);
  CudnnGraph::Tensor describe(const MemoryView &view, const layout::Box &box, bool packed) const;
  MemoryFormat libraryFormat(int rank) const;

  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  ConvolutionChannels channels;
  LibraryCallOptions options;
  bool packOnce; ///< Weights never change: they are packed when the session starts.
  int spatial;

  ConvolutionGeometry geometry;
  bool channelsLast = true;

  Scratch scratch;
  MemoryView inView, weightsView, outView, fullView; ///< What the library sees.
  bool stagedIn = false, stagedWeights = false, stagedOut = false;
  int64_t inOffset = 0, weightsOffset = 0, outOffset = 0, fullOffset = 0, workspaceOffset = 0;
  std::unique_ptr<CudnnGraph> graph;
  std::vector<int> operandTensors; ///< The graph's number of each fused op's tensor, negative if there is none.
  int inTensor = 0, weightsTensor = 0, outTensor = 0, tensorCount = 0;
  std::unique_ptr<PostOpWork> finish; ///< What remains: post-ops, or a copy.

  std::shared_ptr<std::byte> packed;
  std::unique_ptr<DeviceWork> copyIn, copyWeights, cut;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CONVOLUTIONPART_H
