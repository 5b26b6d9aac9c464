// RUN: dovetail-opt %s --dovetail-join-wraps --split-input-file | FileCheck %s

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

// -----

// Columns are divided, rows are not: columns are concatenated first, and rows padded where they are.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<6x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!end = tensor<1x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!rows = tensor<7x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 8}]>>
!last = tensor<7x2xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 2}]>>
!all = tensor<7x10xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 6, 10}]>>

// CHECK-LABEL: func.func @columns
func.func @columns(%x: !x) -> !all {
  // CHECK-NEXT: %[[LAST:.*]] = dovetail.slice %arg0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 2}]>, sizes = array<i64: 6, 2>, starts = array<i64: 0, 6>, {{.*}} -> tensor<6x2xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 2}]>>
  // CHECK-NEXT: %[[COLUMNS:.*]] = dovetail.concat %[[LAST]], %arg0 {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 6, 10}]>}
  // CHECK-NEXT: %[[ALL:.*]] = dovetail.pad %[[COLUMNS]] {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 6, 10}]>, high = array<i64: 0, 0>, low = array<i64: 1, 0>, mode = #dovetail.pad_mode<wrap>}
  // CHECK-NEXT: return %[[ALL]]
  %0 = dovetail.slice %x {starts = array<i64: 5, 0>, sizes = array<i64: 1, 8>, steps = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}]>} : (!x) -> !end
  %1 = dovetail.concat %0, %x {axis = 0 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 4, 8}]>} : (!end, !x) -> !rows
  %2 = dovetail.slice %1 {starts = array<i64: 0, 6>, sizes = array<i64: 7, 2>, steps = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 2}]>} : (!rows) -> !last
  %3 = dovetail.concat %2, %1 {axis = 1 : i64, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 6, 10}]>} : (!last, !rows) -> !all
  return %3 : !all
}
