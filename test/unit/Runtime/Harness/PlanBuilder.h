//===- PlanBuilder.h - Plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the runtime's tests write plans. Library calls are in PlanCalls.cpp, and runs in FloatRuns.cpp. All else
// is in PlanBuilder.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_PLANBUILDER_H
#define DOVETAIL_TEST_RUNTIME_PLANBUILDER_H

#include "dovetail/Layout/IndexExpr.h"
#include "dovetail/Layout/Sharding.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/runtime/plan_generated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>

namespace dovetail::test {

using Shape = std::vector<int64_t>;
using Order = std::vector<int>;

/// A dimension split over one mesh axis.
layout::DimSharding split(int axis, std::vector<int64_t> cuts);
layout::DimSharding windows(int axis, std::vector<layout::Interval> pieces);
/// Shards with these splits of some dimensions, the others whole.
layout::Sharding sharding(int rank, std::vector<std::pair<int, layout::DimSharding>> splits = {},
                          std::vector<int> partialAxes = {}, layout::ReductionKind kind = layout::ReductionKind::None);

/// Library calls as tests state them: PlanBuilder writes down the accesses that these numbers mean. Loops that are not
/// given are split as the output is; taps are never given.
struct ConvolutionStep {
  uint32_t input = 0, weights = 0, output = 0;
  Shape strides, dilations, pads;
  int64_t groups = 1;
  bool transposed = false;
  artifact::ConvolutionAlgorithm algorithm = artifact::ConvolutionAlgorithm::Library;
  std::vector<std::unique_ptr<artifact::PostOpT>> post_ops;
  std::vector<std::unique_ptr<artifact::LoopT>> loops;
};
struct MatMulStep {
  uint32_t a = 0, b = 0, output = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t row_dims = 1;
  std::vector<std::unique_ptr<artifact::PostOpT>> post_ops;
  std::vector<std::unique_ptr<artifact::LoopT>> loops;
};
/// Parts of the keys of attention, which are split as the first dimension of the output is, at `keys`.
struct AttentionPartsStep {
  uint32_t query = 0, key = 0, value = 0, output = 0;
  layout::DimSharding keys;
};
struct PoolStep {
  artifact::PoolKind kind = artifact::PoolKind::Max;
  uint32_t input = 0, output = 0;
  Shape kernel, strides, dilations, pads;
  std::vector<std::unique_ptr<artifact::LoopT>> loops;
};
struct TransformStep {
  uint32_t input = 0, output = 0;
  size_t axis = 0;
  bool inverse = false;
};

class PlanBuilder {
public:
  explicit PlanBuilder(std::vector<int64_t> meshSizes);

  /// Without a type, of `floats`.
  uint32_t buffer(Shape shape, const layout::Sharding &sharding, Order order = {},
                  artifact::BufferKind kind = artifact::BufferKind::Arena,
                  std::optional<artifact::ElementType> type = std::nullopt);
  /// A row-major constant of `floats` with these values.
  uint32_t constant(Shape shape, const layout::Sharding &sharding, const std::vector<float> &values, Order order = {});
  uint32_t tensor(uint32_t buffer, const layout::Sharding &sharding, std::string name = "");
  /// A buffer and the one tensor that fills it.
  uint32_t value(Shape shape, const layout::Sharding &sharding, Order order = {}, std::string name = "",
                 std::optional<artifact::ElementType> type = std::nullopt);
  uint32_t constantValue(Shape shape, const layout::Sharding &sharding, const std::vector<float> &values,
                         Order order = {});

