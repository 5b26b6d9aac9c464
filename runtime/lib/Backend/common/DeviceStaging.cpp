//===- DeviceStaging.cpp - Copies around library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceStaging.h"

#include "../../Memory/Alignment.h"
#include "PostOpRead.h"

#include <algorithm>
#include <numeric>
#include <span>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

int64_t dovetail::runtime::alignmentOf(const MemoryView &view, const Box &part) {
  int64_t elements = 0;
  for (int dim = 0; dim < part.rank(); ++dim)
    elements += view.offset(dim, part[dim].lo);
  return std::gcd(bufferAlignment, elements * elementSize(view.type));
}

/// Whether `box` lies in `view` as a copy in `wanted` would.
static bool isPacked(const MemoryView &view, const MemoryView &wanted, const Box &box) {
  return view.isLike(wanted, box) && alignmentOf(view, box) >= vectorAlignment;
}

/// `box` of `view` as it is.
static StagedOperand inPlace(const MemoryView &view, const Box &box) {
  return {view.part(box), std::min(vectorAlignment, alignmentOf(view, box))};
}

static StagedOperand copied(MemoryView copy, DeviceScratch &scratch) {
  int64_t offset = scratch.add(copy.bytes());
  return {std::move(copy), vectorAlignment, true, offset};
}

static MemoryFormat channelsLastOf(int rank) {
  MemoryFormat format;
  format.order.push_back(0);
  for (int dim = 2; dim < rank; ++dim)
    format.order.push_back(dim);
  format.order.push_back(1);
  return format;
}

MemoryFormat ConvolutionStaging::format(int rank) const {
  if (channelsLast)
    return channelsLastOf(rank);
  MemoryFormat format;
  format.order.resize(rank);
  std::iota(format.order.begin(), format.order.end(), 0);
  return format;
}

ConvolutionStaging::ConvolutionStaging(const RankMemory &memory, const ConvolutionCall &call,
                                       const ConvolutionGeometry &geometry, bool keepsWeights, StagingMode mode) {
  const MemoryView &inView = memory.memory(call.input), &weightsView = memory.memory(call.weights),
                   &outView = memory.memory(call.output);
  bool packs = mode == StagingMode::Packed;
  int rank = geometry.outBox.rank(), spatial = rank - 2;
  auto isLast = [](const MemoryView &view) { return view.box[1].size() == 1 || view.strides[1] == 1; };
  channelsLast = packs || isLast(inView);
  MemoryFormat wanted = format(rank);
  // Libraries are at their best with as much padding at the end as at the beginning, or none.
  bool isSymmetric = true;
  for (int i = 0; i < spatial; ++i)
    isSymmetric &= geometry.padLo[i] == std::max<int64_t>(geometry.padHi[i], 0);
  isCut = geometry.fullResult || (packs && call.form.isTransposed && !isSymmetric);

  input = inPlace(inView, geometry.inBox);
  MemoryView packedIn = MemoryView::packed(inView.type, geometry.inBox, wanted);
  if (packs && !(isPacked(inView, packedIn, geometry.inBox) && (call.form.isTransposed || isSymmetric))) {
    input = copied(MemoryView::packed(inView.type, geometry.paddedBox, wanted), scratch);
  } else if (packs) {
    input.view.strides = packedIn.strides;
  }

  weights = inPlace(weightsView, geometry.weightsBox);
  MemoryView packedWeights = MemoryView::packed(weightsView.type, geometry.weightsBox, wanted);
  if (weightsView.isLike(packedWeights, geometry.weightsBox) && (!packs || weights.alignment == vectorAlignment)) {
    weights.view.strides = packedWeights.strides;
  } else if (keepsWeights) {
    packedBytes = alignedSize(packedWeights.bytes());
    weights = {std::move(packedWeights), vectorAlignment, /*isStaged=*/true};
  } else {
    weights = copied(std::move(packedWeights), scratch);
  }

  // The library writes all of its result before its last post-op is done.
  MemoryView packedOut = MemoryView::packed(outView.type, geometry.outBox, wanted);
  output = inPlace(outView, geometry.outBox);
  if (isCut || isLast(outView) != channelsLast || readsResult(memory, call.postOps, call.output) ||
      (packs && !isPacked(outView, packedOut, geometry.outBox)))
    output = copied(std::move(packedOut), scratch);
  else if (packs)
    output.view.strides = packedOut.strides;
  if (!isCut)
    return;
  full = copied(MemoryView::packed(outView.type, geometry.fullBox, wanted), scratch);
}

