// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --mlir-print-op-generic | dovetail-opt | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func @move
// CHECK-SAME: (%[[X:.*]]: tensor<2x6x4xf32>
func.func @move(%x: tensor<2x6x4xf32>, %value: tensor<f32>, %indices: tensor<3xi64>) {
  // CHECK: dovetail.reshape %[[X]] : (tensor<2x6x4xf32>) -> tensor<2x3x8xf32>
  %0 = dovetail.reshape %x : (tensor<2x6x4xf32>) -> tensor<2x3x8xf32>
  // CHECK: dovetail.transpose %[[X]] {permutation = array<i64: 2, 0, 1>} : (tensor<2x6x4xf32>) -> tensor<4x2x6xf32>
  %1 = dovetail.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x6x4xf32>) -> tensor<4x2x6xf32>
  // CHECK: dovetail.broadcast %{{.*}} : (tensor<f32>) -> tensor<7x3xf32>
  %2 = dovetail.broadcast %value : (tensor<f32>) -> tensor<7x3xf32>
  // CHECK: dovetail.concat %[[X]], %[[X]] {axis = 1 : i64} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x12x4xf32>
  %3 = dovetail.concat %x, %x {axis = 1 : i64} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x12x4xf32>
  // CHECK: dovetail.slice %[[X]] {sizes = array<i64: 1, 3, 4>, starts = array<i64: 1, 5, 0>, steps = array<i64: 1, -2, 1>}
  %4 = dovetail.slice %x {starts = array<i64: 1, 5, 0>, sizes = array<i64: 1, 3, 4>, steps = array<i64: 1, -2, 1>} : (tensor<2x6x4xf32>) -> tensor<1x3x4xf32>
  // CHECK: dovetail.pad %[[X]], %{{.*}} {high = array<i64: 0, 0, -1>, low = array<i64: 0, 2, 0>, mode = #dovetail.pad_mode<constant>}
  %5 = dovetail.pad %x, %value {low = array<i64: 0, 2, 0>, high = array<i64: 0, 0, -1>, mode = #dovetail.pad_mode<constant>} : (tensor<2x6x4xf32>, tensor<f32>) -> tensor<2x8x3xf32>
  // CHECK: dovetail.pad %[[X]] {high = array<i64: 0, 0, 0>, low = array<i64: 1, 0, 0>, mode = #dovetail.pad_mode<wrap>}
  %6 = dovetail.pad %x {low = array<i64: 1, 0, 0>, high = array<i64: 0, 0, 0>, mode = #dovetail.pad_mode<wrap>} : (tensor<2x6x4xf32>) -> tensor<3x6x4xf32>
  // CHECK: dovetail.gather %[[X]], %{{.*}} {axis = 2 : i64} : (tensor<2x6x4xf32>, tensor<3xi64>) -> tensor<2x6x3xf32>
  %7 = dovetail.gather %x, %indices {axis = 2 : i64} : (tensor<2x6x4xf32>, tensor<3xi64>) -> tensor<2x6x3xf32>
  // CHECK: dovetail.range 5.000000e-01 : f32 step -1.000000e+00 : f32 : tensor<9xf32>
  %8 = dovetail.range 0.5 : f32 step -1.0 : f32 : tensor<9xf32>
  return
}

// Types that are cut keep their sharding, which inference does not see.
// CHECK-LABEL: func @cut
func.func @cut(%x: tensor<2x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 6}]>>) {
  // CHECK: dovetail.transpose
  // CHECK-SAME: -> tensor<6x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 6}, {}]>>
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 6}]>>) -> tensor<6x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 6}, {}]>>
  return
}
