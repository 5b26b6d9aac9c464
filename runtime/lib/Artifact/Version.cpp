//===- Version.cpp - The version of Dovetail ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Version.h"

const char *dovetail::runtime::version() { return DOVETAIL_VERSION; }
