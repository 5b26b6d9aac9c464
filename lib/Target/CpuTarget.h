//===- CpuTarget.h - The target cpu -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the target of x86-64 CPUs.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TARGET_CPUTARGET_H
#define DOVETAIL_LIB_TARGET_CPUTARGET_H

#include "dovetail/Target/Target.h"

namespace dovetail {

const Target *getCpuTarget();

} // namespace dovetail

#endif // DOVETAIL_LIB_TARGET_CPUTARGET_H
