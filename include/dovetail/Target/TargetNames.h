//===- TargetNames.h - Names of targets ------------------------ -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which targets users may ask for, for programs that do not load the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TARGET_TARGETNAMES_H
#define DOVETAIL_TARGET_TARGETNAMES_H

namespace dovetail {

/// As in `--target`. Tests know others.
inline constexpr const char *publicTargets[] = {"cpu", "cuda"};

} // namespace dovetail

#endif // DOVETAIL_TARGET_TARGETNAMES_H
