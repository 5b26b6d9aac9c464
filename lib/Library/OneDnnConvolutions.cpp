//===- OneDnnConvolutions.cpp - Convolutions oneDNN is slow at ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States which convolutions oneDNN 2.6.3 has its reference implementation for (`ref:any`) or one that is slower than
// the runtime's own kernels, where channels are innermost in memory. The conditions are those of its sources:
//
// - AVX2: `jit_avx2_conv_fwd_kernel_f32::init_conf`, `jit_avx2_1x1_conv_kernel_f32::init_conf` and
//   `jit_uni_dw_conv_fwd_kernel::init_conf` (2-D alone). What these refuse is left to a product with a copy of what all
//   windows read (`gemm:jit`), which takes memory that is a multiple of the input, or to the reference.
//   Sums of few terms, of many outputs, spend their time on loops.
// - AVX-512: `brgemm_convolution_utils::init_jcp` has products of as many terms as there are inputs, for each tap. It
//   refuses groups of up to 16 channels and depthwise convolutions;
//   `brdgmm_dw_convolution_fwd_t` has depthwise ones of 2-D without dilation. What is left goes through
//   `jit_avx512_common_conv_fwd_kernel`, which computes a vector of channels for each group, however few it has.
// - Transposed convolutions are the gradient of one (`ref_deconvolution_fwd_t`), whatever the instructions.
//
//===----------------------------------------------------------------------===//

#include "OneDnnConvolutions.h"

#include "dovetail/Calls/Gathered.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// The facts that decide which of the library's implementations takes a part of a convolution. Padding is that of the
/// whole: no part has more.
struct Shape {
  Shape(const CallShape &call, const layout::Box &loops);
  /// Products that a result is the sum of.
  int64_t getTerms() const { return inputs * form.numTaps(); }

  calls::ConvolutionForm form;
  size_t dims;             ///< Spatial ones.
  int64_t inputs, outputs; ///< Channels of a group.
  int64_t columns;         ///< Results along the innermost dimension.
  bool isDepthwise, isDilated = false, isPoint = true;
  bool isTile = true;      ///< Windows lie side by side, and the part consists of whole ones.
  bool reachesOut = false; ///< A window may lie in padding alone.
  bool isPadded = false, isStrided = false;
  int64_t padBefore = 0, padBehind = 0; ///< Along the innermost dimension.
};
} // namespace

Shape::Shape(const CallShape &call, const layout::Box &loops)
    : form(*call.as<calls::ConvolutionForm>()), dims(form.windows.size()) {
  inputs = std::max<int64_t>(loops[static_cast<int>(dims) + 2].size(), 1);
  outputs = std::min(call.result.getDimSize(1) / form.groups, loops[1].size());
  columns = loops[static_cast<int>(dims) + 1].size();
  isDepthwise = form.groups > 1 && inputs == 1 && outputs == 1;
  for (auto [dim, window] : llvm::enumerate(form.windows)) {
    padBefore = window.pad;
    padBehind = call.getPadBehind(dim, window);
    isPadded |= padBefore > 0 || padBehind > 0;
    reachesOut |= padBefore >= window.reach() || padBehind >= window.reach();
    isDilated |= window.dilation > 1 && window.kernel > 1;
    isStrided |= window.stride > 1;
    isPoint &= window.kernel == 1;
    layout::Interval range = loops[static_cast<int>(dim) + 2];
    isTile &= window.kernel == window.stride && window.dilation == 1 && (range.lo + window.pad) % window.stride == 0 &&
              (range.hi + window.pad) % window.stride == 0;
  }
}

/// Of a depthwise convolution, `results` of a row are computed together, which have all padding between them.
static bool isSlowDepthwise(const Shape &shape, int64_t results) {
  results = std::max<int64_t>(std::min(results, shape.columns), 1);
  int64_t left = shape.columns % results * shape.form.windows.back().stride;
  return shape.dims != 2 || shape.reachesOut || shape.padBefore > results || shape.padBehind - left > results;
}

/// With AVX2 but without AVX-512.
static bool isSlowWithAvx2(const Shape &shape) {
  // Of a row so many results are computed together, which must have all padding between them, and no 1-D convolution
  // has so many.
  constexpr int64_t rowOfResults = 3, mostColumns = 11 << 10, vector = 8, widestStrided = 7;
  const layout::Window &inner = shape.form.windows.back();
  if (shape.form.groups == 1 && shape.isPoint && !shape.isPadded)
    return false;
  if (shape.isDepthwise)
    return isSlowDepthwise(shape, /*results=*/4);
  if (shape.reachesOut || shape.padBefore > std::min(rowOfResults, shape.columns) ||
      shape.padBehind > rowOfResults * inner.stride || (shape.dims == 1 && shape.columns > mostColumns) ||
      (inner.kernel > widestStrided && shape.isPadded && shape.isStrided))
    return true;
  // Weights of groups of fewer inputs have a form that it does not take, and of fewer outputs it computes whole
  // vectors.
  if (shape.form.groups > 1)
    return shape.inputs < vector || shape.outputs <= vector || shape.isPoint;
  constexpr int64_t fewTerms = 4, manyOutputs = 256;
  return shape.getTerms() <= fewTerms && shape.outputs >= manyOutputs;
}

static bool isSlowWithAvx512(const Shape &shape) {
  if (shape.isDepthwise)
    return shape.dims != 2 || shape.isDilated || shape.reachesOut;
  constexpr int64_t vector = 16, fewTerms = 64, manyOutputs = 64;
  if (shape.form.groups == 1)
    return shape.getTerms() <= fewTerms && shape.outputs >= manyOutputs && !shape.isPoint;
  return shape.inputs <= vector / 4 || shape.outputs <= vector / 4 || shape.reachesOut;
}

bool dovetail::mayGather(const CallShape &call) {
  const auto *form = call.as<calls::ConvolutionForm>();
  return form && call.result.getElementType().isF32() && calls::gatheredPhases(*form) <= calls::gatheredMostPhases;
}

bool dovetail::isSlowConvolution(const CallShape &call, const layout::Box &loops, bool hasAvx2, bool hasAvx512) {
  if (!mayGather(call))
    return false;
  Shape shape(call, loops);
  if (shape.form.isTransposed)
    return !shape.isTile || shape.form.groups > 1;
  if (hasAvx512)
    return isSlowWithAvx512(shape);
  if (hasAvx2)
    return isSlowWithAvx2(shape);
  // With SSE 4.1 results of one vector are computed at a time.
  return shape.form.groups > 1 ? !shape.isDepthwise || isSlowDepthwise(shape, /*results=*/3)
                               : !shape.isPoint || shape.isPadded;
}
