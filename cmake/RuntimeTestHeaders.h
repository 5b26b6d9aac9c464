//===- RuntimeTestHeaders.h - What tests of the runtime precompile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As RuntimeHeaders.h, and GoogleTest.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CMAKE_RUNTIMETESTHEADERS_H
#define DOVETAIL_CMAKE_RUNTIMETESTHEADERS_H

#include "RuntimeHeaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#endif // DOVETAIL_CMAKE_RUNTIMETESTHEADERS_H
