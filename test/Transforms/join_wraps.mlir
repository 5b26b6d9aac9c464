// RUN: dovetail-opt %s --dovetail-join-wraps | FileCheck %s

// Nobody divides anything: it is one pad.

// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<6x8xf32>) -> tensor<9x13xf32> {
  // CHECK-NEXT: %[[PAD:.*]] = dovetail.pad %arg0 {high = array<i64: 2, 0>, low = array<i64: 1, 5>, mode = #dovetail.pad_mode<wrap>} : (tensor<6x8xf32>) -> tensor<9x13xf32>
  // CHECK-NEXT: return %[[PAD]]
  %0 = dovetail.slice %x {starts = array<i64: 5, 0>, sizes = array<i64: 1, 8>, steps = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<1x8xf32>
  %1 = dovetail.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 2, 8>, steps = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<2x8xf32>
  %2 = dovetail.concat %0, %x, %1 {axis = 0 : i64} : (tensor<1x8xf32>, tensor<6x8xf32>, tensor<2x8xf32>) -> tensor<9x8xf32>
  %3 = dovetail.slice %2 {starts = array<i64: 0, 3>, sizes = array<i64: 9, 5>, steps = array<i64: 1, 1>} : (tensor<9x8xf32>) -> tensor<9x5xf32>
  %4 = dovetail.concat %3, %2 {axis = 1 : i64} : (tensor<9x5xf32>, tensor<9x8xf32>) -> tensor<9x13xf32>
  return %4 : tensor<9x13xf32>
}

// Neither end, or not the ends: what is concatenated here is something else.

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<6xf32>) -> (tensor<8xf32>, tensor<6xf32>, tensor<12xf32>) {
  // CHECK: dovetail.concat
  // CHECK: dovetail.concat
  // CHECK: dovetail.pad %arg0 {high = array<i64: 6>, low = array<i64: 0>, mode = #dovetail.pad_mode<wrap>}
  %0 = dovetail.slice %x {starts = array<i64: 3>, sizes = array<i64: 2>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<2xf32>
  %1 = dovetail.concat %0, %x {axis = 0 : i64} : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
  %2 = dovetail.slice %x {starts = array<i64: 4>, sizes = array<i64: 2>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<2xf32>
  %3 = dovetail.slice %x {starts = array<i64: 0>, sizes = array<i64: 4>, steps = array<i64: 1>} : (tensor<6xf32>) -> tensor<4xf32>
  %4 = dovetail.concat %2, %3 {axis = 0 : i64} : (tensor<2xf32>, tensor<4xf32>) -> tensor<6xf32>
  %5 = dovetail.concat %x, %x {axis = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  return %1, %4, %5 : tensor<8xf32>, tensor<6xf32>, tensor<12xf32>
}
