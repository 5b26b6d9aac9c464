//===- Plan.h - Decoded plans -----------------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a plan says as plain values: `schema/plan.fbs` after all checks, with shardings of the Layout library.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PLAN_H
#define DOVETAIL_RUNTIME_PLAN_H

#include "dovetail/Calls/CallForm.h"
#include "dovetail/Calls/ConvolutionAlgorithms.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/Layout/Sharding.h"
#include "dovetail/runtime/ElementType.h"
#include "dovetail/runtime/PostOpKind.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dovetail::runtime {

using layout::MemoryFormat;

/// Where the memory of a buffer comes from: the arena, memory that keeps the prologue's results, or the weights
/// section.
enum class BufferKind : uint8_t { Arena, Persistent, Constant };

/// A piece of memory on every rank. Several tensors may lie in it.
struct BufferInfo {
  BufferKind kind;
  ElementType type;
  std::vector<int64_t> shape;
  layout::Sharding sharding; ///< The box that each rank holds.
  MemoryFormat format;
  uint64_t dataOffset = 0; ///< Constants: into the weights section, in bytes.
  uint64_t dataSize = 0;
};

/// How many coordinates of bounded dimensions there are, known when the program runs.
struct CountInfo {
  std::string name;
  int64_t bound;   ///< It is from 0 to this.
  uint32_t tensor; ///< A scalar of I64.
  /// A length: a run begins with it, as the extent of what inputs have it; else a run computes it.
  bool isGiven = false;
};

/// A value, or what ranks hold of it at one time: a part of a buffer.
struct TensorInfo {
  std::string name;
  uint32_t buffer;
  layout::Sharding sharding; ///< Boxes inside of the buffer's.
  /// For each dimension the count of the plan that bounds it, or -1; empty if none is bounded.
  std::vector<int32_t> counts = {};
};

/// Where a loop ends in a run. A sum of multiples of counts and of `added` is divided, and is at least `least`. The end
/// is `beyond` iterations after the next multiple of `step`.
struct LoopEnd {
  std::vector<int64_t> factors; ///< Of the counts of the plan; those that are not there are 0.
  int64_t added = 0, divisor = 1, least = 0, step = 1, beyond = 0;

  /// `counts`: a number for each count of the plan, at least 0.
  int64_t evaluate(const int64_t *counts) const;
};

/// A loop of a kernel or library call in global coordinates, and how ranks divide it.
struct LoopInfo {
  int64_t extent;
  layout::DimSharding dim;
  bool isLookup = false; ///< Nothing goes through it: its range says which indices are the rank's own.
  int32_t count = -1;    ///< The count of the plan that bounds it, or -1.
  /// Nobody reads what iterations behind it make.
  std::optional<LoopEnd> end = std::nullopt;
};

struct StepInfo;

/// An index that a kernel reads from data, and reports where it is out of range.
struct IndexCheck {
  std::string node; ///< That reads it.
  int64_t extent;   ///< Of what is indexed. At 0 two extents differ by the index, at -1 an extent is below 0 by it.
  uint32_t dim;     ///< Which of its dimensions that is.
  bool isUnsigned;  ///< Whether the index is; else negative ones count from the end.
  int64_t tensor;   ///< That has the indices; -1 if the kernel computes them.
  /// The error of `index`, as its bits are, in a kernel of `step`: `node 'x': index 12 is ...`. Where extents vary from
  /// run to run (`hasCounts`), `extent` stands for any that is outside of what there is.
  std::string describe(int64_t index, const StepInfo &step, bool hasCounts) const;
};

/// How a device launches a kernel: ranges of loops are divided into tiles, and these among blocks of threads.
struct BlockShape {
  struct TileLoop {
    uint32_t loop;
    int64_t step; ///< Iterations of the loop in a tile.
  };
  int threads = 1; ///< Of a block.
  std::vector<TileLoop> tiles;
  int64_t tilesPerBlock = 1;
  int64_t sharedBytes = 0; ///< Memory that the threads of a block share.

