// RUN: dovetail-opt %s --dovetail-expand-norms --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<40x8xf32>)
// CHECK-NEXT: %[[MAX:.*]], %[[SUM:.*]] = dovetail.sum_exp %[[X]] {axes = array<i64: 1>}
// CHECK-NEXT: %[[SHIFTED:.*]] = dovetail.sub %[[X]], %[[MAX]]
// CHECK-NEXT: %[[EXP:.*]] = dovetail.exp %[[SHIFTED]]
// CHECK-NEXT: %[[INVERSE:.*]] = dovetail.reciprocal %[[SUM]]
// CHECK-NEXT: %[[Y:.*]] = dovetail.mul %[[EXP]], %[[INVERSE]]
// CHECK-NEXT: return %[[Y]]
func.func @softmax(%a: tensor<40x8xf32>) -> tensor<40x8xf32> {
  %0 = dovetail.softmax %a {axis = 1} : (tensor<40x8xf32>) -> tensor<40x8xf32>
  return %0 : tensor<40x8xf32>
}

// -----

// Narrow floats are normalised as f32, and rounded once.

// CHECK-LABEL: func.func @log_softmax
// CHECK: dovetail.cast {{.*}} -> tensor<4x8xf32>
// CHECK: dovetail.log
// CHECK: dovetail.cast {{.*}} -> tensor<4x8xf16>
// CHECK-NEXT: return
func.func @log_softmax(%a: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %0 = dovetail.softmax %a {axis = 0, log} : (tensor<4x8xf16>) -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}

// -----

// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<4x6x8xf32>
// CHECK-NEXT: %{{.*}}, %[[M:.*]], %[[D:.*]] = dovetail.moments %[[X]] {axes = array<i64: 1, 2>}
// CHECK: dovetail.div %[[D]]
// CHECK: dovetail.rsqrt
// CHECK: dovetail.sub %[[X]], %[[M]]
func.func @layer_norm(%x: tensor<4x6x8xf32>, %b: tensor<8xf32>) -> tensor<4x6x8xf32> {
  %0 = dovetail.layer_norm %x, %b {axis = 1, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x6x8xf32>, tensor<8xf32>) -> tensor<4x6x8xf32>
  return %0 : tensor<4x6x8xf32>
}

// -----

// Moments of a group are those of its channels together.

// CHECK-LABEL: func.func @group_norm
// CHECK: dovetail.moments {{.*}} {axes = array<i64: 2, 3>} : (tensor<2x6x5x7xf32>) -> (tensor<2x6x1x1xf32>, tensor<2x6x1x1xf32>, tensor<2x6x1x1xf32>)
// CHECK: dovetail.reduce {{.*}}reduce_kind<sum>{{.*}} : (tensor<2x2x3xf32>) -> tensor<2x2x1xf32>
// CHECK-NOT: dovetail.group_norm
func.func @group_norm(%x: tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32> {
  %0 = dovetail.group_norm %x {groups = 2, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  return %0 : tensor<2x6x5x7xf32>
}
