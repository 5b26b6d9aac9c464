//===- DevicePlan.h - Plans for the emulated device -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_DEVICEPLAN_H
#define DOVETAIL_TEST_RUNTIME_DEVICEPLAN_H

#include "PlanBuilder.h"

#include <cstdlib>

namespace dovetail::test {

/// The target of tests on devices: `emulated`, or one without kernels.
inline const char *deviceTarget() {
  const char *target = std::getenv("DOVETAIL_TEST_TARGET");
  return target ? target : "emulated";
}
inline bool hasKernels() { return std::string(deviceTarget()) == "emulated"; }

/// A builder of plans with the kernels of BlockKernels.c.
inline PlanBuilder deviceBuilder(std::vector<int64_t> mesh) {
  PlanBuilder builder(std::move(mesh));
  builder.plan.target = deviceTarget();
  builder.codePath = DOVETAIL_TEST_BLOCK_KERNELS;
  return builder;
}

/// A builder of plans with the kernels of Kernels.c.
inline PlanBuilder hostBuilder(std::vector<int64_t> mesh) {
  PlanBuilder builder(std::move(mesh));
  builder.plan.target = "cpu";
  return builder;
}

/// How the kernel that was added last is launched.
inline void setBlocks(PlanBuilder &builder, int threads, std::vector<uint32_t> loops, int64_t tilesPerBlock,
                      int sharedBytes = 0, bool inPrologue = false) {
  auto blocks = std::make_unique<artifact::BlocksT>();
  blocks->threads = threads;
  for (uint32_t loop : loops) {
    blocks->tiles.push_back(std::make_unique<artifact::TileLoopT>());
    blocks->tiles.back()->loop = loop;
  }
  blocks->tiles_per_block = tilesPerBlock;
  blocks->shared_bytes = sharedBytes;
  auto &list = inPrologue ? builder.plan.prologue : builder.plan.steps;
  list.back()->action.AsKernelStep()->blocks = std::move(blocks);
}

/// Two ranks, of which rank 0 writes before the beginning of its tensor 'target'.
inline PlanBuilder misbehavingBuilder() {
  PlanBuilder builder = deviceBuilder({2});
  layout::Sharding cut = sharding(1, {{0, split(0, {0, 50, 100})}});
  uint32_t in = builder.value({100}, cut, {}, "source"), out = builder.value({100}, cut, {}, "target");
  uint32_t all = builder.value({100}, sharding(1));
  builder.input("in", in);
  // What is done is the beginning of the loop: 50 on rank 1, which means nothing.
  builder.kernel("misbehave", {in}, {out}, {{100, windows(0, {{1, 50}, {50, 100}})}});
  setBlocks(builder, 32, {}, 1);
  builder.exchange(out, all);
  builder.output("out", all);
  return builder;
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_DEVICEPLAN_H
