//===- OneDnnMemory.cpp - Memory that oneDNN takes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds what oneDNN 2.6 takes for packed weights and scratch memory.
//
// The library says only at run time, on the machine at hand, what an implementation needs. What it said was collected
// for 10 000 random convolutions, transposed ones and matrix products, in f32 and bf16, with AVX-512 and AVX2, on 1 to
// 8 threads; for integers of 8 bits that of 8 000, with VNNI and AMX, on one. The bounds hold for the implementation
// that the library prefers in all but some of 1000 (transposed convolutions with large windows, wide images of few
// channels, groups of many integers). There a session takes its next one.
//
// Bounds of f32 suffice for implementations that are fast. The library has others that take more, such as `gemm:jit`,
// which copies all that windows read. In their place the runtime's own kernels compute a convolution. A product of
// plain operands has an implementation that copies nothing.
//
//===----------------------------------------------------------------------===//

#include "OneDnnMemory.h"

#include "OneDnnConvolutions.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/Winograd.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;
using layout::Interval;

/// Batch reduction descriptors, small transposed blocks and the like.
static constexpr int64_t kSmall = 64 << 10;
/// The same of f32: descriptors that convolutions for AVX-512 have, and what products take.
static constexpr int64_t kDescriptors = 8 << 10, kOfProduct = 2 << 10;

static RankedTensorType tensorOf(Value ref) { return cast<plan::RefType>(ref.getType()).getTensor(); }

static int64_t getElementBytes(Value ref) { return tensorOf(ref).getElementTypeBitWidth() / 8; }

static int64_t roundUp(int64_t value, int64_t block) { return llvm::alignTo(value, block); }

/// Outputs as the library lays them out: in blocks of 16, or up to 64, of which a third is lost at most.
static int64_t getBlockedOutputs(int64_t outputs) {
  int64_t blocked = roundUp(outputs, 16);
  return outputs > 32 ? blocked + roundUp(outputs / 3, 16) : blocked;
}

/// The same of f32, of which less is lost.
static int64_t getBlockedFloats(int64_t outputs) {
  int64_t most = roundUp(outputs, 16);
  for (int64_t block : {32, 64})
    if (block <= roundUp(outputs, 16))
      most = std::max(most, roundUp(outputs, block));
  return most;
}

/// Elements of a rank's spatial dimensions.
static int64_t getSpatialVolume(const Box &loops, int64_t rank) {
  int64_t volume = 1;
  for (int64_t dim = 2; dim < rank; ++dim)
    volume *= loops[dim].size();
  return volume;
}

/// Of a convolution of `groups` of integers of 8 bits, with `inputs` and `outputs` channels each.
static CallBytes getIntegerMemory(const layout::ConvolutionForm &form, const Box &loops, int64_t groups, int64_t inputs,
                                  int64_t outputs, bool packsOnce) {
  constexpr int64_t mostPadded = 4 << 20;
  int64_t window = 1, padded = 1;
  for (auto [dim, each] : llvm::enumerate(form.windows)) {
    window *= each.kernel;
    padded *= (loops[dim + 2].size() - 1) * each.stride + (each.kernel - 1) * each.dilation + 1;
  }
  // Sums of weights come along. Few channels fill a fourth of a row of the processor's matrices.
  int64_t rows = roundUp(inputs, inputs > 64 ? 64 : 16);
  int64_t packed = groups * getBlockedOutputs(outputs) * (rows * window + 16);
  CallBytes bytes;
  (packsOnce ? bytes.packed : bytes.scratch) += packed;
  // What windows read, with its pads, but for depthwise convolutions.
  bool isDepthwise = groups > 1 && inputs == 1 && outputs == 1;
  int64_t channels = isDepthwise ? 0 : groups * roundUp(inputs, groups == 1 && inputs <= 16 ? 16 : 64);
  bytes.threadScratch = 2 * kSmall + 256 * loops[static_cast<int>(form.windows.size()) + 1].size() +
                        std::min(mostPadded, channels * padded);
  return bytes;
}

static bool isStrided(const layout::ConvolutionForm &form) {
  return llvm::any_of(form.windows, [](const layout::Window &window) { return window.stride != 1; });
}
static bool isDilated(const layout::ConvolutionForm &form) {
  return llvm::any_of(form.windows, [](const layout::Window &window) { return window.dilation != 1; });
}

static int64_t getTaps(const layout::ConvolutionForm &form) {
  int64_t taps = 1;
  for (const layout::Window &window : form.windows)
    taps *= window.kernel;
  return taps;
}