bool PointwiseStaging::takes(const ConvolutionCall &call, const ConvolutionGeometry &geometry,
                             const ConvolutionChannels &channels) {
  auto isPoint = [](const layout::Window &window) { return window.kernel == 1 && window.pad == 0; };
  auto isTile = [](const layout::Window &window) { return window.kernel == window.stride && window.dilation == 1; };
  auto isPadded = [](int64_t pad) { return pad != 0; };
  const std::vector<layout::Window> &windows = call.form.windows;
  if (channels.groups != 1 || geometry.nothingToSum)
    return false;
  if (call.form.isTransposed)
    // Each element of the result has a tap.
    return !geometry.fullResult && std::all_of(windows.begin(), windows.end(), isTile) &&
           std::none_of(geometry.padHi.begin(), geometry.padHi.end(), [](int64_t pad) { return pad < 0; });
  return std::all_of(windows.begin(), windows.end(), isPoint) &&
         std::none_of(geometry.padLo.begin(), geometry.padLo.end(), isPadded) &&
         std::none_of(geometry.padHi.begin(), geometry.padHi.end(), isPadded);
}

PointwiseStaging::PointwiseStaging(const RankMemory &memory, const ConvolutionCall &call,
                                   const ConvolutionGeometry &geometry, bool keepsWeights, StagingMode mode,
                                   size_t fused) {
  const MemoryView &inView = memory.memory(call.input), &weightsView = memory.memory(call.weights),
                   &outView = memory.memory(call.output);
  bool packs = mode == StagingMode::Packed, isTransposed = call.form.isTransposed;
  MemoryFormat wanted = channelsLastOf(geometry.outBox.rank());
  auto isLast = [](const MemoryView &view) { return view.box[1].size() == 1 || view.strides[1] == 1; };

  // Elements that a stride skips make rows of many pieces: they are left out by a copy.
  readBox = geometry.inBox;
  source = inView.part(readBox);
  bool skips = false;
  for (int dim = 2; dim < readBox.rank() && !isTransposed; ++dim) {
    layout::Interval elements = geometry.outBox[dim];
    int64_t stride = call.form.windows[dim - 2].stride;
    readBox[dim] = {elements.lo * stride, (elements.hi - 1) * stride + 1};
    source.box[dim] = elements;
    source.strides[dim] *= stride;
    skips |= stride > 1 && elements.size() > 1;
  }
  input = {source, std::min(vectorAlignment, alignmentOf(inView, readBox))};
  MemoryView packedIn = MemoryView::packed(inView.type, source.box, wanted);
  if (skips || !isLast(inView) || (packs && !isPacked(inView, packedIn, readBox)))
    input = copied(std::move(packedIn), scratch);

  weights = inPlace(weightsView, geometry.weightsBox);
  int rowDim = isTransposed ? 0 : 1, columnDim = 1 - rowDim;
  auto layoutOf = [&](const StagedOperand &operand) {
    return MatrixLayout{operand.view.strides[rowDim], operand.view.strides[columnDim], operand.alignment};
  };
  factor = layoutOf(weights);
  if (!factor.isFactor(geometry.weightsBox[rowDim].size(), geometry.weightsBox[columnDim].size()) ||
      (packs && weights.alignment < vectorAlignment)) {
    // Tap by tap, but those along the last dimension are columns next to each other.
    MemoryFormat order;
    int last = geometry.weightsBox.rank() - 1;
    for (int dim = 2; dim < last; ++dim)
      order.order.push_back(dim);
    order.order.insert(order.order.end(), {rowDim, last, columnDim});
    MemoryView packed = MemoryView::packed(weightsView.type, geometry.weightsBox, order);
    if (keepsWeights) {
      packedBytes = alignedSize(packed.bytes());
      weights = {std::move(packed), vectorAlignment, /*isStaged=*/true};
    } else {
      weights = copied(std::move(packed), scratch);
    }
    factor = layoutOf(weights);
  }

  MemoryView packedOut = MemoryView::packed(outView.type, geometry.outBox, wanted);
  output = inPlace(outView, geometry.outBox);
  if (!isLast(outView) || (packs && !isPacked(outView, packedOut, geometry.outBox)) ||
      readsResult(memory, std::span(call.postOps).subspan(fused), call.output))
    output = copied(std::move(packedOut), scratch);

  if (!isTransposed || !keepsWeights)
    return;
  int last = geometry.outBox.rank() - 1;
  const layout::Window &window = call.form.windows.back();
  int64_t columns = geometry.outBox[1].size();
  bool isWhole = (geometry.outBox[last].lo + window.pad) % window.stride == 0 &&
                 (geometry.outBox[last].hi + window.pad) % window.stride == 0;
  if (window.kernel == 1 || !isWhole || output.view.strides[last] != columns || factor.columnStride != 1 ||
      weights.view.strides[last] != columns)
    return;
  joined = window.kernel;
  biasOffset = packedBytes;
  packedBytes += alignedSize(joined * columns * elementSize(outView.type));
}

