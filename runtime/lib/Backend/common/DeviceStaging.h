//===- DeviceStaging.h - Copies around library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which operands of library calls on devices are copied into memory of the shape that libraries want, and how
// much memory calls take for that. It follows from boxes: a library says only on the device what it takes as it is, so
// that there is memory for both ways, with the operands where they are as far as possible, and packed.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_DEVICESTAGING_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_DEVICESTAGING_H

#include "BatchLoops.h"
#include "ConvolutionGeometry.h"
#include "ProductGeometry.h"
#include "ScratchPlan.h"

#include "dovetail/runtime/RankMemory.h"

#include "absl/status/statusor.h"

namespace dovetail::runtime {

/// Scratch memory in parts that are aligned as workspaces have to be.
using DeviceScratch = AlignedScratch<256>;

/// Bytes that devices' accesses are aligned to where it pays.
inline constexpr int64_t vectorAlignment = 16;

/// What the address of `part` of a buffer is a multiple of, wherever the buffer lies.
int64_t alignmentOf(const MemoryView &view, const layout::Box &part);

/// An operand as the library sees it: its own memory, or a copy in scratch memory.
struct StagedOperand {
  MemoryView view;
  int64_t alignment = vectorAlignment; ///< Of its address, in bytes, as far as that pays.
  bool isStaged = false;
  int64_t offset = 0; ///< Of the copy.
};

/// Whether operands stay where they are if the library may take them so, or lie packed and aligned.
enum class StagingMode { Direct, Packed };

/// The mode's name in reports.
inline const char *layoutName(StagingMode mode) { return mode == StagingMode::Direct ? "direct" : "packed"; }

/// The operands of a convolution of whole groups, whose result is not zero all over.
struct ConvolutionStaging {
  ConvolutionStaging(const RankMemory &memory, const ConvolutionCall &call, const ConvolutionGeometry &geometry,
                     bool keepsWeights, StagingMode mode);

  /// The order of dimensions that the library is given.
  MemoryFormat format(int rank) const;

  bool channelsLast = true;
  /// A transposed convolution is computed in full, into `full`, and then cut.
  bool isCut = false;
  StagedOperand input; ///< The copy is padded, so that the library need not know how; not of transposed ones.
  StagedOperand weights, output, full;
  DeviceScratch scratch; ///< For copies; of weights only if they are not kept.
  int64_t packedBytes = 0;
};

/// A matrix in memory; strides are in elements.
struct MatrixLayout {
  int64_t rowStride = 0, columnStride = 0;
  int64_t alignment = vectorAlignment; ///< Of the addresses of all matrices of a batch, in bytes.

  /// Whether both have the same strides.
  bool isLike(const MatrixLayout &other) const {
    return rowStride == other.rowStride && columnStride == other.columnStride;
  }
  /// Whether rows, or else columns, are contiguous, as libraries for products want them.
  bool isFactor(int64_t rows, int64_t columns) const {
    return hasContiguousRows(rows, columns) || isTransposed(rows, columns);
  }
  /// The same of what they write.
  bool isResult(int64_t rows, int64_t columns) const { return hasContiguousRows(rows, columns); }
  bool hasContiguousRows(int64_t rows, int64_t columns) const {
    return (columnStride == 1 || columns == 1) && (rows == 1 || rowStride >= columns);
  }
  bool isTransposed(int64_t rows, int64_t columns) const {
    return (rowStride == 1 || rows == 1) && (columns == 1 || columnStride >= rows);
  }
};

/// The operands of a product with something to sum, of which the library does the first `fused` post-ops. The fewer
/// these are, the more is staged.
struct ProductStaging {
  ProductStaging(const RankMemory &memory, const MatMulCall &call, const ProductGeometry &geometry, StagingMode mode,
                 size_t fused);

  StagedOperand a, b, output;
  MatrixLayout layoutA, layoutB, layoutOut;
  DeviceScratch scratch;
};

/// The operands of a convolution that consists of products of matrices, one for each tap. Its windows have one element,
/// or are transposed and lie side by side. Elements are rows, channels columns. The library does the first `fused`
/// post-ops. The fewer these are, the more is staged.
struct PointwiseStaging {
  /// Whether a part of a convolution is of this kind.
  static bool takes(const ConvolutionCall &call, const ConvolutionGeometry &geometry,
                    const ConvolutionChannels &channels);

  PointwiseStaging(const RankMemory &memory, const ConvolutionCall &call, const ConvolutionGeometry &geometry,
                   bool keepsWeights, StagingMode mode, size_t fused);

  layout::Box readBox; ///< Of the input: from the first to the last element that is read.
  MemoryView source;   ///< Of these elements, in the input's own memory. It has the box of `input`.
  StagedOperand input, weights, output;
  MatrixLayout factor;   ///< Of the weights of a tap: a row for each channel that is read.
  int64_t joined = 1;    ///< Taps along the last dimension whose columns follow each other in weights and output.
  DeviceScratch scratch; ///< For copies; of weights only if they are not kept.
  int64_t packedBytes = 0;
  int64_t biasOffset = 0; ///< In packed memory, of a bias for all joined columns, if there are joined taps.
};

/// The operands of Fourier transforms of some lines at least.
struct TransformStaging {
  /// Errors: DATA_LOSS when the rank does not hold what is needed.
  static absl::StatusOr<TransformStaging> plan(const RankMemory &memory, const TransformCall &call);

  layout::Box inBox, outBox;
  /// Of complex numbers, parts are neighbours, and all distances are even. Addresses are aligned to complex numbers.
  StagedOperand input, output;
  int64_t inputPoint = 0, outputPoint = 0; ///< Elements from one point of a line to the next.
  BatchLoop<2> batch;                      ///< Lines of a call, with strides of input and output.
  BatchLoops<2> calls;                     ///< The dimensions of lines that are left.
  DeviceScratch scratch;

private:
  void place(const RankMemory &memory, const TransformCall &call, bool copies);
};

/// Memory of a library call of a plan for a device; none for other steps. `memory` needs no addresses. Errors:
/// DATA_LOSS.
absl::StatusOr<CallBytes> stagedCallBytes(const RankMemory &memory, const StepInfo &step, bool inPrologue);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_DEVICESTAGING_H
