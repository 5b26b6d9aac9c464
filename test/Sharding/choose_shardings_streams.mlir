// RUN: dovetail-opt %s --dovetail-choose-shardings="objective=time cluster=h100 engine=streams" --split-input-file | FileCheck %s

// Two ranks have all columns, 16 each, and all four need four of either half. Each half comes from who has it, 12
// columns of 4096 floats, to three others: from ranks with their parts of the one half, that of the other cannot be had.

dovetail.mesh @mesh = ["t" = 4]

// CHECK-LABEL: func.func @halves
// CHECK-SAME: dovetail.expected = {bytes = 393216 : i64
// CHECK-NOT: dovetail.reshard
!columns = tensor<4096x32xf32, #dovetail.sharding<@mesh, [{}, {"t" : 0, 0, 0, 16, 32}]>>
func.func @halves(%x: !columns) -> (tensor<4096x16xf32>, tensor<4096x16xf32>) {
  %0 = dovetail.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 4096, 16>, steps = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"t" : 0, 4, 8, 12, 16}]>} : (!columns) -> tensor<4096x16xf32>
  %1 = dovetail.slice %x {starts = array<i64: 0, 16>, sizes = array<i64: 4096, 16>, steps = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"t" : 0, 4, 8, 12, 16}]>} : (!columns) -> tensor<4096x16xf32>
  return %0, %1 : tensor<4096x16xf32>, tensor<4096x16xf32>
}