  /// Blocks for a rank that has these ranges of all loops of the kernel: at least 1 and at most `most`.
  int64_t blockCount(absl::Span<const layout::Interval> ranges, int64_t most) const;
};

/// A call of generated code on the part of its loops that a rank has.
struct KernelCall {
  std::string symbol;
  std::vector<uint32_t> reads, writes; ///< Tensors.
  std::vector<LoopInfo> loops;
  int parallelLoop = -1;            ///< The loop that threads divide; negative if none.
  std::vector<uint32_t> skipLoops;  ///< A rank without a part of one of these has nothing to do.
  std::optional<BlockShape> blocks; ///< For devices; CPUs have none.
  std::vector<IndexCheck> checks;
  size_t firstCheck = 0; ///< The number of the first one among all of the plan.
};

/// One step of an epilogue; `alpha` and `beta` are the function's parameters, as in the operator of that name.
struct PostOpInfo {
  PostOpKind kind;
  int64_t tensor = -1; ///< For AddTensor and MulTensor.
  float alpha = 0, beta = 0;

  bool readsTensor() const { return kind == PostOpKind::AddTensor || kind == PostOpKind::MulTensor; }
};

/// Where an operand of a library call is read, for each of its dimensions, in the call's loops.
using Access = std::vector<layout::AccessDim>;

using calls::ConvolutionAlgorithm;

/// A library call for a convolution, or for a transposed one.
struct ConvolutionCall {
  uint32_t input, weights, output;
  std::vector<PostOpInfo> postOps;
  std::vector<LoopInfo> loops; ///< The dimensions of the output, the input channels of a group, taps.
  Access inputAccess, weightsAccess;
  calls::ConvolutionForm form; ///< What these accesses are.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::Library;

  const LoopInfo &sumLoop() const { return loops[inputAccess.size()]; }
};

/// A library call for a matrix product; the dimensions before the last two are a batch.
struct MatMulCall {
  uint32_t a, b, output;
  std::vector<PostOpInfo> postOps;
  std::vector<LoopInfo> loops; ///< The dimensions of the output, then that which is summed over.
  Access aAccess, bAccess;
  calls::ProductForm form; ///< What these accesses are.
  int rowDims = 1;         ///< Dimensions of the output, before the last, that are the rows of one product.
};

/// What a pooling window computes.
enum class PoolKind : uint8_t { Max, AverageIncludePad, AverageExcludePad };

/// A library call for pooling.
struct PoolCall {
  PoolKind kind;
  uint32_t input, output;
  std::vector<LoopInfo> loops; ///< The dimensions of the output, then taps.
  Access inputAccess;
  calls::PoolForm form; ///< What this access is.
};

/// A library call for attention: values weighed by the softmax of products of queries and keys. In f32.
struct AttentionCall {
  uint32_t query, key, value, output;
  int64_t mask = -1;           ///< A tensor, or negative: floats are added to scores, and of Bool false is `fill`.
  std::vector<LoopInfo> loops; ///< The dimensions of the output, keys, the depth of products.
  Access queryAccess, keyAccess, valueAccess, maskAccess;
  float scale = 1, fill = 0;
  bool isOfParts = false; ///< The result is a part for each iteration of its first dimension, as the schema says.

  /// What it reads, with the accesses.
  std::vector<std::pair<uint32_t, const Access *>> operands() const {
    std::vector<std::pair<uint32_t, const Access *>> result = {
        {query, &queryAccess}, {key, &keyAccess}, {value, &valueAccess}};
    if (mask >= 0)
      result.emplace_back(static_cast<uint32_t>(mask), &maskAccess);
    return result;
  }
};

/// A library call for Fourier transforms of lines, on devices.
struct TransformCall {
  uint32_t input, output;
  std::vector<LoopInfo> loops; ///< The dimensions of the output, the points of a line that is read, their parts.
  Access inputAccess;
  calls::TransformForm form; ///< What this access is.
  bool isInverse = false;    ///< Not divided by the length.
};

/// A copy into another memory format.
struct ReorderCall {
  uint32_t source, target;
};

