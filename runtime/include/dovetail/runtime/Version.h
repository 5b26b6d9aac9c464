//===- Version.h - The version of Dovetail ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what version libraries, tools and artifacts say that they are of.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_VERSION_H
#define DOVETAIL_RUNTIME_VERSION_H

namespace dovetail::runtime {

/// Such as "0.1.0". It does not name the commit: artifacts of equal compilers are equal.
const char *version();

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_VERSION_H