ProductStaging::ProductStaging(const RankMemory &memory, const MatMulCall &call, const ProductGeometry &geometry,
                               StagingMode mode, size_t fused) {
  // `rowDims` dimensions before the last are rows.
  auto place = [&](uint32_t tensor, const Box &box, int rowDims, bool copies, auto isTaken, MatrixLayout &layout) {
    const MemoryView &view = memory.memory(tensor);
    MemoryView packed = MemoryView::rowMajor(view.type, box, nullptr);
    auto layoutOf = [&](const StagedOperand &operand) {
      return MatrixLayout{mergeRows(operand.view, box, rowDims)->stride, operand.view.strides.back(),
                          operand.alignment};
    };
    StagedOperand operand = inPlace(view, box);
    copies = copies || (mode == StagingMode::Packed && !isPacked(view, packed, box));
    if (!copies) {
      layout = layoutOf(operand);
      copies = !(layout.*isTaken)(mergeRows(view, box, rowDims)->extent, box[box.rank() - 1].size());
    }
    if (copies) {
      operand = copied(std::move(packed), scratch);
      layout = layoutOf(operand);
    }
    return operand;
  };
  // What comes after the library reads what was in its result's memory.
  bool isRead = readsResult(memory, std::span(call.postOps).subspan(fused), call.output);
  a = place(call.a, geometry.aBox, call.rowDims, false, &MatrixLayout::isFactor, layoutA);
  b = place(call.b, geometry.bBox, 1, false, &MatrixLayout::isFactor, layoutB);
  output = place(call.output, geometry.outBox, call.rowDims, isRead, &MatrixLayout::isResult, layoutOut);
  if (call.form.transposesA)
    std::swap(layoutA.rowStride, layoutA.columnStride);
  if (call.form.transposesB)
    std::swap(layoutB.rowStride, layoutB.columnStride);
}

/// Whether the numbers of `operand`, real or complex, lie so that a library of transforms takes them.
static bool isTransformable(const StagedOperand &operand, bool isReal) {
  const MemoryView &view = operand.view;
  // Where parts are neighbours, all other distances are even, since no rank has one part alone.
  return operand.alignment >= 2 * elementSize(view.type) && (isReal || view.strides.back() == 1);
}

/// Fewer calls, or calls of so many bytes, are faster than one call with copies around it.
static constexpr int64_t directCalls = 4, directBytes = int64_t(4) << 20;

void TransformStaging::place(const RankMemory &memory, const TransformCall &call, bool copies) {
  // Lines one after the other.
  int rank = outBox.rank(), axis = static_cast<int>(call.form.axis);
  MemoryFormat wanted;
  for (int dim = 0; dim + 1 < rank; ++dim)
    if (dim != axis)
      wanted.order.push_back(dim);
  wanted.order.insert(wanted.order.end(), {axis, rank - 1});
  scratch = {};
  auto placeOne = [&](const MemoryView &view, const Box &box, bool isReal, bool isOverwritten) {
    StagedOperand operand = inPlace(view, box);
    MemoryView packed = MemoryView::packed(view.type, box, wanted);
    bool stays = !copies;
    if (isPacked(view, packed, box)) {
      operand.view.strides = packed.strides;
      stays = true;
    }
    return stays && !isOverwritten && isTransformable(operand, isReal) ? operand : copied(std::move(packed), scratch);
  };
  // The library overwrites the spectra of real numbers.
  input = placeOne(memory.memory(call.input), inBox, call.form.readsReal, call.form.writesReal);
  output = placeOne(memory.memory(call.output), outBox, call.form.writesReal, false);
  inputPoint = input.view.strides[axis];
  outputPoint = output.view.strides[axis];
  calls = {};
  for (int dim = 0; dim + 1 < rank; ++dim)
    if (dim != axis)
      calls.add({outBox[dim].size(), {input.view.strides[dim], output.view.strides[dim]}});
  batch = calls.takeLongest();
}

