//===- EmulatedTarget.h - The target emulated -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the target of the device that tests emulate.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TARGET_EMULATEDTARGET_H
#define DOVETAIL_LIB_TARGET_EMULATEDTARGET_H

#include "dovetail/Target/Target.h"

namespace dovetail {

const Target *getEmulatedTarget();

} // namespace dovetail

#endif // DOVETAIL_LIB_TARGET_EMULATEDTARGET_H
