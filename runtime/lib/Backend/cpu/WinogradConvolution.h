//===- WinogradConvolution.h - Convolution by Winograd ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines convolutions of 3 x 3 with stride 1 by Winograd's algorithm.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_WINOGRADCONVOLUTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_WINOGRADCONVOLUTION_H

#include "KernelConvolution.h"

namespace dovetail::runtime {

/// Threads divide tiles among them, or channels where there are few tiles.
class WinogradConvolution : public KernelConvolution {
public:
  /// `padRows`, `padColumns`: zeros before the input in its two spatial dimensions.
  WinogradConvolution(Operands operands, int64_t padRows, int64_t padColumns, ThreadPool *threads);
  std::string packedFormat() const override;

private:
  const char *algorithm() const override { return "winograd"; }
  int64_t weightBytes() const override;
  int64_t threadBytes() const override;
  void setAddresses(const float *input, float *output, const float *weights, float *packed,
                    const Epilogue &epilogue) override;
  void packPart(int64_t part, int64_t parts) override;
  void runPart(int64_t part, int64_t parts, std::byte *scratch) override;

  WinogradTask task{};
  WinogradWeights weights{};
  float *packed = nullptr;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_WINOGRADCONVOLUTION_H
