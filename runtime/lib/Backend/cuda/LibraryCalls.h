//===- LibraryCalls.h - Steps done by NVIDIA's libraries --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARYCALLS_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARYCALLS_H

#include "Libraries.h"

namespace dovetail::runtime::cuda {

using LibraryCallOr = absl::StatusOr<std::unique_ptr<DeviceLibraryCall>>;

/// The factories return null when the rank has nothing to do. Calls keep to `stagedCallBytes`; libraries may take
/// `workspace` bytes of that.
LibraryCallOr createLibraryCall(const std::shared_ptr<LibraryHandles> &handles, const RankMemory &memory,
                                const StepInfo &step, LibraryCallOptions options);
LibraryCallOr createConvolution(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory,
                                const ConvolutionCall &call, LibraryCallOptions options, int64_t workspace);
LibraryCallOr createMatMul(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory, const MatMulCall &call,
                           LibraryCallOptions options, int64_t workspace);
LibraryCallOr createTransform(std::shared_ptr<LibraryHandles> handles, const RankMemory &memory,
                              const TransformCall &call, int64_t workspace);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARYCALLS_H