/// The transfers that turn one sharding of a value into another.
struct MoveInfo {
  uint32_t source, target;
  std::vector<int> order; ///< Of dimensions in messages, outermost first.
};

/// Moves that ranks carry out together, and how.
struct ExchangeCall {
  std::vector<MoveInfo> moves; ///< At least one. No target lies in a buffer of another move.
  /// A collective is of one move, and fits the boxes and memories of all ranks.
  layout::ExchangeKind kind = layout::ExchangeKind::Messages;
};

/// Lets later steps come after exchanges, which are numbered by their positions in the list of steps.
struct WaitCall {
  std::vector<uint32_t> complete; ///< They are done on this rank: sources are read, and targets written.
  std::vector<uint32_t> read;     ///< No other rank reads this one's sources any more.
};

/// Repeats the steps behind it, up to that at position `end`, as long as a scalar of Bool holds.
struct RepeatCall {
  uint32_t condition = 0;
  uint32_t end = 0;
};

/// Runs the steps behind it, up to that at position `end`, only if a scalar of Bool is `when`.
struct ChooseCall {
  uint32_t condition = 0;
  bool when = true;
  uint32_t end = 0;
};

/// Ends the repeat, or choice, that begins at position `begin`.
struct EndCall {
  uint32_t begin = 0;
};

/// What a library call takes at most besides its operands and copies of them, in bytes.
struct CallMemory {
  /// One number for each rank, or one for all: weights in the library's own form, kept while a session lives; memory
  /// while the call runs; the same for each thread that does a part of it; and more of packed weights for each such
  /// thread but one.
  std::vector<int64_t> packed, scratch, threadScratch, threadPacked;

  int64_t packedBytes(int rank, int threads = 1) const {
    return of(packed, rank) + (threads - 1) * of(threadPacked, rank);
  }
  int64_t scratchBytes(int rank, int threads) const { return of(scratch, rank) + threads * of(threadScratch, rank); }

private:
  static int64_t of(const std::vector<int64_t> &bytes, int rank) { return bytes.size() == 1 ? bytes[0] : bytes[rank]; }
};

/// How the threads of a rank divide a library call.
struct CallDivision {
  uint32_t loop = 0;           ///< A dimension of the output.
  int64_t step = 1, grain = 1; ///< Parts begin at multiples of `step` iterations, and have `grain` of them at least.
};

/// Memory of a library call on a rank besides its operands, in bytes: what the plan allows the library, and copies of
/// operands that do not lie as the library wants them.
struct CallBytes {
  int64_t scratch = 0; ///< While it runs.
  int64_t packed = 0;  ///< Of weights, which are kept.
};

/// What a step does.
using StepAction = std::variant<KernelCall, ConvolutionCall, MatMulCall, PoolCall, AttentionCall, TransformCall,
                                ReorderCall, ExchangeCall, WaitCall, RepeatCall, ChooseCall, EndCall>;

/// One entry of the step list, named after the node that it comes from.
struct StepInfo {
  std::string name;
  StepAction action;
  std::optional<CallMemory> memory = {};     ///< Of library calls but reorders.
  std::optional<CallDivision> division = {}; ///< Of these; without, one thread does the call.
  std::string source = {};                   ///< The source name: `body.0.conv (net.py:8)`; often empty.

  /// The name of the step in messages.
  const std::string &title() const { return source.empty() ? name : source; }

  /// Tensors that the step reads and writes.
  std::vector<uint32_t> reads() const;
  std::vector<uint32_t> writes() const;
  /// `kernel`, `convolution`, `exchange`, ..., as in reports.
  const char *kind() const;
  /// Whether the steps before it and those behind it do not run equally often.
  bool isBoundary() const {
    return std::holds_alternative<RepeatCall>(action) || std::holds_alternative<ChooseCall>(action) ||
           std::holds_alternative<EndCall>(action);
  }
};

