//===- ArtifactPrograms.h - Programs of the tests of artifacts --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines programs that several tests of artifacts load.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_ARTIFACTPROGRAMS_H
#define DOVETAIL_TEST_RUNTIME_ARTIFACTPROGRAMS_H

#include "../Harness/PlanBuilder.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::test {

using Bytes = std::vector<std::byte>;

/// A program with one of everything.
inline PlanBuilder makeProgram() {
  PlanBuilder builder({2, 2});
  builder.plan.cpu_features = {"sse2"};
  auto rows = split(0, {0, 3, 8}), columns = split(1, {0, 5, 6});
  layout::Sharding cut = sharding(4, {{2, rows}, {3, columns}});
  layout::Sharding held = sharding(4, {{2, windows(0, {{0, 4}, {2, 8}})}, {3, windows(1, {{0, 6}, {4, 6}})}});
  Shape shape = {1, 4, 8, 6};
  std::mt19937_64 random(1);
  uint32_t buffer = builder.buffer(shape, held, {0, 2, 3, 1});
  uint32_t in = builder.tensor(buffer, cut, "in"), extended = builder.tensor(buffer, held, "extended");
  uint32_t weights = builder.constantValue({4, 4, 3, 3}, sharding(4), randomFloats(random, 144));
  uint32_t bias = builder.constantValue({4, 1, 1}, sharding(3), randomFloats(random, 4));
  uint32_t convolved = builder.value(shape, cut, {0, 2, 3, 1}, "convolved");
  uint32_t pooled = builder.value(shape, cut, {0, 2, 3, 1}, "pooled");
  builder.input("image", in);
  builder.exchange(in, extended);
  ConvolutionStep convolution;
  convolution.input = extended;
  convolution.weights = weights;
  convolution.output = convolved;
  convolution.strides = convolution.dilations = convolution.pads = {1, 1};
  convolution.post_ops.push_back(std::make_unique<artifact::PostOpT>());
  convolution.post_ops[0]->tensor = bias;
  builder.library(std::move(convolution));
  PoolStep pool;
  pool.input = convolved;
  pool.output = pooled;
  pool.kernel = pool.strides = pool.dilations = {1, 1};
  pool.pads = {0, 0};
  builder.library(std::move(pool));
  uint32_t matrix = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}));
  uint32_t scale = builder.constantValue({6}, sharding(1), randomFloats(random, 6));
  uint32_t placed = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}));
  builder.input("matrix", matrix);
  builder.kernel("scaleAndPlace", {matrix, scale}, {placed}, {{8, rows}, {6, columns}}, 0);
  artifact::ReorderT reorder;
  reorder.source = placed;
  reorder.target = builder.value({8, 6}, sharding(2, {{0, rows}, {1, columns}}), {1, 0});
  uint32_t reordered = reorder.target;
  builder.library(std::move(reorder));
  builder.output("pooled", pooled);
  builder.output("placed", reordered);
  return builder;
}

/// Adds a count to a program, which is given as an input of that name.
inline void addCount(PlanBuilder &builder, const std::string &name, int64_t bound) {
  auto &count = builder.plan.counts.emplace_back(std::make_unique<artifact::CountT>());
  count->name = name;
  count->bound = bound;
  count->tensor = builder.value({}, sharding(0), {}, name, artifact::ElementType::I64);
  builder.input(name, count->tensor);
}

/// The program with two rows that are bounded: those of the image, which whoever runs it gives, and those of the loop
/// that reads the matrix.
inline PlanBuilder boundedProgram() {
  PlanBuilder builder = makeProgram();
  builder.placesWaits = false;
  addCount(builder, "boxes", 8);
  addCount(builder, "lines", 8);
  builder.plan.counts[0]->given = true;
  builder.plan.tensors[0]->counts = {-1, -1, 0, -1};
  builder.plan.steps[3]->action.AsKernelStep()->loops[0]->count = 1;
  return builder;
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_ARTIFACTPROGRAMS_H
