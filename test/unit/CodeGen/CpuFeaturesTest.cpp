//===- CpuFeaturesTest.cpp - What compiler and runtime say of a CPU ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/runtime/HostFeatures.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <set>

using namespace dovetail;

namespace {

/// What is compiled for this machine runs on it.
TEST(CpuFeatures, TheRuntimeFindsThoseOfThisMachine) {
  std::vector<std::string> features = getCpuFeatures("native");
  EXPECT_FALSE(features.empty());
  for (const std::string &feature : features)
    EXPECT_TRUE(runtime::hostHasFeature(feature)) << feature;
}

/// LLVM knows what CPUs of each level have.
TEST(CpuFeatures, LevelsHaveTheFeaturesThatLLVMGivesThem) {
  std::set<std::string> all;
  for (const char *cpu : {"x86-64-v4", "sapphirerapids", "znver5", "znver1", "bdver4"}) {
    std::vector<std::string> features = getCpuFeatures(cpu);
    all.insert(features.begin(), features.end());
  }
  EXPECT_GT(all.size(), 30u);
  for (const char *name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    absl::StatusOr<runtime::CpuLevel> level = runtime::parseCpuLevel(name);
    ASSERT_TRUE(level.ok());
    EXPECT_EQ(runtime::cpuLevelName(*level), name);
    std::vector<std::string> own = getCpuFeatures(name);
    EXPECT_FALSE(own.empty());
    for (const std::string &feature : all)
      EXPECT_EQ(runtime::levelHasFeature(*level, feature), llvm::is_contained(own, feature)) << name << " " << feature;
  }
  for (const std::string &feature : all)
    EXPECT_TRUE(runtime::levelHasFeature(runtime::CpuLevel::Unlimited, feature)) << feature;
}

TEST(CpuFeatures, OtherNamesAreNoLevels) {
  for (const char *name : {"x86-64", "native", "haswell", "X86-64-V3", "x86-64-v3 "}) {
    absl::Status status = runtime::parseCpuLevel(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
  }
  EXPECT_EQ(*runtime::parseCpuLevel(""), runtime::CpuLevel::Unlimited);
}

TEST(CpuFeatures, WhatNobodyKnowsIsMissing) { EXPECT_FALSE(runtime::hostHasFeature("avx1024")); }

} // namespace
