//===- KernelEpilogue.h - Epilogues of own kernels --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what becomes of post-ops where the runtime's own kernels do a call.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELEPILOGUE_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELEPILOGUE_H

#include "Kernels/VectorKernels.h"
#include "PostOps.h"

#include <optional>

namespace dovetail::runtime {

/// The steps of `fused`, without the addresses of its bias and of what is added; nothing if the kernels lack one.
std::optional<Epilogue> kernelEpilogue(const PostOps::Fused &fused);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELEPILOGUE_H
