//===- ScatteredConvolution.h - Transposed, of few outputs ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines transposed convolutions of few output channels by the runtime's own kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_SCATTEREDCONVOLUTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_SCATTEREDCONVOLUTION_H

#include "KernelConvolution.h"

#include "dovetail/Calls/CallForm.h"

namespace dovetail::runtime {

/// A transposed convolution without groups that multiplies inputs with the weights of all taps, and adds the products
/// to results (`calls::isScattered`). Threads divide the results of the outermost spatial dimension; inputs that
/// results of two threads need are multiplied twice.
class ScatteredConvolution : public KernelConvolution {
public:
  /// `form` is that of the whole call.
  ScatteredConvolution(Operands operands, const calls::ConvolutionForm &form, ThreadPool *threads);
  std::string packedFormat() const override;
  void limitScratch(int64_t bytes) override;

private:
  const char *algorithm() const override { return "scattered"; }
  int64_t weightBytes() const override;
  int64_t threadBytes() const override;
  /// Elements of the sums of a line.
  int64_t lineSize() const;
  void setAddresses(const float *input, float *output, const float *weights, float *packed,
                    const Epilogue &epilogue) override;
  void packPart(int64_t part, int64_t parts) override;
  void runPart(int64_t part, int64_t parts, std::byte *scratch) override;

  ScatteredTask task{};
  const float *from = nullptr; ///< Weights as they are given.
  float *packed = nullptr;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_SCATTEREDCONVOLUTION_H
