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
// which copies all that windows read. In their place the runtime's own kernels compute a convolution. A product has one
// implementation on each processor, so that its bound holds for processors with AVX-512 in any case.
//
//===----------------------------------------------------------------------===//

#include "OneDnnMemory.h"

#include "OneDnnConvolutions.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;

/// Batch reduction descriptors, small transposed blocks and the like.
static constexpr int64_t kSmall = 64 << 10;
/// Bytes of descriptors of products in f32.
static constexpr int64_t kOfProduct = 2 << 10;
/// With AVX-512 calls that add to what is in memory keep sums of a block of columns elsewhere until these are complete.
static constexpr int64_t kColumnsOfSums = 64, kMostRowsOfSums = 256;

static int64_t getElementBytes(Value ref) { return plan::getTensor(ref).getElementTypeBitWidth() / 8; }

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
  // Blocks of 48 were seen of many outputs only.
  constexpr int64_t manyOutputs = 256;
  return outputs < manyOutputs ? most : std::max(most, roundUp(outputs, 48));
}

/// Elements of a rank's spatial dimensions.
static int64_t getSpatialVolume(const Box &loops, int64_t rank) {
  int64_t volume = 1;
  for (int64_t dim = 2; dim < rank; ++dim)
    volume *= loops[dim].size();
  return volume;
}

