// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph{libraries=cudnn,cublaslt target=cuda device=true})' | FileCheck %s --check-prefixes=CHECK,F32
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph{libraries=cudnn,cublaslt features=rounded-factors target=cuda device=true})' | FileCheck %s --check-prefixes=CHECK,TF32

// Kernels do windows in f32 that tensor cores must not round, and products with few columns; libraries the rest.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @windows
// F32: plan.launch
// F32-NOT: plan.convolution
// TF32: plan.convolution
func.func @windows(%x: tensor<1x16x8x8xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @half_windows
// CHECK: plan.convolution
func.func @half_windows(%x: tensor<1x16x8x8xf16>, %w: tensor<32x16x3x3xf16>) -> tensor<1x32x8x8xf16> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x16x8x8xf16>, tensor<32x16x3x3xf16>) -> tensor<1x32x8x8xf16>
  return %0 : tensor<1x32x8x8xf16>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// A convolution without windows is a product of cuBLASLt, whose runtime has both.
// CHECK-LABEL: plan.program @product
// CHECK: plan.convolution
func.func @product(%x: tensor<1x256x8x8xf32>, %w: tensor<32x256x1x1xf32>) -> tensor<1x32x8x8xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x256x8x8xf32>, tensor<32x256x1x1xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @few_columns
// CHECK: plan.launch
// CHECK-NOT: plan.convolution
func.func @few_columns(%x: tensor<1x16x8x8xf16>, %w: tensor<2x16x1x1xf16>) -> tensor<1x2x8x8xf16> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x16x8x8xf16>, tensor<2x16x1x1xf16>) -> tensor<1x2x8x8xf16>
  return %0 : tensor<1x2x8x8xf16>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @groups
// CHECK: plan.convolution
func.func @groups(%x: tensor<1x32x8x8xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32> {
  %0 = dovetail.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// Windows of no tiles, and transposed ones side by side.
// CHECK-LABEL: plan.program @few_filters
// CHECK: plan.convolution
// CHECK: plan.convolution
func.func @few_filters(%x: tensor<1x16x8x8xf32>, %v: tensor<8x16x3x3xf32>, %w: tensor<8x8x2x2xf32>) -> tensor<1x8x16x16xf32> {
  %0 = dovetail.conv %x, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<8x16x3x3xf32>) -> tensor<1x8x8x8xf32>
  %1 = dovetail.conv_transpose %0, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>} : (tensor<1x8x8x8xf32>, tensor<8x8x2x2xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// Each channel for itself.
// CHECK-LABEL: plan.program @depthwise
// CHECK: plan.launch
// CHECK-NOT: plan.convolution
func.func @depthwise(%x: tensor<1x32x8x8xf16>, %w: tensor<32x1x3x3xf16>) -> tensor<1x32x8x8xf16> {
  %0 = dovetail.conv %x, %w {groups = 32 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x32x8x8xf16>, tensor<32x1x3x3xf16>) -> tensor<1x32x8x8xf16>
  return %0 : tensor<1x32x8x8xf16>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// Few results of long sums, which kernels divide among blocks; in TF32 a library has enough speed for them.
// CHECK-LABEL: plan.program @long_sums
// F32: plan.launch
// F32-NOT: plan.convolution
// TF32: plan.convolution
func.func @long_sums(%x: tensor<1x1024x14x14xf32>, %w: tensor<256x1024x1x1xf32>) -> tensor<1x256x14x14xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1024x14x14xf32>, tensor<256x1024x1x1xf32>) -> tensor<1x256x14x14xf32>
  return %0 : tensor<1x256x14x14xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 1]

// Of short sums, too, and no call follows for what is behind them.
// CHECK-LABEL: plan.program @short_sums
// F32: plan.launch
// F32-NOT: plan.convolution
// TF32: plan.convolution
func.func @short_sums(%x: tensor<1x64x56x56xf32>, %w: tensor<256x64x1x1xf32>) -> tensor<1x256x56x56xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x64x56x56xf32>, tensor<256x64x1x1xf32>) -> tensor<1x256x56x56xf32>
  return %0 : tensor<1x256x56x56xf32>
}