absl::StatusOr<TransformStaging> TransformStaging::plan(const RankMemory &memory, const TransformCall &call) {
  TransformStaging result;
  result.outBox = memory.resultBox(call.loops, call.output);
  result.inBox = call.form.readBox(result.outBox);
  for (const auto &[tensor, box] : {std::pair{call.input, result.inBox}, {call.output, result.outBox}})
    if (absl::Status status = memory.checkHeld(tensor, box); !status.ok())
      return status;
  result.place(memory, call, /*copies=*/false);
  // Else real numbers of other calls would not be aligned to complex ones.
  bool isAligned = std::all_of(result.calls.get().begin(), result.calls.get().end(), [](const BatchLoop<2> &loop) {
    return loop.strides[0] % 2 == 0 && loop.strides[1] % 2 == 0;
  });
  int64_t bytes = 2 * result.batch.count * call.form.length * elementSize(memory.memory(call.output).type);
  if (!isAligned || (result.calls.countIterations() > directCalls && bytes < directBytes))
    result.place(memory, call, /*copies=*/true);
  return result;
}

absl::StatusOr<CallBytes> dovetail::runtime::stagedCallBytes(const RankMemory &memory, const StepInfo &step,
                                                             bool inPrologue) {
  CallBytes bytes;
  if (!step.memory)
    return bytes;
  auto addScratch = [&](DeviceScratch scratch) {
    scratch.add(step.memory->scratchBytes(memory.rank, /*threads=*/1));
    bytes.scratch = std::max(bytes.scratch, scratch.size());
  };
  constexpr StagingMode modes[] = {StagingMode::Direct, StagingMode::Packed};
  if (const auto *call = std::get_if<ConvolutionCall>(&step.action)) {
    if (memory.resultBox(call->loops, call->output).empty())
      return bytes;
    bool keepsWeights = !inPrologue && memory.isConstant(call->weights);
    for (const ConvolutionChannels &channels : planConvolutionChannels(*call, memory.loopBox(call->loops))) {
      absl::StatusOr<ConvolutionGeometry> geometry = ConvolutionGeometry::plan(memory, *call, channels);
      if (!geometry.ok())
        return geometry.status();
      if (geometry->nothingToSum)
        continue;
      int64_t packed = 0;
      for (StagingMode mode : modes) {
        ConvolutionStaging staging(memory, *call, *geometry, keepsWeights, mode);
        addScratch(staging.scratch);
        packed = std::max(packed, staging.packedBytes);
        if (!PointwiseStaging::takes(*call, *geometry, channels))
          continue;
        PointwiseStaging product(memory, *call, *geometry, keepsWeights, mode, /*fused=*/0);
        addScratch(product.scratch);
        packed = std::max(packed, product.packedBytes);
      }
      bytes.packed += packed;
    }
  } else if (const auto *call = std::get_if<MatMulCall>(&step.action)) {
    if (memory.resultBox(call->loops, call->output).empty())
      return bytes;
    absl::StatusOr<ProductGeometry> geometry = ProductGeometry::plan(memory, *call, memory.loopBox(call->loops));
    if (!geometry.ok())
      return geometry.status();
    if (!geometry->nothingToSum)
      for (StagingMode mode : modes)
        addScratch(ProductStaging(memory, *call, *geometry, mode, /*fused=*/0).scratch);
  } else if (const auto *call = std::get_if<TransformCall>(&step.action)) {
    if (memory.resultBox(call->loops, call->output).empty())
      return bytes;
    absl::StatusOr<TransformStaging> staging = TransformStaging::plan(memory, *call);
    if (!staging.ok())
      return staging.status();
    addScratch(staging->scratch);
  }
  if (!inPrologue)
    bytes.packed += alignedSize(step.memory->packedBytes(memory.rank));
  return bytes;
}