/// Of a convolution of `groups` of integers of 8 bits, with `inputs` and `outputs` channels each.
static CallBytes getIntegerMemory(const calls::ConvolutionForm &form, const Box &loops, int64_t groups, int64_t inputs,
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

static bool isStrided(const calls::ConvolutionForm &form) {
  return llvm::any_of(form.windows, [](const layout::Window &window) { return window.stride != 1; });
}
static bool isDilated(const calls::ConvolutionForm &form) {
  return llvm::any_of(form.windows, [](const layout::Window &window) { return window.dilation != 1; });
}

/// Bytes of packed weights of `groups` with `inputs` and `outputs` channels each. The library lays out `rows` for the
/// inputs of a group, and `blocked` outputs of all groups.
static int64_t getPackedBytes(const calls::ConvolutionForm &form, int64_t groups, int64_t inputs, int64_t outputs,
                              int64_t rows, int64_t blocked, int64_t elementBytes) {
  int64_t taps = form.numTaps();
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

/// Whether a call adds a tensor as large as its result, which lies in memory before. It may add others behind the sum.
static bool addsTensor(plan::CallOpInterface call) {
  auto isAdd = [](plan::PostOpAttr op) { return op.getKind() == PostOpKind::AddTensor; };
  int64_t elements = plan::getTensor(call.getOutput()).getNumElements();
  return llvm::any_of(call.getPostOps().getAsRange<plan::PostOpAttr>(), isAdd) &&
         llvm::any_of(call.getPostTensors(),
                      [&](Value ref) { return plan::getTensor(ref).getNumElements() == elements; });
}

/// Bytes of the sums that a call keeps, of at most `rows`.
static int64_t getBytesOfSums(int64_t rows) { return 4 * kColumnsOfSums * std::min(rows, kMostRowsOfSums); }

/// Bytes of descriptors of a convolution on a processor with AVX-512, in whole pages.
static int64_t getDescriptorBytes(const calls::ConvolutionForm &form) {
  constexpr int64_t page = 4 << 10, descriptor = 32;
  return page + roundUp(descriptor * form.numTaps(), page);
}

/// Of a convolution in f32 that the runtime's own kernels do where an implementation of the library takes more.
static CallBytes getFloatMemory(plan::CallOpInterface op, const calls::ConvolutionForm &form, const Box &loops,
                                int64_t groups, int64_t inputs, int64_t outputs, bool packsOnce, bool hasAvx512) {
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
  bytes.threadScratch = 4 * (isDepthwise ? roundUp(groups, 16) : blocked) + getDescriptorBytes(form);
  int64_t volume = getSpatialVolume(loops, static_cast<int64_t>(form.windows.size()) + 2);
  if (hasAvx512 && addsTensor(op))
    bytes.threadScratch += getBytesOfSums(volume);
  if (!form.isTransposed && form.numTaps() == 1 && isStrided(form))
    bytes.threadScratch += 4 * roundUp(inputs, 16) * volume;
  return bytes;
}

static CallBytes getMemory(const calls::ConvolutionForm &form, plan::CallOpInterface op, const Box &loops,
                           bool packsOnce, bool hasAvx512) {
  ArrayRef<int64_t> output = plan::getTensor(op.getOutput()).getShape();
  int64_t rank = output.size(), elementBytes = getElementBytes(op.getOutput());
  int64_t outputs = output[1] / form.groups;
  int64_t groups = llvm::divideCeil(loops[1].hi, outputs) - loops[1].lo / outputs;
  outputs = std::min(outputs, loops[1].size());
  int64_t inputs = std::max<int64_t>(loops[rank].size(), 1);
  if (plan::getTensor(op.getOutput()).getElementType().isInteger(32))
    return getIntegerMemory(form, loops, groups, inputs, outputs, packsOnce);
  if (mayGather(CallShape::get(op)))
    return getFloatMemory(op, form, loops, groups, inputs, outputs, packsOnce, hasAvx512);

  // Of 16 bits, rows of the processor's matrices (AMX) have 64 bytes.
  int64_t rows = roundUp(inputs, elementBytes == 2 ? 32 : 16), taps = form.numTaps();
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

/// Whether both operands of a product have the same batches, once dimensions of rows are one.
static bool hasSameBatches(const ProductCall &form, Value a, Value b) {
  auto getBatches = [&](Value ref) {
    ArrayRef<int64_t> batches = plan::getTensor(ref).getShape().drop_back(2);
    return batches.drop_back(std::min<size_t>(form.rowDims - 1, batches.size()));
  };
  auto isOne = [](int64_t extent) { return extent == 1; };
  ArrayRef<int64_t> left = getBatches(a), right = getBatches(b);
  size_t common = std::min(left.size(), right.size());
  return left.take_back(common) == right.take_back(common) && llvm::all_of(left.drop_back(common), isOne) &&
         llvm::all_of(right.drop_back(common), isOne);
}

/// Scratch bytes of a thread for a product in f32 of `rows` and `columns`. On a processor with AVX-512, which may run
/// programs for others, the library has one implementation. It copies some terms of 64 columns, if these lie one after
/// the other or their rows lie a power of two apart. Of operands that are not plain, or have other batches, it may copy
/// blocks of both. On others it copies nothing into scratch memory. There it allocates room of its own, for blocks that
/// do not grow with the operands.
static int64_t getFloatScratch(const ProductCall &form, plan::CallOpInterface op, int64_t rows, int64_t columns,
                               int64_t terms, bool packs) {
  constexpr int64_t mostTerms = 1024, blockOfColumns = 64, blockOfRows = 256, manyColumns = 256;
  Value a = op.getCallOperands()[0], b = op.getCallOperands()[1];
  int64_t rank = plan::getTensor(a).getRank(), term = 4 * (std::min(roundUp(terms, 16), mostTerms) + 16);
  int64_t sums = addsTensor(op) ? getBytesOfSums(rows) : 0;
  if (!hasSameBatches(form, a, b) || !isPlain(a, false) || !isPlain(op.getOutput(), false) ||
      !isPlain(b, /*mayTranspose=*/rank == 2))
    return kSmall / 2 + sums + term * (blockOfColumns + std::min(rows, blockOfRows));
  bool isCopied = !packs && (!isPlain(b, false) || (columns > manyColumns && llvm::isPowerOf2_64(columns)));
  return kOfProduct + sums + (isCopied ? term * blockOfColumns : 0);
}

/// Scratch bytes of a thread for a product of 16 or 8 bits. The processor's matrices (AMX) may do it. No other
/// implementation takes more. Factors are copied, and padded where terms fill no matrix. The bound was compared with
/// 54 000 random products: of up to 600 rows and 8000 terms, and some of up to 120 000 terms.
static int64_t getMatrixScratch(const ProductCall &form, plan::CallOpInterface op, int64_t rows, int64_t terms,
                                bool packs) {
  constexpr int64_t most = 5 << 20, mostRows = 576, columnsOfSums = 384, mostRowsOfSums = 320;
  int64_t depth = roundUp(terms, 64), blockOfRows = std::min(roundUp(rows, 64) + 64, mostRows);
  bool isCopied = depth != terms || !isPlain(op.getCallOperands()[0], /*mayTranspose=*/false) || form.transposesA;
  int64_t bytes = kSmall / 4 + 16 * depth + 4 * columnsOfSums * std::min(blockOfRows, mostRowsOfSums);
  bytes += packs ? 0 : (isCopied ? 256 : 128) * depth;
  bytes += isCopied ? 4 * blockOfRows * (depth + 64) : 0;
  return std::min(bytes, most + 64 * depth);
}

static CallBytes getMemory(const ProductCall &form, plan::CallOpInterface op, const Box &loops, bool packsOnce) {
  RankedTensorType second = plan::getTensor(op.getCallOperands()[1]);
  ArrayRef<int64_t> weights = second.getShape();
  int64_t rank = loops.rank() - 1, elementBytes = getElementBytes(op.getOutput());
  int64_t columns = loops[rank - 1].size(), sum = std::max<int64_t>(loops[rank].size(), 1), results = 1, rows = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    results *= loops[dim].size();
  int64_t batches = rank - 1 - form.rowDims;
  for (int64_t dim = batches; dim < rank - 1; ++dim)
    rows *= loops[dim].size();
  // The library packs no second factor of a product with batches, be these of one element.
  bool packs = packsOnce && batches == 0;
  CallBytes bytes;
  if (plan::getTensor(op.getOutput()).getElementType().isInteger(32)) {
    bytes.threadScratch = getMatrixScratch(form, op, rows, sum, packs);
  } else if (elementBytes < 4) {
    bytes.threadScratch = getMatrixScratch(form, op, rows, sum, packs);
    bytes.scratch = 4 * results; // The result in f32.
  } else {
    bytes.threadScratch = getFloatScratch(form, op, rows, columns, sum, packs);
  }
  if (!packsOnce)
    return bytes;
  int64_t batch = 1;
  for (int64_t dim = 0, batches = weights.size() - 2; dim < batches; ++dim)
    batch *= weights[dim] == 1 ? 1 : loops[rank - static_cast<int64_t>(weights.size()) + dim].size();
  elementBytes = second.getElementTypeBitWidth() / 8;
  bytes.packed = batch * roundUp(columns, 64) * roundUp(sum, 64 / elementBytes) * elementBytes;
  return bytes;
}

static CallBytes getMemory(const PoolCall &form, int64_t rank, const Box &loops) {
  // Of the channels of a vector, what a thread reads and writes, in f32.
  int64_t read = 1;
  for (int64_t dim = 2; dim < rank; ++dim)
    read *= (loops[dim].size() - 1) * form.windows[dim - 2].stride + form.windows[dim - 2].kernel;
  return {0, 0, kSmall + 16 * 4 * (read + getSpatialVolume(loops, rank))};
}

std::optional<CallBytes> dovetail::getOneDnnMemory(plan::CallOpInterface call, const Box &loops, bool packsOnce,
                                                   bool hasAvx512) {
  using Bytes = std::optional<CallBytes>;
  if (call.getAlgorithm() != plan::ConvolutionAlgorithm::Library)
    return std::nullopt;
  int64_t rank = plan::getTensor(call.getOutput()).getRank();
  return std::visit(
      FormVisitor{[&](const calls::ConvolutionForm &form) -> Bytes {
                    return getMemory(form, call, loops, packsOnce, hasAvx512);
                  },
                  [&](const ProductCall &form) -> Bytes { return getMemory(form, call, loops, packsOnce); },
                  [&](const PoolCall &form) -> Bytes { return getMemory(form, rank, loops); },
                  [](const auto &) -> Bytes { return std::nullopt; }},
      *call.getCallForm());
}
