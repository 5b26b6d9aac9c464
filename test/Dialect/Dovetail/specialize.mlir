// RUN: dovetail-opt %s --dovetail-specialize | FileCheck %s
// RUN: dovetail-opt %s --dovetail-specialize --dovetail-generalize --dovetail-specialize | FileCheck %s

// Attributes of a convolution follow from where it reads.
// CHECK-LABEL: func.func @conv
// CHECK-NEXT: dovetail.conv %arg0, %arg1 {dilations = array<i64: 1, 2>, pads_high = array<i64: 0, 1>, pads_low = array<i64: 1, 2>, strides = array<i64: 2, 1>}
func.func @conv(%x: tensor<1x4x64x40xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x32x39xf32> {
  %0 = dovetail.generic(%x, %w) : (tensor<1x4x64x40xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x32x39xf32>
      loops [n = 1, o = 8, y = 32, x = 39, c = 4 reduction, ky = 3 tap, kx = 3 tap]
      reads [0 : (n, c, 2*y + ky - 1, x + 2*kx - 2), 1 : (o, c, ky, kx)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %0 : tensor<1x8x32x39xf32>
}

// The gradient of a convolution with a stride.
// CHECK-LABEL: func.func @gradient
// CHECK-NEXT: dovetail.conv_transpose %arg0, %arg1 {{.*}}output_padding = array<i64: 1>, pads_high = array<i64: 0>, pads_low = array<i64: 1>, strides = array<i64: 2>
func.func @gradient(%y: tensor<1x8x5xf32>, %w: tensor<8x4x3xf32>) -> tensor<1x4x11xf32> {
  %0 = dovetail.generic(%y, %w) : (tensor<1x8x5xf32>, tensor<8x4x3xf32>) -> tensor<1x4x11xf32>
      loops [n = 1, c = 4, i = 11, o = 8 reduction, k = 3 tap]
      reads [0 : (n, o, exact((i - k + 1) / 2)), 1 : (o, c, k)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %0 : tensor<1x4x11xf32>
}

// CHECK-LABEL: func.func @moves
// CHECK-NEXT: dovetail.transpose %arg0 {permutation = array<i64: 1, 0>}
// CHECK-NEXT: dovetail.slice %{{.*}} {sizes = array<i64: 2, 3>, starts = array<i64: 1, 4>, steps = array<i64: 2, -1>}
// CHECK-NEXT: return
func.func @moves(%x: tensor<5x6xi8>) -> tensor<2x3xi8> {
  %0 = dovetail.generic(%x) : (tensor<5x6xi8>) -> tensor<6x5xi8> loops [d0 = 6, d1 = 5] reads [0 : (d1, d0)] body {
    %a = dovetail.read 0 : i8
    dovetail.return %a : i8
  }
  %1 = dovetail.generic(%0) : (tensor<6x5xi8>) -> tensor<2x3xi8>
      loops [d0 = 2, d1 = 3] reads [0 : (2*d0 + 1, -d1 + 4)] body {
    %a = dovetail.read 0 : i8
    dovetail.return %a : i8
  }
  return %1 : tensor<2x3xi8>
}

// No operation has two sums, and none adds one.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: dovetail.generic
func.func @others(%x: tensor<5x7x8xf32>, %w: tensor<6x7x8xf32>) -> tensor<5x6xf32> {
  %0 = dovetail.generic(%x, %w) : (tensor<5x7x8xf32>, tensor<6x7x8xf32>) -> tensor<5x6xf32>
      loops [row = 5, column = 6, s = 7 reduction, t = 8 reduction]
      reads [0 : (row, s, t), 1 : (column, s, t)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  %1 = dovetail.generic(%0) : (tensor<5x6xf32>) -> tensor<5x6xf32> loops [d0 = 5, d1 = 6] reads [0 : (d0, d1)] body {
    %one = arith.constant 1.0 : f32
    %a = dovetail.read 0 : f32
    %b = arith.addf %a, %one : f32
    dovetail.return %b : f32
  }
  return %1 : tensor<5x6xf32>
}
