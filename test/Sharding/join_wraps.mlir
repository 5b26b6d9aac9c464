// RUN: dovetail-opt %s --dovetail-join-wraps | FileCheck %s

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
