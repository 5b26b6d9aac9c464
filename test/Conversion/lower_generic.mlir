// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph{libraries=onednn})' | FileCheck %s

// Libraries do sums of products whatever the operation is called: a convolution with its epilogue.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @convolution
// CHECK: plan.convolution {{.*}} loops [1, 8, 32, 20, 4, 3, 3] reads [(d0, d4, 2*d2 + d5 - 1, 2*d3 + d6 - 1), (d1, d4, d5, d6)]
// CHECK-SAME: post_ops = [#plan.post_op<relu>]
// CHECK-NOT: plan.launch
func.func @convolution(%x: tensor<1x4x64x40xf32>) -> tensor<1x8x32x20xf32> {
  %w = dovetail.constant dense<2.0> : tensor<8x4x3x3xf32>
  %0 = dovetail.generic(%x, %w) : (tensor<1x4x64x40xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x32x20xf32>
      loops [n = 1, o = 8, y = 32, x = 20, c = 4 reduction, ky = 3 tap, kx = 3 tap]
      reads [0 : (n, c, 2*y + ky - 1, 2*x + kx - 1), 1 : (o, c, ky, kx)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  %1 = dovetail.relu %0 : (tensor<1x8x32x20xf32>) -> tensor<1x8x32x20xf32>
  return %1 : tensor<1x8x32x20xf32>
}

// -----

// A product whose second factor is transposed.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @product
// CHECK: plan.matmul {{.*}} loops [5, 6, 7] reads [(d0, d2), (d1, d2)]
// CHECK-NOT: plan.launch
func.func @product(%x: tensor<5x7xf32>, %w: tensor<6x7xf32>) -> tensor<5x6xf32> {
  %0 = dovetail.generic(%x, %w) : (tensor<5x7xf32>, tensor<6x7xf32>) -> tensor<5x6xf32>
      loops [row = 5, column = 6, term = 7 reduction]
      reads [0 : (row, term), 1 : (column, term)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %0 : tensor<5x6xf32>
}

// -----

// No library has a product with two sums.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @two_sums
// CHECK: plan.launch
func.func @two_sums(%x: tensor<5x7x8xf32>, %w: tensor<6x7x8xf32>) -> tensor<5x6xf32> {
  %0 = dovetail.generic(%x, %w) : (tensor<5x7x8xf32>, tensor<6x7x8xf32>) -> tensor<5x6xf32>
      loops [row = 5, column = 6, s = 7 reduction, t = 8 reduction]
      reads [0 : (row, s, t), 1 : (column, s, t)]
      combine sum body {
    %a = dovetail.read 0 : f32
    %b = dovetail.read 1 : f32
    %p = arith.mulf %a, %b : f32
    dovetail.return %p : f32
  }
  return %0 : tensor<5x6xf32>
}