/// Bytes of packed weights of `groups` with `inputs` and `outputs` channels each. The library lays out `rows` for the
/// inputs of a group, and `blocked` outputs of all groups.
static int64_t getPackedBytes(const layout::ConvolutionForm &form, int64_t groups, int64_t inputs, int64_t outputs,
                              int64_t rows, int64_t blocked, int64_t elementBytes) {
  int64_t taps = getTaps(form);
  // The library has depthwise convolutions of their own for the most common kind only.
  if (inputs == 1 && outputs == 1 && groups > 1 && form.windows.size() == 2 && !isDilated(form))
    return roundUp(groups, 16) * taps * elementBytes;
  int64_t packed = blocked * rows * taps * elementBytes;
  if (!form.isTransposed || form.groups > 1 ||
      llvm::any_of(form.windows, [](const layout::Window &dim) { return dim.stride != dim.kernel; }))
    return packed;
  // Where windows of a transposed one do not overlap, they are a product for each position in them.
  for (const layout::Window &dim : form.windows) {
    int64_t row = getBlockedOutputs(dim.kernel * outputs) * rows * elementBytes;
    packed = std::max(packed, row * (taps / dim.kernel) + roundUp(outputs * inputs * taps * elementBytes, 64));
  }
  return packed;
}

/// Of a convolution in f32 that the runtime's own kernels do where an implementation of the library takes more.
static CallBytes getFloatMemory(const layout::ConvolutionForm &form, const Box &loops, int64_t groups, int64_t inputs,
                                int64_t outputs, bool packsOnce, bool hasAvx512) {
  int64_t rows = roundUp(inputs, 16), blocked = groups * getBlockedOutputs(outputs);
  if (!form.isTransposed) {
    // Code for AVX-512 pads no inputs, but those of groups.
    rows = !hasAvx512 ? roundUp(inputs, 8) : form.groups > 1 ? rows : inputs;
    blocked = groups * getBlockedFloats(outputs);
  }
  CallBytes bytes;
  (packsOnce ? bytes.packed : bytes.scratch) = getPackedBytes(form, groups, inputs, outputs, rows, blocked, 4);
  // A bias comes in blocks, too.
  bool isDepthwise = inputs == 1 && outputs == 1;
  bytes.threadScratch = 4 * (isDepthwise ? roundUp(groups, 16) : blocked) + (hasAvx512 ? kDescriptors : 0);
  if (!form.isTransposed && getTaps(form) == 1 && isStrided(form))
    bytes.threadScratch +=
        4 * roundUp(inputs, 16) * getSpatialVolume(loops, static_cast<int64_t>(form.windows.size()) + 2);
  return bytes;
}

static CallBytes getMemory(plan::ConvolutionOp op, const Box &loops, bool packsOnce, bool hasAvx512) {
  ArrayRef<int64_t> output = tensorOf(op.getOutput()).getShape();
  int64_t rank = output.size(), elementBytes = getElementBytes(op.getOutput());
  layout::ConvolutionForm form = *op.getForm();
  int64_t outputs = output[1] / form.groups;
  int64_t groups = llvm::divideCeil(loops[1].hi, outputs) - loops[1].lo / outputs;
  outputs = std::min(outputs, loops[1].size());
  int64_t inputs = std::max<int64_t>(loops[rank].size(), 1);
  if (tensorOf(op.getOutput()).getElementType().isInteger(32))
    return getIntegerMemory(form, loops, groups, inputs, outputs, packsOnce);
  if (op.getAlgorithm() == plan::ConvolutionAlgorithm::Winograd) {
    int64_t tiles = loops[0].size();
    for (int64_t dim = 2; dim < rank; ++dim)
      tiles *= llvm::divideCeil(loops[dim].size(), layout::winogradTile);
    CallBytes bytes{0, 0, layout::winogradScratchBytes(inputs, outputs, tiles)};
    (packsOnce ? bytes.packed : bytes.scratch) += layout::winogradWeightBytes(inputs, outputs);
    return bytes;
  }

  if (mayGather(op))
    return getFloatMemory(form, loops, groups, inputs, outputs, packsOnce, hasAvx512);

  // Of 16 bits, rows of the processor's matrices (AMX) have 64 bytes.
  int64_t rows = roundUp(inputs, elementBytes == 2 ? 32 : 16), taps = getTaps(form);
  CallBytes bytes;
  (packsOnce ? bytes.packed : bytes.scratch) =
      getPackedBytes(form, groups, inputs, outputs, rows, groups * getBlockedOutputs(outputs), elementBytes);
  int64_t volume = getSpatialVolume(loops, rank);
  // Channels that fill no vector are left to a product with what each window reads (im2col).
  bool fillsVectors = inputs % 8 == 0 && outputs % 8 == 0, isDepthwise = inputs == 1 && outputs == 1;
  bool gathers = form.groups > 1 ? !isDepthwise : !hasAvx512 && !fillsVectors;
  if (form.isTransposed) {
    // The result before the post-operations, in f32.
    bytes.scratch += (elementBytes == 4 ? 8 : 24) * loops[0].size() * groups * outputs * volume;
    bytes.threadScratch = 4 * kSmall + 256 * loops[rank - 1].size();
    if (gathers || (isStrided(form) && isDilated(form)))
      bytes.threadScratch += elementBytes * outputs * taps * volume;
    return bytes;
  }
  bytes.threadScratch = kSmall + 256 * loops[rank - 1].size();
  if (taps == 1 && isStrided(form))
    bytes.threadScratch += elementBytes * roundUp(inputs, 16) * volume;
  if (gathers)
    bytes.threadScratch += elementBytes * inputs * taps * volume;
  return bytes;
}