/// An input or output of the program.
struct PortInfo {
  std::string name;
  uint32_t tensor;
  ElementType type;
  std::vector<int64_t> shape;
  /// Of an input that is fed back: the number of the output that it is in the next run, else negative; and the tensor
  /// that then has it, of which each rank holds what it holds of the input.
  int32_t fedBy = -1;
  uint32_t next = 0;
};

/// The target whose kernels the CPU calls; all others are devices.
inline constexpr const char *hostTarget = "cpu";

/// What library calls may do with the factors of products of float32. F32: nothing. TF32: round them to 10 bits of
/// mantissa. BF16: round them to bfloat16, where the library can, and to TF32 where it cannot.
enum class MathMode : uint8_t { F32, TF32, BF16, F32Strict };
/// `f32`, as in options and reports.
const char *mathModeName(MathMode mode);

/// What a kernel takes of a device of architecture `arch`, for reports.
struct KernelUse {
  std::string symbol;
  std::string arch;  ///< Such as `sm_90`.
  int registers = 0; ///< Of a thread.
  int64_t sharedBytes = 0;
  /// Bytes of local memory that a thread writes and reads for want of registers.
  int64_t spillStores = 0, spillLoads = 0;
};

/// All that a program does. Every index is in range, every sharding fits its mesh and shape, and tensors lie inside of
/// their buffers on every rank.
struct Plan {
  std::string producer, model, target, cpu;
  MathMode math = MathMode::F32;
  std::vector<std::string> cpuFeatures;
  std::vector<KernelUse> kernelUses;
  layout::Mesh mesh;
  std::vector<BufferInfo> buffers;
  std::vector<TensorInfo> tensors;
  std::vector<StepInfo> prologue, steps;
  std::vector<PortInfo> inputs, outputs;
  size_t numChecks = 0; ///< Of indices, in all kernels.
  /// Of bounded dimensions of inputs, and then of outputs. Loops that end at counts are refused by `Program::load`.
  std::vector<CountInfo> counts;

  /// What a run takes: the inputs, and then the counts that are given.
  std::vector<PortInfo> getArguments() const;
  /// What a run gives: the outputs, and then the counts that it computes.
  std::vector<PortInfo> getResults() const;
  /// The number of the count that bounds dimension `dim` of a port, or -1.
  int32_t getCount(const PortInfo &port, size_t dim) const {
    const std::vector<int32_t> &bounds = tensors[port.tensor].counts;
    return bounds.empty() ? -1 : bounds[dim];
  }
  /// Whether counts bound dimensions of a port.
  bool isBounded(const PortInfo &port) const;
  /// Whether tensors of these extents are what an input takes: of a dimension that is bounded there may be less.
  bool fits(const PortInfo &port, absl::Span<const int64_t> extents) const;
  /// The extents of a port for messages and reports; `seq<=512` where a count bounds it.
  std::vector<std::string> describeExtents(const PortInfo &port) const;

  /// Whether outputs are inputs of the next run.
  bool hasFeedback() const;

  /// Whether a device plug-in runs the program.
  bool isForDevice() const { return target != hostTarget; }
  /// Whether a constant is read where the artifact is mapped, as a part of the whole tensor.
  bool isMapped(const BufferInfo &buffer) const {
    return buffer.kind == BufferKind::Constant && buffer.format.isRowMajor() && !isForDevice();
  }
  const BufferInfo &bufferOf(uint32_t tensor) const { return buffers[tensors[tensor].buffer]; }
  /// What `rank` holds, in global coordinates.
  layout::Box bufferBox(uint32_t buffer, int rank) const;
  layout::Box tensorBox(uint32_t tensor, int rank) const;
  /// What `rank` has of a loop.
  layout::Interval loopRange(const LoopInfo &loop, int rank) const;
  /// Refers to the plan.
  layout::ExchangePlace placeOf(const MoveInfo &move) const;
};

/// Checks and decodes the plan section of an artifact whose weights section has `weightsSize` bytes. Errors: DATA_LOSS,
/// with what is wrong; FAILED_PRECONDITION when this version does not read it.
absl::StatusOr<Plan> decodePlan(absl::Span<const std::byte> bytes, uint64_t weightsSize);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PLAN_H
