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
// - AVX-512: `brgemm_convolution_utils::init_jcp` refuses groups of up to 16 channels and depthwise convolutions;
//   `brdgmm_dw_convolution_fwd_t` has depthwise ones of 2-D without dilation. What is left goes through
//   `jit_avx512_common_conv_fwd_kernel`, which computes a vector of channels for each group, however few it has.
// - Transposed convolutions are the gradient of one (`ref_deconvolution_fwd_t`), whatever the instructions.
//
//===----------------------------------------------------------------------===//

#include "OneDnnConvolutions.h"

#include "dovetail/Layout/Gathered.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// What decides which of the library's implementations takes a convolution.
struct Shape {
  explicit Shape(plan::ConvolutionOp call);

  layout::ConvolutionForm form;
  size_t dims;             ///< Spatial ones.
  int64_t inputs, outputs; ///< Channels of a group.
  int64_t columns;         ///< Results along the innermost dimension.
  bool isDepthwise, isDilated = false, isPoint = true;
  bool isTile = true;      ///< Windows lie side by side.
  bool reachesOut = false; ///< A window may lie in padding alone.
  bool isPadded = false, isStrided = false;
  int64_t padBefore = 0, padBehind = 0; ///< Along the innermost dimension.
};
} // namespace

static RankedTensorType getTensor(Value ref) { return cast<plan::RefType>(ref.getType()).getTensor(); }

Shape::Shape(plan::ConvolutionOp call) : form(*call.getForm()), dims(form.windows.size()) {
  RankedTensorType input = getTensor(call.getInput()), output = getTensor(call.getOutput());
  inputs = input.getDimSize(1) / form.groups;
  outputs = output.getDimSize(1) / form.groups;
  columns = output.getDimSize(dims + 1);
  isDepthwise = form.groups > 1 && inputs == 1 && outputs == 1;
  for (auto [dim, window] : llvm::enumerate(form.windows)) {
    padBefore = window.pad;
    padBehind =
        (output.getDimSize(dim + 2) - 1) * window.stride + window.reach() - window.pad - input.getDimSize(dim + 2);
    isPadded |= padBefore > 0 || padBehind > 0;
    reachesOut |= padBefore >= window.reach() || padBehind >= window.reach();
    isDilated |= window.dilation > 1 && window.kernel > 1;
    isStrided |= window.stride > 1;
    isPoint &= window.kernel == 1;
    isTile &= window.kernel == window.stride && window.dilation == 1;
  }
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
    return shape.dims != 2 || shape.reachesOut;
  if (shape.reachesOut || shape.padBefore > std::min(rowOfResults, shape.columns) ||
      shape.padBehind > rowOfResults * inner.stride || (shape.dims == 1 && shape.columns > mostColumns) ||
      (inner.kernel > widestStrided && shape.isPadded && shape.isStrided))
    return true;
  // Weights of groups of fewer channels have a form that it does not take.
  return shape.form.groups > 1 && shape.inputs < vector;
}

static bool isSlowWithAvx512(const Shape &shape) {
  if (shape.isDepthwise)
    return shape.dims != 2 || shape.isDilated || shape.reachesOut;
  constexpr int64_t vector = 16;
  return shape.form.groups > 1 && (shape.inputs <= vector / 4 || shape.outputs <= vector / 4 || shape.reachesOut);
}

bool dovetail::mayGather(plan::ConvolutionOp call) {
  auto isBlocked = [](Value ref) {
    plan::BufferOp buffer = plan::getBufferOp(ref);
    return buffer && buffer.getFormat().isBlocked();
  };
  return getTensor(call.getOutput()).getElementType().isF32() && !isBlocked(call.getInput()) &&
         !isBlocked(call.getOutput()) && layout::gatheredPhases(*call.getForm()) <= layout::gatheredMostPhases;
}

bool dovetail::isSlowConvolution(plan::ConvolutionOp call, bool hasAvx2, bool hasAvx512) {
  if (!mayGather(call))
    return false;
  Shape shape(call);
  if (shape.form.isTransposed)
    return !shape.isTile || shape.form.groups > 1;
  if (hasAvx512)
    return isSlowWithAvx512(shape);
  if (hasAvx2)
    return isSlowWithAvx2(shape);
  // With SSE 4.1 results of one vector are computed at a time.
  return shape.form.groups > 1 ? !shape.isDepthwise || shape.dims != 2 || shape.reachesOut
                               : !shape.isPoint || shape.isPadded;
}
