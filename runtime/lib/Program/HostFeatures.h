//===- HostFeatures.h - What this machine's CPU can do ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_HOSTFEATURES_H
#define DOVETAIL_RUNTIME_PROGRAM_HOSTFEATURES_H

#include <string>

namespace dovetail::runtime {

/// Whether this machine has the CPU feature with the given LLVM name, such as `avx512f`. Features that cannot be
/// detected count as missing.
bool hostHasFeature(const std::string &name);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_HOSTFEATURES_H
