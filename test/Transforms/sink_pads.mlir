// RUN: dovetail-opt %s --dovetail-sink-pads --split-input-file | FileCheck %s

// The dimension that is not transformed is extended behind, also where pieces are joined before.
// CHECK-LABEL: func @transform
// CHECK-DAG: %[[P:.*]] = dovetail.pad %arg0 {high = array<i64: 4, 0, 0>, low = array<i64: 0, 0, 0>
// CHECK: %[[C:.*]] = dovetail.concat %[[P]], %arg1 {axis = 0 : i64} : (tensor<6x3x2xf32>, tensor<2x3x2xf32>) -> tensor<8x3x2xf32>
// CHECK: %[[F:.*]] = dovetail.dft %[[C]], {{.*}} -> tensor<8x3x2xf32>
// CHECK: %[[R:.*]] = dovetail.pad %[[F]] {high = array<i64: 0, 5, 0>, low = array<i64: 0, 1, 0>
// CHECK: return %[[R]]
func.func @transform(%arg0: tensor<2x3x2xf32>, %arg1: tensor<2x3x2xf32>) -> tensor<8x9x2xf32> {
  %t = dovetail.constant dense<0.0> : tensor<8xf32>
  %0 = dovetail.pad %arg0 {low = array<i64: 0, 1, 0>, high = array<i64: 4, 5, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x3x2xf32>) -> tensor<6x9x2xf32>
  %1 = dovetail.pad %arg1 {low = array<i64: 0, 1, 0>, high = array<i64: 0, 5, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x3x2xf32>) -> tensor<2x9x2xf32>
  %2 = dovetail.concat %0, %1 {axis = 0 : i64} : (tensor<6x9x2xf32>, tensor<2x9x2xf32>) -> tensor<8x9x2xf32>
  %3 = dovetail.dft %2, %t {axis = 0 : i64, length = 8 : i64} : (tensor<8x9x2xf32>, tensor<8xf32>) -> tensor<8x9x2xf32>
  return %3 : tensor<8x9x2xf32>
}

// -----

// Ones do not stay ones, a second user needs the operand padded, and what runs with the program may be infinite.
// CHECK-LABEL: func @stays
// CHECK: %[[A:.*]] = dovetail.pad %arg0
// CHECK: dovetail.matmul %[[A]]
// CHECK: %[[B:.*]] = dovetail.pad %arg0
// CHECK: dovetail.matmul %[[B]]
// CHECK: %[[C:.*]] = dovetail.pad %arg0
// CHECK: dovetail.matmul %[[C]]
func.func @stays(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %w = dovetail.constant dense<2.0> : tensor<4x4xf32>
  %0 = dovetail.pad %arg0, %one {low = array<i64: 0, 0>, high = array<i64: 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %1 = dovetail.matmul %0, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %2 = dovetail.pad %arg0 {low = array<i64: 1, 0>, high = array<i64: 0, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x4xf32>) -> tensor<3x4xf32>
  %3 = dovetail.matmul %2, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %4 = dovetail.pad %arg0 {low = array<i64: 0, 0>, high = array<i64: 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x4xf32>) -> tensor<3x4xf32>
  %5 = dovetail.matmul %4, %arg1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %1, %2, %3, %5 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func @rows
// CHECK: %[[M:.*]] = dovetail.matmul %arg0, {{.*}} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
// CHECK: dovetail.pad %[[M]] {high = array<i64: 1, 0>, low = array<i64: 2, 0>
func.func @rows(%arg0: tensor<2x4xf32>) -> tensor<5x5xf32> {
  %w = dovetail.constant dense<2.0> : tensor<4x5xf32>
  %0 = dovetail.pad %arg0 {low = array<i64: 2, 0>, high = array<i64: 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<2x4xf32>) -> tensor<5x4xf32>
  %1 = dovetail.matmul %0, %w : (tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
  return %1 : tensor<5x5xf32>
}

// -----

// One pad may be read twice.
// CHECK-LABEL: func @twice
// CHECK: %[[C:.*]] = dovetail.concat %arg0, %arg0 {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %[[P:.*]] = dovetail.pad %[[C]] {high = array<i64: 0, 2>, low = array<i64: 0, 1>
// CHECK-NEXT: return %[[P]]
func.func @twice(%arg0: tensor<2x4xf32>) -> tensor<4x7xf32> {
  %0 = dovetail.pad %arg0 {low = array<i64: 0, 1>, high = array<i64: 0, 2>, mode = #dovetail.pad_mode<constant>} : (tensor<2x4xf32>) -> tensor<2x7xf32>
  %1 = dovetail.concat %0, %0 {axis = 0 : i64} : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<4x7xf32>
  return %1 : tensor<4x7xf32>
}
