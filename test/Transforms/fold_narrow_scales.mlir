// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-fold-narrow-scales))' | FileCheck %s

// Batch normalisation in f32 behind a convolution of f16: the factor goes into the weights.

// CHECK-LABEL: func.func @norm
// CHECK-DAG: %[[FACTOR:.*]] = dovetail.constant dense<[{{.*}}5.000000e-01{{.*}}2.000000e+00
// CHECK-DAG: %[[WIDE:.*]] = dovetail.cast %{{.*}} {to = f32} : (tensor<2x1x1x1xf16>) -> tensor<2x1x1x1xf32>
// CHECK: %[[SCALED:.*]] = dovetail.mul %[[WIDE]], %{{.*}} : (tensor<2x1x1x1xf32>, tensor<2x1x1x1xf32>)
// CHECK: %[[WEIGHTS:.*]] = dovetail.cast %[[SCALED]] {to = f16}
// CHECK: %[[CONV:.*]] = dovetail.conv %arg0, %[[WEIGHTS]]
// CHECK: %[[SUMMAND:.*]] = dovetail.cast %{{.*}} {to = f16} : (tensor<2x1x1xf32>) -> tensor<2x1x1xf16>
// CHECK: dovetail.add %[[CONV]], %[[SUMMAND]]
// CHECK-NOT: dovetail.cast
func.func @norm(%x: tensor<1x1x4x4xf16>) -> tensor<1x2x4x4xf16> {
  %w = dovetail.constant dense<[[[[1.0]]], [[[-3.0]]]]> : tensor<2x1x1x1xf16>
  %s = dovetail.constant dense<[[[0.5]], [[2.0]]]> : tensor<2x1x1xf32>
  %b = dovetail.constant dense<[[[0.25]], [[1.0]]]> : tensor<2x1x1xf32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xf16>, tensor<2x1x1x1xf16>) -> tensor<1x2x4x4xf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x2x4x4xf16>) -> tensor<1x2x4x4xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = dovetail.add %2, %b : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %4 = dovetail.cast %3 {to = f16} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf16>
  return %4 : tensor<1x2x4x4xf16>
}

// -----

// Weights of the second channel would be subnormal, and be off by a tenth.

// CHECK-LABEL: func.func @subnormal
// CHECK: dovetail.mul {{.*}} : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>)
func.func @subnormal(%x: tensor<1x1x4x4xf16>) -> tensor<1x2x4x4xf16> {
  %w = dovetail.constant dense<[[[[1.0]]], [[[-0.001]]]]> : tensor<2x1x1x1xf16>
  %s = dovetail.constant dense<[[[0.5]], [[0.0005]]]> : tensor<2x1x1xf32>
  %b = dovetail.constant dense<1.0> : tensor<f32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xf16>, tensor<2x1x1x1xf16>) -> tensor<1x2x4x4xf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x2x4x4xf16>) -> tensor<1x2x4x4xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = dovetail.add %2, %b : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %4 = dovetail.cast %3 {to = f16} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf16>
  return %4 : tensor<1x2x4x4xf16>
}

// -----

// They would be infinite.

// CHECK-LABEL: func.func @infinite
// CHECK: dovetail.mul {{.*}} : (tensor<1x1x4x4xf32>, tensor<f32>)
func.func @infinite(%x: tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf16> {
  %w = dovetail.constant dense<300.0> : tensor<1x1x1x1xf16>
  %s = dovetail.constant dense<300.0> : tensor<f32>
  %b = dovetail.constant dense<1.0> : tensor<f32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xf16>, tensor<1x1x1x1xf16>) -> tensor<1x1x4x4xf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %3 = dovetail.add %2, %b : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %4 = dovetail.cast %3 {to = f16} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf16>
  return %4 : tensor<1x1x4x4xf16>
}

// -----

// The summand would be infinite, and the sum not a number.

// CHECK-LABEL: func.func @infinite_summand
// CHECK: dovetail.add {{.*}} : (tensor<1x1x4x4xf32>, tensor<f32>)
func.func @infinite_summand(%x: tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf16> {
  %w = dovetail.constant dense<1.0> : tensor<1x1x1x1xf16>
  %s = dovetail.constant dense<316.0> : tensor<f32>
  %b = dovetail.constant dense<-94800.0> : tensor<f32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xf16>, tensor<1x1x1x1xf16>) -> tensor<1x1x4x4xf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %3 = dovetail.add %2, %b : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %4 = dovetail.cast %3 {to = f16} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf16>
  return %4 : tensor<1x1x4x4xf16>
}

// -----

// The factor varies along the image, or the convolution is read by others, too.

// CHECK-LABEL: func.func @others
// CHECK: dovetail.mul {{.*}} : (tensor<1x1x4x4xf32>, tensor<4xf32>)
// CHECK: dovetail.mul {{.*}} : (tensor<1x1x4x4xf32>, tensor<f32>)
func.func @others(%x: tensor<1x1x4x4xbf16>) -> (tensor<1x1x4x4xbf16>, tensor<1x1x4x4xbf16>, tensor<1x1x4x4xbf16>) {
  %w = dovetail.constant dense<3.0> : tensor<1x1x1x1xbf16>
  %v = dovetail.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %s = dovetail.constant dense<3.0> : tensor<f32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xbf16>, tensor<1x1x1x1xbf16>) -> tensor<1x1x4x4xbf16>
  %1 = dovetail.cast %0 {to = f32} : (tensor<1x1x4x4xbf16>) -> tensor<1x1x4x4xf32>
  %2 = dovetail.mul %1, %v : (tensor<1x1x4x4xf32>, tensor<4xf32>) -> tensor<1x1x4x4xf32>
  %3 = dovetail.add %2, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %4 = dovetail.cast %3 {to = bf16} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xbf16>
  %5 = dovetail.conv %4, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x4x4xbf16>, tensor<1x1x1x1xbf16>) -> tensor<1x1x4x4xbf16>
  %6 = dovetail.cast %5 {to = f32} : (tensor<1x1x4x4xbf16>) -> tensor<1x1x4x4xf32>
  %7 = dovetail.mul %6, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %8 = dovetail.add %7, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %9 = dovetail.cast %8 {to = bf16} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xbf16>
  return %4, %5, %9 : tensor<1x1x4x4xbf16>, tensor<1x1x4x4xbf16>, tensor<1x1x4x4xbf16>
}
