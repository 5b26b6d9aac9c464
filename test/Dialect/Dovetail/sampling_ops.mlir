// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Positions: the middle, the first element's centre, half an element beyond the last one in x, all but outside.

// CHECK-LABEL: func.func @grid
// CHECK-DAG: dense<{{\[\[\[}}[1.500000e+00, 0.000000e+00, 1.000000e+00, 0.000000e+00]]]]>
// CHECK-DAG: dense<{{\[\[\[}}[1.500000e+00, 0.000000e+00, 2.000000e+00, 1.000000e+00]]]]>
// CHECK-DAG: dense<{{\[\[\[}}[1.500000e+00, 0.000000e+00, 1.500000e+00, 2.000000e+00]]]]>
func.func @grid() -> (tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>) {
  %image = dovetail.constant dense<[[[[0.0, 1.0], [2.0, 3.0]]]]> : tensor<1x1x2x2xf32>
  %grid = dovetail.constant dense<[[[[0.0, 0.0], [-1.0, -1.0], [2.0, 0.0], [3.0, -3.0]]]]> : tensor<1x1x4x2xf32>
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<constant>, align_corners} : (tensor<1x1x2x2xf32>, tensor<1x1x4x2xf32>) -> tensor<1x1x1x4xf32>
  %1 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<edge>, align_corners} : (tensor<1x1x2x2xf32>, tensor<1x1x4x2xf32>) -> tensor<1x1x1x4xf32>
  // x = 1.5 is 0.5 mirrored at the last centre; x = 2 and y = -1 are 0 and 1.
  %2 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<reflect>, align_corners} : (tensor<1x1x2x2xf32>, tensor<1x1x4x2xf32>) -> tensor<1x1x1x4xf32>
  return %0, %1, %2 : tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>
}

// Halves go to the even neighbour. What is no number is beyond the first element.

// CHECK-LABEL: func.func @nearest
// CHECK-DAG: dense<{{\[\[}}[7, 9, 0, 0]]]>
// CHECK-DAG: dense<{{\[\[}}[7, 9, 9, 7]]]>
func.func @nearest() -> (tensor<1x1x4xi64>, tensor<1x1x4xi64>) {
  %image = dovetail.constant dense<[[[7, 8, 9]]]> : tensor<1x1x3xi64>
  %grid = dovetail.constant dense<[[[-0.5], [0.5], [9.0], [0x7FC00000]]]> : tensor<1x4x1xf32>
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<nearest>, padding = #dovetail.pad_mode<constant>, align_corners} : (tensor<1x1x3xi64>, tensor<1x4x1xf32>) -> tensor<1x1x4xi64>
  %1 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<nearest>, padding = #dovetail.pad_mode<edge>, align_corners} : (tensor<1x1x3xi64>, tensor<1x4x1xf32>) -> tensor<1x1x4xi64>
  return %0, %1 : tensor<1x1x4xi64>, tensor<1x1x4xi64>
}

// The example of ONNX's node test without padding, whose windows sum up to 9.5, 11.9, 20 and 24.

// CHECK-LABEL: func.func @deformed
// CHECK: dense<{{\[\[\[\[\[\[\[}}1.500000e+00]], {{\[\[}}1.000000e+00]], {{\[\[}}3.000000e+00]], {{\[\[}}4.000000e+00]]], {{\[\[\[}}1.000000e+00]], {{\[\[}}2.000000e+00]], {{\[\[}}3.900000e+00]], {{\[\[}}5.000000e+00]]]], {{\[\[\[\[}}3.000000e+00]], {{\[\[}}4.000000e+00]], {{\[\[}}6.000000e+00]], {{\[\[}}7.000000e+00]]], {{\[\[\[}}4.000000e+00]], {{\[\[}}5.000000e+00]], {{\[\[}}7.000000e+00]], {{\[\[}}8.000000e+00]]]]]]]>
func.func @deformed() -> tensor<1x1x2x2x4x1x1xf32> {
  %image = dovetail.constant dense<[[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]]]> : tensor<1x1x3x3xf32>
  %none = dovetail.constant dense<0.0> : tensor<1x4x2x2xf32>
  %offset = dovetail.constant dense<[[[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, -0.1], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]]> : tensor<1x8x2x2xf32>
  %0 = dovetail.deform_sample %image, %offset {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>} : (tensor<1x1x3x3xf32>, tensor<1x8x2x2xf32>) -> tensor<1x1x2x2x4x1x1xf32>
  return %0 : tensor<1x1x2x2x4x1x1xf32>
}