  void input(std::string name, uint32_t tensor);
  void output(std::string name, uint32_t tensor);
  /// Loops are given by extent and split.
  void kernel(std::string symbol, std::vector<uint32_t> reads, std::vector<uint32_t> writes,
              std::vector<std::pair<int64_t, layout::DimSharding>> loops, int parallel = -1, bool inPrologue = false);
  /// By the collective that does for all of it, if there is one, and else by messages.
  void exchange(uint32_t source, uint32_t target, bool inPrologue = false);
  /// Makes a move part of the exchange that was added last, which then is by messages.
  void addMove(uint32_t source, uint32_t target);
  /// Lets ranks pack all that the last exchange gathers.
  void packMoves();
  /// A reduction in two phases, which must be possible.
  void exchangeInTwo(uint32_t source, uint32_t target);
  /// Waits for exchanges, by their positions; for plans whose waits are not placed by the harness.
  void wait(std::vector<uint32_t> complete, std::vector<uint32_t> read);
  /// Repeats the steps up to `end` as long as `condition` holds.
  void repeat(uint32_t condition);
  void end();
  /// Loops that are not given are split as the output is, and what is summed over as `sum`. May take `callBytes`.
  void library(ConvolutionStep step, bool inPrologue = false, const layout::DimSharding &sum = {});
  void library(MatMulStep step, bool inPrologue = false, const layout::DimSharding &sum = {});
  void library(PoolStep step, bool inPrologue = false);
  void library(AttentionPartsStep step);
  void library(TransformStep step);
  void library(artifact::ReorderT call, bool inPrologue = false);
  /// Has threads divide `loop` of the last call of a run, into parts that begin at multiples of `step` iterations.
  void divide(uint32_t loop, int64_t step = 1);

  /// Bounds of packed weights, and of scratch memory in all and for each thread, of calls.
  static std::unique_ptr<artifact::CallMemoryT> memoryOf(int64_t bytes);

  /// The bytes of the artifact.
  std::vector<std::byte> artifact() const;
  /// Loads it; failures are reported to GoogleTest.
  std::shared_ptr<const runtime::Program> program() const;

  artifact::PlanT plan;
  layout::Mesh mesh;
  std::string codePath;                                      ///< The shared object with the kernels.
  artifact::ElementType floats = artifact::ElementType::F32; ///< F32, F64, F16 or BF16.
  int64_t callBytes = 1 << 20;
  bool placesWaits = true; ///< Or steps are as they were added.

private:
  using Loops = std::vector<std::unique_ptr<artifact::LoopT>>;
  const Shape &shapeOf(uint32_t tensor) const { return plan.buffers[plan.tensors[tensor]->buffer]->shape; }
  Loops loopsOf(uint32_t output, const Shape &sums, const layout::DimSharding &sum) const;
  template <typename Call> void addLibrary(Call call, bool inPrologue, std::unique_ptr<artifact::CallMemoryT> memory);
  layout::Sharding shardingOf(const std::vector<std::unique_ptr<artifact::DimT>> &dims) const;
  layout::Sharding shardingOf(uint32_t tensor) const;

  std::vector<std::byte> weights;
};

/// A split and an access as artifacts have them.
std::unique_ptr<artifact::DimT> toDim(const layout::DimSharding &dim);
std::unique_ptr<artifact::AccessT> toAccess(const std::vector<layout::AccessDim> &access);

/// Floats as a tensor of `type` has them in memory, and back.
std::vector<std::byte> encode(const std::vector<float> &values, artifact::ElementType type);
std::vector<float> decode(const std::vector<std::byte> &bytes, artifact::ElementType type);
/// `values`, each rounded to the nearest number of `type`: F32, F16 or BF16.
std::vector<float> rounded(std::vector<float> values, artifact::ElementType type);
/// Half of the distance between two neighbours of `type` near one.
double roundingError(artifact::ElementType type);

/// Runs a program, whose inputs and outputs are F32, F16 or BF16, on all ranks; with DOVETAIL_TEST_PROCESSES those of
/// devices are processes.
absl::StatusOr<std::vector<std::vector<float>>> runFloats(std::shared_ptr<const runtime::Program> program,
                                                          const std::vector<std::vector<float>> &inputs,
                                                          runtime::RunnerOptions options = {});

/// Has up to four threads divide the calls that were added, along any dimensions, into parts of any size; mostly.
runtime::RunnerOptions divideCalls(std::mt19937_64 &random, PlanBuilder &builder);

std::vector<std::byte> readBytes(const std::string &path);
std::vector<float> randomFloats(std::mt19937_64 &random, int64_t count);
int64_t volume(const Shape &shape);
/// Cuts of `extent` into `parts` at random positions; empty pieces happen.
std::vector<int64_t> randomCuts(std::mt19937_64 &random, int64_t extent, int parts);
/// Windows over mesh axis 0 with up to two elements more at both ends of each piece that has any.
layout::DimSharding withSlack(std::mt19937_64 &random, std::vector<layout::Interval> pieces, int64_t extent);

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_PLANBUILDER_H
