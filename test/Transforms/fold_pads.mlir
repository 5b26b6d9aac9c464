// RUN: dovetail-opt %s --dovetail-fold-pads | FileCheck %s

// CHECK-LABEL: func @conv
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: dovetail.conv %[[X]], %{{.*}} {{{.*}}pads_high = array<i64: 2, 0>, pads_low = array<i64: 1, 2>
func.func @conv(%x: tensor<1x2x5x5xf32>) -> tensor<1x1x6x5xf32> {
  %w = dovetail.constant dense<0.25> : tensor<1x2x3x3xf32>
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 2, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<1x2x5x5xf32>) -> tensor<1x2x8x6xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>} : (tensor<1x2x8x6xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x6x5xf32>
  return %1 : tensor<1x1x6x5xf32>
}

// What is cropped must not come back as an element where the convolution pads.
// CHECK-LABEL: func @crop_then_conv
// CHECK: dovetail.pad
// CHECK: dovetail.conv
func.func @crop_then_conv(%x: tensor<1x1x5xf32>) -> tensor<1x1x4xf32> {
  %w = dovetail.constant dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>
  %0 = dovetail.pad %x {low = array<i64: 0, 0, -1>, high = array<i64: 0, 0, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>) -> tensor<1x1x4xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x4xf32>, tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
  return %1 : tensor<1x1x4xf32>
}

// CHECK-LABEL: func @other_values
// CHECK: dovetail.pad
// CHECK: dovetail.conv
// CHECK: dovetail.pad
// CHECK: dovetail.conv
func.func @other_values(%x: tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = dovetail.constant dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>
  %v = dovetail.constant dense<1.0> : tensor<f32>
  %0 = dovetail.pad %x, %v {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x7xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x7xf32>, tensor<1x1x3xf32>) -> tensor<1x1x5xf32>
  %2 = dovetail.pad %1 {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<reflect>} : (tensor<1x1x5xf32>) -> tensor<1x1x7xf32>
  %3 = dovetail.conv %2, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x7xf32>, tensor<1x1x3xf32>) -> tensor<1x1x5xf32>
  return %3 : tensor<1x1x5xf32>
}

// Padding was counted, and so it is as pads of the window.
// CHECK-LABEL: func @average
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: dovetail.pool %[[X]] {{{.*}}kind = #dovetail.pool_kind<average_include_pad>{{.*}}pads_high = array<i64: 1, 0>, pads_low = array<i64: 1, 2>
func.func @average(%x: tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32> {
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x7x6xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<average_exclude_pad>, kernel = array<i64: 3, 3>, strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x2x7x6xf32>) -> tensor<1x2x3x4xf32>
  return %1 : tensor<1x2x3x4xf32>
}

// Here some padding counts and some does not.
// CHECK-LABEL: func @average_with_pads
// CHECK: dovetail.pad
// CHECK: dovetail.pool
func.func @average_with_pads(%x: tensor<1x1x5xf32>) -> tensor<1x1x7xf32> {
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>) -> tensor<1x1x7xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<average_exclude_pad>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x7xf32>) -> tensor<1x1x7xf32>
  return %1 : tensor<1x1x7xf32>
}

// The window that starts in the trailing zeros counts, but one that starts in a trailing pad is dropped.
// CHECK-LABEL: func @average_ceil
// CHECK: dovetail.pad
// CHECK: dovetail.pool
func.func @average_ceil(%x: tensor<1x1x4xf32>) -> tensor<1x1x3xf32> {
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 0>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x4xf32>) -> tensor<1x1x5xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<average_include_pad>, kernel = array<i64: 2>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, ceil} : (tensor<1x1x5xf32>) -> tensor<1x1x3xf32>
  return %1 : tensor<1x1x3xf32>
}

// CHECK-LABEL: func @maximum_of_lowest
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: dovetail.pool %[[X]] {{{.*}}pads_high = array<i64: 1>, pads_low = array<i64: 1>
func.func @maximum_of_lowest(%x: tensor<1x1x5xf32>) -> tensor<1x1x3xf32> {
  %v = dovetail.constant dense<0xFF800000> : tensor<f32>
  %0 = dovetail.pad %x, %v {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x7xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x7xf32>) -> tensor<1x1x3xf32>
  return %1 : tensor<1x1x3xf32>
}

// CHECK-LABEL: func @maximum_of_rectified
// CHECK: %[[R:.*]] = dovetail.relu
// CHECK-NEXT: dovetail.pool %[[R]]
func.func @maximum_of_rectified(%x: tensor<1x1x5xf32>) -> tensor<1x1x3xf32> {
  %r = dovetail.relu %x : (tensor<1x1x5xf32>) -> tensor<1x1x5xf32>
  %0 = dovetail.pad %r {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>) -> tensor<1x1x7xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x7xf32>) -> tensor<1x1x3xf32>
  return %1 : tensor<1x1x3xf32>
}

// CHECK-LABEL: func @maximum_of_zeros
// CHECK: dovetail.pad
// CHECK: dovetail.pool
func.func @maximum_of_zeros(%x: tensor<1x1x5xf32>) -> tensor<1x1x3xf32> {
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 1>, high = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x1x5xf32>) -> tensor<1x1x7xf32>
  %1 = dovetail.pool %0 {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x7xf32>) -> tensor<1x1x3xf32>
  return %1 : tensor<1x1x3xf32>
}
