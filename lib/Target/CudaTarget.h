//===- CudaTarget.h - The target cuda -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the target of NVIDIA devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TARGET_CUDATARGET_H
#define DOVETAIL_LIB_TARGET_CUDATARGET_H

#include "dovetail/Target/Target.h"

namespace dovetail {

const Target *getCudaTarget();

} // namespace dovetail

#endif // DOVETAIL_LIB_TARGET_CUDATARGET_H
