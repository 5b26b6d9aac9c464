//===- GatheredConvolution.h - Convolution of any form ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines convolutions of any form by the runtime's own kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_GATHEREDCONVOLUTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_GATHEREDCONVOLUTION_H

#include "KernelConvolution.h"

#include "dovetail/Calls/CallForm.h"

namespace dovetail::runtime {

/// A convolution with any windows, pads and groups, transposed or not. Results of a transposed one that have the same
/// taps are a convolution with stride 1 of their own. Threads divide results among them, or channels where there are
/// few results.
class GatheredConvolution : public KernelConvolution {
public:
  /// `form` is that of the whole call, whose input has `wholeShape`, and a group `wholeInputs` and `wholeOutputs`
  /// channels; the part has `groups` groups, or some channels of one.
  GatheredConvolution(Operands operands, const calls::ConvolutionForm &form, int64_t groups,
                      const std::vector<int64_t> &wholeShape, int64_t wholeInputs, int64_t wholeOutputs,
                      ThreadPool *threads);
  std::string packedFormat() const override;
  void limitScratch(int64_t bytes) override;

private:
  /// Results that have the same taps.
  struct Phase {
    GatheredTask task{};
    GatheredWeights weights{};
    int64_t outputOffset = 0, weightsOffset = 0; ///< Of the first result, and of the first tap.
    int64_t packedOffset = 0;                    ///< In elements.
    int64_t packedElements = 0;
    /// What threads divide if there are few results: vectors, or panels of all groups.
    int64_t units = 0;
  };

  const char *algorithm() const override { return "gathered"; }
  int64_t weightBytes() const override;
  int64_t threadBytes() const override;
  void setAddresses(const float *input, float *output, const float *weights, float *packed,
                    const Epilogue &epilogue) override;
  void packPart(int64_t part, int64_t parts) override;
  void runPart(int64_t part, int64_t parts, std::byte *scratch) override;

  void addPhase(const calls::ConvolutionForm &form, const std::vector<int64_t> &remainders);
  int64_t scratchOf(const GatheredTask &task) const;
  static void findPlainRows(GatheredTask &task);

  int64_t groups, inputs, outputs;   ///< Of the part, and channels of a group.
  int64_t wholeInputs, wholeOutputs; ///< Channels that a group has on all ranks.
  bool skipsTaps;
  std::vector<Phase> phases;
  int64_t packedElements = 0;
  std::string format;
  float *packed = nullptr;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_GATHEREDCONVOLUTION_H
