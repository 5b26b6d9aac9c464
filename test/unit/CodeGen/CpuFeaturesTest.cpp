//===- CpuFeaturesTest.cpp - What compiler and runtime say of a CPU ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program/HostFeatures.h"
#include "dovetail/CodeGen/CPU/Compile.h"

#include "gtest/gtest.h"

using namespace dovetail;

namespace {

/// What is compiled for this machine runs on it.
TEST(CpuFeatures, TheRuntimeFindsThoseOfThisMachine) {
  std::vector<std::string> features = getCpuFeatures("native");
  EXPECT_FALSE(features.empty());
  for (const std::string &feature : features)
    EXPECT_TRUE(runtime::hostHasFeature(feature)) << feature;
}

TEST(CpuFeatures, WhatNobodyKnowsIsMissing) { EXPECT_FALSE(runtime::hostHasFeature("avx1024")); }

} // namespace
