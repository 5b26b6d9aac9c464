// RUN: dovetail-opt %s --plan-end-at-counts | FileCheck %s

// Rows beyond the count are not computed; columns have no count.

!rows = !plan.ref<tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>>
!indices = !plan.ref<tensor<8xi64, #dovetail.sharding<@mesh, [{}]>>>
!count = !plan.ref<tensor<i64, #dovetail.sharding<@mesh, []>>>

dovetail.mesh @mesh = ["rank" = 1]

// CHECK: plan.kernel @rows(%{{.*}}: tensor<8x4xf32>, %{{.*}}: tensor<8xi64>, %{{.*}}: tensor<i64>)
// CHECK-SAME: layouts [<[0, 1], [8, 4]>, <[0], [8]>, <[], []>]
// CHECK-SAME: counts = array<i64: 2, -1>, static_loops = array<i64: 1, 2>
plan.kernel @rows(%x: tensor<8x4xf32>, %indices: tensor<8xi64>) layouts [<[0, 1], [8, 4]>, <[0], [8]>] -> [<[0, 1], [8, 4]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.gather %x, %indices {axis = 0 : i64} : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  plan.yield %0 : tensor<8x4xf32>
}

// CHECK: plan.program @given
plan.program @given mesh @mesh target "cpu" model "m" {
  %0 = plan.buffer arena tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}]>> <[0, 1]>
  %x = plan.view %0 : !rows
  %1 = plan.buffer arena tensor<8xi64, #dovetail.sharding<@mesh, [{}]>> <[0]>
  %indices = plan.view %1 : !indices
  %2 = plan.buffer arena tensor<i64, #dovetail.sharding<@mesh, []>> <[]>
  %n = plan.view %2 : !count
  %3 = plan.buffer arena tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}]>> <[0, 1]>
  %y = plan.view %3 : !rows
  plan.input "x" %x : !rows
  plan.input "indices" %indices {dovetail.counts = array<i64: 0>} : !indices
  plan.input "N" %n {dovetail.count} : !count
  plan.output "y" %y {dovetail.counts = array<i64: 0, -1>} : !rows
  // CHECK: plan.input "N" %[[N:.*]] {dovetail.count}
  // CHECK: plan.launch @rows(%{{.*}}, %{{.*}}, %[[N]]) -> (%{{.*}}) loops [8, 4, 8]
  plan.launch @rows(%x, %indices) -> (%y) loops [8, 4, 8] : (!rows, !indices) -> (!rows)
}