// Bins of two by two elements: one sample in the middle, where it is at an element, or four; and all of them.

// CHECK-LABEL: func.func @regions
// CHECK-DAG: dense<{{\[\[\[}}[5.000000e+00, 7.000000e+00], [1.300000e+01, 1.500000e+01]]]]>
// CHECK-DAG: dense<{{\[\[\[}}[2.500000e+00, 4.500000e+00], [1.050000e+01, 1.250000e+01]]]]>
// CHECK-DAG: dense<{{\[\[\[}}[5.000000e+00, 7.000000e+00], [1.300000e+01, 1.500000e+01]]]]>
func.func @regions() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %image = dovetail.constant dense<[[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]]]> : tensor<1x1x4x4xf32>
  %rois = dovetail.constant dense<[[0.0, 0.0, 4.0, 4.0]]> : tensor<1x4xf32>
  %pixels = dovetail.constant dense<[[0.0, 0.0, 3.0, 3.0]]> : tensor<1x4xf32>
  %batch = dovetail.constant dense<-1> : tensor<1xi64>
  %0 = dovetail.roi_align %image, %rois, %batch {pooled = array<i64: 2, 2>, sampling_ratio = 1 : i64, spatial_scale = 1.0 : f32, max} : (tensor<1x1x4x4xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<1x1x2x2xf32>
  %1 = dovetail.roi_align %image, %rois, %batch {pooled = array<i64: 2, 2>, sampling_ratio = 0 : i64, spatial_scale = 1.0 : f32, half_pixel} : (tensor<1x1x4x4xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<1x1x2x2xf32>
  %2 = dovetail.max_roi_pool %image, %pixels, %batch {pooled = array<i64: 2, 2>, spatial_scale = 1.0 : f32} : (tensor<1x1x4x4xf32>, tensor<1x4xf32>, tensor<1xi64>) -> tensor<1x1x2x2xf32>
  return %0, %1, %2 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// -----

func.func @rank(%image: tensor<1x2x5x5xf32>, %grid: tensor<1x3x3x3xf32>) -> tensor<1x2x3x3xf32> {
  // expected-error @+2 {{cannot sample 'tensor<1x2x5x5xf32>' at 'tensor<1x3x3x3xf32>': the grid needs the batch}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<constant>} : (tensor<1x2x5x5xf32>, tensor<1x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %0 : tensor<1x2x3x3xf32>
}

// -----

func.func @integers(%image: tensor<1x2x5xi32>, %grid: tensor<1x3x1xf32>) -> tensor<1x2x3xi32> {
  // expected-error @+2 {{interpolates elements of 'tensor<1x2x5xi32>', which are not floats}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<constant>} : (tensor<1x2x5xi32>, tensor<1x3x1xf32>) -> tensor<1x2x3xi32>
  return %0 : tensor<1x2x3xi32>
}

// -----

func.func @wrap(%image: tensor<1x2x5xf32>, %grid: tensor<1x3x1xf32>) -> tensor<1x2x3xf32> {
  // expected-error @+2 {{cannot pad by wrapping around}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<wrap>} : (tensor<1x2x5xf32>, tensor<1x3x1xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// -----

func.func @terms(%image: tensor<1x1x2x2x2x2x2x2xf32>, %grid: tensor<1x1x1x1x1x1x1x6xf32>) -> tensor<1x1x1x1x1x1x1x1xf32> {
  // expected-error @+2 {{interpolates more than 1024 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<cubic>, padding = #dovetail.pad_mode<constant>} : (tensor<1x1x2x2x2x2x2x2xf32>, tensor<1x1x1x1x1x1x1x6xf32>) -> tensor<1x1x1x1x1x1x1x1xf32>
  return %0 : tensor<1x1x1x1x1x1x1x1xf32>
}

// -----

func.func @nothing(%image: tensor<1x2x0xf32>, %grid: tensor<1x3x1xf32>) -> tensor<1x2x3xf32> {
  // expected-error @+2 {{samples dimension 2 of 'tensor<1x2x0xf32>', which has no elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.grid_sample %image, %grid {mode = #dovetail.resize_mode<linear>, padding = #dovetail.pad_mode<constant>} : (tensor<1x2x0xf32>, tensor<1x3x1xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// -----

func.func @offsets(%image: tensor<1x4x5x5xf32>, %offset: tensor<1x9x5x5xf32>) -> tensor<1x1x5x5x9x1x4xf32> {
  // expected-error @+2 {{of 'tensor<1x4x5x5xf32>' with 1 groups of 9 taps they need rank 4 and 18 elements for each window}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.deform_sample %image, %offset {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<1x9x5x5xf32>) -> tensor<1x1x5x5x9x1x4xf32>
  return %0 : tensor<1x1x5x5x9x1x4xf32>
}

// -----

func.func @groups(%image: tensor<1x4x5x5xf32>, %offset: tensor<1x54x5x5xf32>) -> tensor<1x1x5x5x9x1x4xf32> {
  // expected-error @+2 {{has 3 groups, which do not divide the channels of 'tensor<1x4x5x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.deform_sample %image, %offset {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, offset_groups = 3 : i64} : (tensor<1x4x5x5xf32>, tensor<1x54x5x5xf32>) -> tensor<1x1x5x5x9x1x4xf32>
  return %0 : tensor<1x1x5x5x9x1x4xf32>
}

// -----

func.func @mask(%image: tensor<1x4x5x5xf32>, %offset: tensor<1x18x5x5xf32>, %mask: tensor<1x9x5x4xf32>) -> tensor<1x1x5x5x9x1x4xf32> {
  // expected-error @+2 {{has a mask of type 'tensor<1x9x5x4xf32>', which does not fit 'tensor<1x18x5x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.deform_sample %image, %offset, %mask {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<1x18x5x5xf32>, tensor<1x9x5x4xf32>) -> tensor<1x1x5x5x9x1x4xf32>
  return %0 : tensor<1x1x5x5x9x1x4xf32>
}

// -----

func.func @corners(%image: tensor<1x4x5x5xf32>, %rois: tensor<2x5xf32>, %batch: tensor<2xi64>) -> tensor<2x4x1x1xf32> {
  // expected-error @+2 {{has regions of type 'tensor<2x5xf32>' and batch indices of type 'tensor<2xi64>'; these are [R, 4] and [R]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.max_roi_pool %image, %rois, %batch {pooled = array<i64: 1, 1>, spatial_scale = 1.0 : f32} : (tensor<1x4x5x5xf32>, tensor<2x5xf32>, tensor<2xi64>) -> tensor<2x4x1x1xf32>
  return %0 : tensor<2x4x1x1xf32>
}

// -----

func.func @ratio(%image: tensor<1x4x5x5xf32>, %rois: tensor<2x4xf32>, %batch: tensor<2xi64>) -> tensor<2x4x1x1xf32> {
  // expected-error @+2 {{has sampling ratio -1, which must be a number of samples, or 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.roi_align %image, %rois, %batch {pooled = array<i64: 1, 1>, sampling_ratio = -1 : i64, spatial_scale = 1.0 : f32} : (tensor<1x4x5x5xf32>, tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4x1x1xf32>
  return %0 : tensor<2x4x1x1xf32>
}