/// Whether `ref` lies row by row, or with `mayTranspose` column by column, batch after batch.
static bool isPlain(Value ref, bool mayTranspose) {
  plan::BufferOp buffer = plan::getBufferOp(ref);
  SmallVector<int64_t> order(buffer ? buffer.getFormat().getOrder() : ArrayRef<int64_t>());
  if (mayTranspose && order.size() > 1 && order[order.size() - 2] > order.back())
    std::swap(order[order.size() - 2], order.back());
  return llvm::is_sorted(order);
}

/// Scratch bytes of a thread for a product in f32. Plain operands with the same batches have an implementation that
/// copies nothing, whatever the processor. With AVX-512 another one is faster. It copies some terms of 64 columns, if
/// these lie one after the other or their rows lie a power of two apart. For other operands all implementations may
/// copy terms of columns and rows.
static int64_t getFloatScratch(plan::MatMulOp op, int64_t columns, int64_t terms, bool packsOnce, bool hasAvx512) {
  constexpr int64_t mostTerms = 64 << 10, usualTerms = 1024, blockOfColumns = 64, blockOfRows = 32, manyColumns = 256;
  ArrayRef<int64_t> left = tensorOf(op.getA()).getShape(), right = tensorOf(op.getB()).getShape();
  int64_t copied = 4 * std::min(roundUp(terms, 64), mostTerms);
  if (left.drop_back(2) != right.drop_back(2) || !isPlain(op.getA(), false) || !isPlain(op.getOutput(), false) ||
      !isPlain(op.getB(), /*mayTranspose=*/left.size() == 2))
    return kSmall / 2 + copied * (blockOfColumns + blockOfRows);
  bool isCopied = hasAvx512 && !packsOnce &&
                  (!isPlain(op.getB(), false) || (columns > manyColumns && llvm::isPowerOf2_64(columns)));
  return kOfProduct + (isCopied ? 4 * std::min(roundUp(terms, 16), usualTerms) * blockOfColumns : 0);
}

static CallBytes getMemory(plan::MatMulOp op, const Box &loops, bool packsOnce, bool hasAvx512) {
  ArrayRef<int64_t> weights = tensorOf(op.getB()).getShape();
  int64_t rank = loops.rank() - 1, elementBytes = getElementBytes(op.getOutput());
  int64_t columns = loops[rank - 1].size(), sum = std::max<int64_t>(loops[rank].size(), 1), results = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    results *= loops[dim].size();
  CallBytes bytes;
  if (tensorOf(op.getOutput()).getElementType().isInteger(32)) {
    // Where weights are not packed, blocks of columns are copied on the way. Depths that are no multiple of four take
    // the most: factors are padded.
    bytes.threadScratch = 2 * kSmall + (sum % 4 == 0 ? 256 : 640) * roundUp(sum, 64);
  } else if (elementBytes < 4) {
    bytes.threadScratch = kSmall / 2 + 96 * roundUp(sum, 64) * elementBytes;
    bytes.scratch = 4 * results; // The result in f32.
  } else {
    bytes.threadScratch = getFloatScratch(op, columns, sum, packsOnce, hasAvx512);
  }
  if (!packsOnce)
    return bytes;
  int64_t batch = 1;
  for (int64_t dim = 0, batches = weights.size() - 2; dim < batches; ++dim)
    batch *= weights[dim] == 1 ? 1 : loops[rank - static_cast<int64_t>(weights.size()) + dim].size();
  elementBytes = getElementBytes(op.getB());
  bytes.packed = batch * roundUp(columns, 64) * roundUp(sum, 64 / elementBytes) * elementBytes;
  return bytes;
}

static CallBytes getMemory(plan::PoolOp op, const Box &loops) {
  // Of the channels of a vector, what a thread reads and writes, in f32.
  int64_t rank = tensorOf(op.getOutput()).getRank(), read = 1;
  layout::PoolForm form = *op.getForm();
  for (int64_t dim = 2; dim < rank; ++dim)
    read *= (loops[dim].size() - 1) * form.windows[dim - 2].stride + form.windows[dim - 2].kernel;
  return {0, 0, kSmall + 16 * 4 * (read + getSpatialVolume(loops, rank))};
}

std::optional<CallBytes> dovetail::getOneDnnMemory(Operation *call, const Box &loops, bool packsOnce, bool hasAvx512) {
  return TypeSwitch<Operation *, std::optional<CallBytes>>(call)
      .Case([&](plan::ConvolutionOp op) -> std::optional<CallBytes> {
        if (op.getAlgorithm() == plan::ConvolutionAlgorithm::Gathered)
          return std::nullopt;
        return getMemory(op, loops, packsOnce, hasAvx512);
      })
      .Case([&](plan::MatMulOp op) { return getMemory(op, loops, packsOnce, hasAvx512); })
      .Case([&](plan::PoolOp op) { return getMemory(op, loops); })
      .Default([](Operation *) { return std::nullopt; });
}
