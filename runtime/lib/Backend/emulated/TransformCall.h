//===- TransformCall.h - Fourier transforms by definition -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the one library call that the emulated device has.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_TRANSFORMCALL_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_TRANSFORMCALL_H

#include "dovetail/runtime/Device.h"

namespace dovetail::runtime::emulated {

/// The transform of `call` on the rank of `memory`, by the definition, which takes n^2 products for n points. Spectra
/// that real numbers do not have become what is no number, as libraries may have them. Null when the rank has nothing
/// to do.
std::unique_ptr<DeviceLibraryCall> createTransform(const RankMemory &memory, const TransformCall &call);

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_TRANSFORMCALL_H
