// RUN: dovetail-opt %s --dovetail-hoist-slices --split-input-file | FileCheck %s

// Of two transforms, the last one is done on the lines that both slices take.
// CHECK-LABEL: func @transforms
// CHECK: %[[F:.*]] = dovetail.dft %arg0
// CHECK: %[[S:.*]] = dovetail.slice %[[F]] {sizes = array<i64: 8, 3, 2>, starts = array<i64: 0, 1, 0>, steps = array<i64: 1, 1, 1>}
// CHECK: %[[G:.*]] = dovetail.dft %[[S]], {{.*}} : (tensor<8x3x2xf32>, tensor<8xf32>) -> tensor<8x3x2xf32>
// CHECK: dovetail.slice %[[G]] {sizes = array<i64: 2, 3, 2>, starts = array<i64: 0, 0, 0>
// CHECK: dovetail.slice %[[G]] {sizes = array<i64: 2, 1, 2>, starts = array<i64: 6, 2, 0>
func.func @transforms(%arg0: tensor<8x9x2xf32>) -> (tensor<2x3x2xf32>, tensor<2x1x2xf32>) {
  %t8 = dovetail.constant dense<0.0> : tensor<8xf32>
  %t9 = dovetail.constant dense<0.0> : tensor<12xf32>
  %0 = dovetail.dft %arg0, %t9 {axis = 1 : i64, length = 9 : i64} : (tensor<8x9x2xf32>, tensor<12xf32>) -> tensor<8x9x2xf32>
  %1 = dovetail.dft %0, %t8 {axis = 0 : i64, length = 8 : i64} : (tensor<8x9x2xf32>, tensor<8xf32>) -> tensor<8x9x2xf32>
  %2 = dovetail.slice %1 {starts = array<i64: 0, 1, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<8x9x2xf32>) -> tensor<2x3x2xf32>
  %3 = dovetail.slice %1 {starts = array<i64: 6, 3, 0>, sizes = array<i64: 2, 1, 2>, steps = array<i64: 1, 1, 1>} : (tensor<8x9x2xf32>) -> tensor<2x1x2xf32>
  return %2, %3 : tensor<2x3x2xf32>, tensor<2x1x2xf32>
}

// -----

// Through what is cheap, if something is saved above it: rows of a product, but no terms.
// CHECK-LABEL: func @product
// CHECK-DAG: %[[A:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1, 6>, starts = array<i64: 4, 0>
// CHECK: dovetail.matmul %[[A]], %arg1 : (tensor<1x6xf32>, tensor<6x7xf32>) -> tensor<1x7xf32>
// CHECK: dovetail.add {{.*}}, %arg2 : (tensor<1x7xf32>, tensor<7xf32>) -> tensor<1x7xf32>
func.func @product(%arg0: tensor<5x6xf32>, %arg1: tensor<6x7xf32>, %arg2: tensor<7xf32>) -> tensor<1x7xf32> {
  %0 = dovetail.matmul %arg0, %arg1 : (tensor<5x6xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  %1 = dovetail.add %0, %arg2 : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  %2 = dovetail.slice %1 {starts = array<i64: 4, 0>, sizes = array<i64: 1, 7>, steps = array<i64: 1, 1>} : (tensor<5x7xf32>) -> tensor<1x7xf32>
  return %2 : tensor<1x7xf32>
}

// -----

// Through all that lies between two products of a quantised model, too.
// CHECK-LABEL: func @requantised
// CHECK-DAG: %[[A:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1, 6>, starts = array<i64: 4, 0>
// CHECK: dovetail.matmul %[[A]], %arg1 : (tensor<1x6xf32>, tensor<6x7xf32>) -> tensor<1x7xf32>
// CHECK-NOT: tensor<5x7x
// CHECK: return
func.func @requantised(%arg0: tensor<5x6xf32>, %arg1: tensor<6x7xf32>, %arg2: tensor<7xf32>) -> tensor<1x7xf32> {
  %steps = dovetail.constant dense<50.0> : tensor<f32>
  %zero = dovetail.constant dense<100.0> : tensor<f32>
  %most = dovetail.constant dense<255.0> : tensor<f32>
  %integer = dovetail.constant dense<100> : tensor<i32>
  %scale = dovetail.constant dense<0.02> : tensor<f32>
  %0 = dovetail.matmul %arg0, %arg1 : (tensor<5x6xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  %1 = dovetail.add %0, %arg2 : (tensor<5x7xf32>, tensor<7xf32>) -> tensor<5x7xf32>
  %2 = dovetail.relu %1 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %3 = dovetail.mul %2, %steps : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %4 = dovetail.round %3 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %5 = dovetail.add %4, %zero : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %6 = dovetail.relu %5 : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %7 = dovetail.min %6, %most : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %8 = dovetail.cast %7 {to = ui8} : (tensor<5x7xf32>) -> tensor<5x7xui8>
  %9 = dovetail.cast %8 {to = i32} : (tensor<5x7xui8>) -> tensor<5x7xi32>
  %10 = dovetail.sub %9, %integer : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
  %11 = dovetail.cast %10 {to = f32} : (tensor<5x7xi32>) -> tensor<5x7xf32>
  %12 = dovetail.mul %11, %scale : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %13 = dovetail.slice %12 {starts = array<i64: 4, 0>, sizes = array<i64: 1, 7>, steps = array<i64: 1, 1>} : (tensor<5x7xf32>) -> tensor<1x7xf32>
  return %13 : tensor<1x7xf32>
}

// -----

// Nothing is saved above a sum of arguments, and of what is read whole by another user.
// CHECK-LABEL: func @stays
// CHECK-NEXT: dovetail.add
// CHECK-NEXT: dovetail.matmul
func.func @stays(%arg0: tensor<5x6xf32>, %arg1: tensor<6x5xf32>) -> (tensor<2x6xf32>, tensor<1x5xf32>, tensor<5x5xf32>) {
  %0 = dovetail.add %arg0, %arg0 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %1 = dovetail.matmul %arg0, %arg1 : (tensor<5x6xf32>, tensor<6x5xf32>) -> tensor<5x5xf32>
  %2 = dovetail.slice %0 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 6>, steps = array<i64: 1, 1>} : (tensor<5x6xf32>) -> tensor<2x6xf32>
  %3 = dovetail.slice %1 {starts = array<i64: 0, 0>, sizes = array<i64: 1, 5>, steps = array<i64: 1, 1>} : (tensor<5x5xf32>) -> tensor<1x5xf32>
  return %2, %3, %1 : tensor<2x6xf32>, tensor<1x5xf32>, tensor<5x5xf32>
}

// -----

// A line is whole, and so is what a window reads; channels of weights are not.
// CHECK-LABEL: func @windows
// CHECK: %[[W:.*]] = dovetail.slice %arg1 {sizes = array<i64: 2, 3, 3>, starts = array<i64: 4, 0, 0>
// CHECK: dovetail.conv %arg0, %[[W]]
// CHECK-SAME: -> tensor<1x2x8xf32>
// CHECK: dovetail.slice {{.*}} {sizes = array<i64: 1, 2, 4>, starts = array<i64: 0, 0, 1>
func.func @windows(%arg0: tensor<1x3x10xf32>, %arg1: tensor<6x3x3xf32>) -> tensor<1x2x4xf32> {
  %0 = dovetail.conv %arg0, %arg1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x3x10xf32>, tensor<6x3x3xf32>) -> tensor<1x6x8xf32>
  %1 = dovetail.slice %0 {starts = array<i64: 0, 4, 1>, sizes = array<i64: 1, 2, 4>, steps = array<i64: 1, 1, 1>} : (tensor<1x6x8xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}
