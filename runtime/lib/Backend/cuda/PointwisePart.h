//===- PointwisePart.h - Convolutions that are products --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how cuBLASLt does a convolution step's part without windows. On an H100, in f32, cuDNN takes 13 to 340 us for
// such parts of ResNet-50, the product 4 to 20.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_POINTWISEPART_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_POINTWISEPART_H

#include "ConvolutionPart.h"
#include "ProductEpilogue.h"

namespace dovetail::runtime::cuda {

class PointwisePart : public ConvolutionWork {
public:
  /// Null if the part of `channels` has windows, or the library has no algorithm for it or is not there. Errors:
  /// DATA_LOSS when the rank does not hold what is needed.
  static absl::StatusOr<std::unique_ptr<PointwisePart>> create(LibraryHandles &handles, const RankMemory &memory,
                                                               const ConvolutionCall &call,
                                                               const ConvolutionChannels &channels,
                                                               LibraryCallOptions options, int64_t workspace);

  absl::Status prepare() override;
  absl::Status bind(std::byte *scratchMemory, std::byte *&packed) override;
  absl::Status pack(DeviceStream &stream) override;
  absl::Status issue(DeviceStream &stream) override;
  void report(LibraryCallReport &report) const override;

private:
  PointwisePart(LibraryHandles &handles, const RankMemory &memory, const ConvolutionCall &call,
                ConvolutionGeometry geometry, LibraryCallOptions options, int64_t workspace)
      : handles(handles), memory(memory), call(call), geometry(std::move(geometry)), options(options),
        allowed{workspace}, packOnce(!options.inPrologue && memory.isConstant(call.weights)) {}

  absl::StatusOr<bool> plan(StagingMode mode);
  absl::StatusOr<bool> planCall(size_t fused);

  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  ConvolutionGeometry geometry;
  LibraryCallOptions options;
  Workspace allowed;
  bool packOnce; ///< Weights never change: they are packed when the session starts.

  std::optional<PointwiseStaging> staging;
  int64_t workspaceOffset = 0;
  std::unique_ptr<MatrixCall> matrixCall;
  CandidateLog log;
  BatchLoops<3> calls; ///< Rows that the library does not know as such, with strides of input, c and output.
  ProductEpilogue epilogue;
  std::unique_ptr<PostOpWork> finish; ///< Post-ops that are left, or a copy.
  std::unique_ptr<DeviceWork> copyIn, copyWeights;
  std::byte *workspace = nullptr;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_POINTWISEPART_H
