//===- SamplingOps.td - Sampling images where data say -*- tablegen -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_SAMPLINGOPS_TD
#define DOVETAIL_DIALECT_DOVETAIL_OPS_SAMPLINGOPS_TD

include "dovetail/Dialect/Dovetail/IR/DovetailOpBase.td"

/// Samples its first operand, an image [N, C, spatial...]. Loops: the result's dimensions, then those of the image that
/// are sampled: split, each rank adds what it owns, or takes the largest of it.
class Dovetail_SamplingOp<string mnemonic, list<string> methods = []> : Dovetail_InferredOp<mnemonic, [],
    ["emitBody", "isCheapElement", "getFormatPreference"] # methods>;

def Dovetail_GridSampleOp : Dovetail_SamplingOp<"grid_sample"> {
  let summary = "Elements of an image at positions that a grid gives (ONNX GridSample)";
  let description = [{
    `image` [N, C, spatial...], `grid` [N, positions..., rank of spatial] of floats, result [N, C, positions...]. The last
    dimension of the grid holds the coordinates of the innermost spatial dimension first; -1 and 1 are the centres of
    the first and last elements with `align_corners`, else their outer edges. `padding` says what is outside: zeros
    (`constant`), the nearest element (`edge`), or the mirror image at what -1 and 1 are (`reflect`). Linear and cubic
    interpolation, the latter with the coefficient -0.75, are for floats. Nearest positions round half to even.
    Coordinates that are no numbers are beyond the first element.
  }];
  let arguments = (ins Dovetail_Tensor:$image, Dovetail_FloatTensor:$grid, Dovetail_ResizeModeAttr:$mode,
                       Dovetail_PadModeAttr:$padding, UnitAttr:$align_corners);
}

def Dovetail_DeformSampleOp : Dovetail_SamplingOp<"deform_sample"> {
  let summary = "The elements that the windows of a deformable convolution see";
  let description = [{
    `image` [N, C, spatial...], `offset` [N, offset_groups * taps * rank, windows...], where a window of `kernel` has so
    many taps, and `mask` [N, offset_groups * taps, windows...], if there is one; the result is [N, groups, windows...,
    taps, blocks, block], whose last two dimensions are the channels of a group, divided into blocks that share offsets:
    its product with the weights, over the last three dimensions, is the deformable convolution (ONNX DeformConv). A tap
    is at window * stride - pads_low + (its place in the kernel) * dilation plus its offset in each dimension,
    interpolated linearly between its neighbours, zeros outside of the image, and times its mask.
  }];
  let arguments = (ins Dovetail_FloatTensor:$image, Dovetail_FloatTensor:$offset,
                       Optional<Dovetail_FloatTensor>:$mask, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low,
                       DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$offset_groups);
}

def Dovetail_RoiAlignOp : Dovetail_SamplingOp<"roi_align"> {
  let summary = "Averages or maxima of samples in the bins of regions (ONNX RoiAlign)";
  let description = [{
    `image` [N, C, H, W], `rois` [R, 4] (x, y of a corner, x, y of the opposite one, times `spatial_scale`),
    `batch_indices` [R] into N; result [R, C, pooled...]. A region is divided into bins, a bin into `sampling_ratio`²
    samples, or as many as it has elements, rounded up, where that is 0. Samples are interpolated linearly; those
    beyond one element from the image are zero. With `half_pixel` elements have their centres at halves; else regions
    are one element large at least. With `max` the result is the largest of the samples' terms: the neighbours times
    their weights, as ONNX has it.
  }];
  let arguments = (ins Dovetail_FloatTensor:$image, Dovetail_FloatTensor:$rois, Dovetail_IntegerTensor:$batch_indices,
                       DenseI64ArrayAttr:$pooled, I64Attr:$sampling_ratio, F32Attr:$spatial_scale, UnitAttr:$half_pixel,
                       UnitAttr:$max);
}

def Dovetail_MaxRoiPoolOp : Dovetail_SamplingOp<"max_roi_pool"> {
  let summary = "The largest elements in the bins of regions (ONNX MaxRoiPool)";
  let description = [{
    Operands as those of `roi_align`. The corners, times `spatial_scale`, are rounded to elements, both of which belong
    to the region. Bins may overlap by an element; one without elements gives zero. NaN is skipped.
  }];
  let arguments = (ins Dovetail_FloatTensor:$image, Dovetail_FloatTensor:$rois, Dovetail_IntegerTensor:$batch_indices,
                       DenseI64ArrayAttr:$pooled, F32Attr:$spatial_scale);
}

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_SAMPLINGOPS_TD
