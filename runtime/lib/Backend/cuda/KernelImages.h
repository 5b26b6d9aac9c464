//===- KernelImages.h - Code of the runtime's own kernels -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the compiled forms of DeviceKernels.cpp that the plug-in carries.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_KERNELIMAGES_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_KERNELIMAGES_H

#include "dovetail/runtime/Device.h"

namespace dovetail::runtime::cuda {

/// PTX for every GPU, and machine code for some if there was an assembler when the plug-in was built.
absl::Span<const CodeImage> kernelImages();

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_KERNELIMAGES_H
