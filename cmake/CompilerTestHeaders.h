//===- CompilerTestHeaders.h - What tests of the compiler precompile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As PlanHeaders.h, and GoogleTest.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_COMPILERTESTHEADERS_H
#define DOVETAIL_CMAKE_COMPILERTESTHEADERS_H

#include "PlanHeaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#endif // DOVETAIL_CMAKE_COMPILERTESTHEADERS_H
