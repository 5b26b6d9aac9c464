//===- PointwisePart.h - Convolutions that are products --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how cuBLASLt does some parts of convolution steps: those of windows of one element, and of transposed windows
// side by side. On an H100, in f32, cuDNN takes 13 to 340 us for such parts of ResNet-50, and 58 to 67 for those of a
// U-Net. Products of the same sizes take 4 to 20.
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

  /// The product of a tap.
  struct Product {
    int64_t in = 0, weights = 0, added = 0, out = 0; ///< The first elements of operands, from those of the part on.
    BatchLoops<3> calls; ///< Rows that the library does not know as such, with strides of input, c and output.
    ProductEpilogue epilogue;
    std::unique_ptr<MatrixCall> call;
  };

  absl::StatusOr<bool> plan(StagingMode mode);
  absl::StatusOr<bool> planProducts(size_t fused);
  /// How many taps along the last dimension are one product with the first `fused` post-ops.
  absl::StatusOr<int64_t> joinedTaps(size_t fused) const;
  /// Repeats the bias for all of these at `address`.
  absl::Status bindBias(std::byte *address);
  /// Of the tap at `taps`. Nothing if none of the part's elements have it.
  absl::StatusOr<bool> planProduct(size_t fused, const std::vector<int64_t> &taps);
  /// Calls `body` with the addresses of a product's operands, `at` elements from the first ones.
  template <typename Body>
  absl::Status forOperands(const Product &product, const std::array<int64_t, 3> &at, Body body) const {
    int64_t size = elementSize(staging->output.view.type);
    const std::byte *added = product.epilogue.addedData();
    return body(staging->input.view.data + (product.in + at[0]) * size,
                staging->weights.view.data + product.weights * size,
                added ? added + (product.added + at[1]) * size : nullptr,
                staging->output.view.data + (product.out + at[2]) * size);
  }

  LibraryHandles &handles;
  const RankMemory &memory;
  const ConvolutionCall &call;
  ConvolutionGeometry geometry;
  LibraryCallOptions options;
  Workspace allowed;
  bool packOnce; ///< Weights never change: they are packed when the session starts.

  std::optional<PointwiseStaging> staging;
  int64_t workspaceOffset = 0;
  std::vector<Product> products;
  int64_t joined = 1;                                  ///< Taps of a product along the last dimension.
  std::vector<std::unique_ptr<DeviceWork>> biasCopies; ///< That of each of these.
  CandidateLog log;
  std::unique_ptr<PostOpWork> finish; ///< Post-ops that are left, or a copy.
  std::unique_ptr<DeviceWork> copyIn, copyWeights;
  std::byte *workspace = nullptr;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_POINTWISEPART_H
