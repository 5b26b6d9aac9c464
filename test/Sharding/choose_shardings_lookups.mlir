// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Of a table that is split along what is indexed, ranks look up what they own, and send what was found to who uses it:
// for each of four ranks what the three others have of its part, 3 * 102400 bytes in all. To exchange columns of the
// table, of which each rank has a quarter that it needs, takes 3/4 * 512000 bytes.

dovetail.mesh @mesh = ["y" = 4]
!table = tensor<2000x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 500, 500, 900, 2000}, {}]>>

// CHECK-LABEL: func.func @at_owners
// CHECK-SAME: dovetail.expected = {bytes = 307200 : i64
// CHECK: %[[R:.*]] = dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 500, 500, 900, 2000}]>
// CHECK-SAME: -> tensor<400x64xf32, #dovetail.sharding<@mesh, [{}, {}], partial = owner ["y"]>>
// CHECK-NEXT: dovetail.exp %[[R]] {dovetail.loops = #dovetail.loop_shardings<@mesh, [{{.*"y" : .*}}]>}
func.func @at_owners(%table: !table, %indices: tensor<400xi64>) -> tensor<400x64xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (!table, tensor<400xi64>) -> tensor<400x64xf32>
  %1 = dovetail.exp %0 : (tensor<400x64xf32>) -> tensor<400x64xf32>
  return %1 : tensor<400x64xf32>
}

// -----

// Of twice as many, 3 * 204800 bytes would move: now columns of the table are exchanged. Rows of it stay whole.

dovetail.mesh @mesh = ["y" = 4]
!table = tensor<2000x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 500, 500, 900, 2000}, {}]>>

// CHECK-LABEL: func.func @columns
// CHECK-SAME: dovetail.expected = {bytes = 384000 : i64
// CHECK: dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 16, 32, 48, 64}, {}]>
// CHECK-NEXT: dovetail.exp
func.func @columns(%table: !table, %indices: tensor<800xi64>) -> tensor<800x64xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (!table, tensor<800xi64>) -> tensor<800x64xf32>
  %1 = dovetail.exp %0 : (tensor<800x64xf32>) -> tensor<800x64xf32>
  return %1 : tensor<800x64xf32>
}

// -----

// A small table comes to all ranks, 30 * 64 * 4 bytes, who divide the indices: to have all of these would be 4000 * 4 more.

dovetail.mesh @mesh = ["y" = 2]
!table = tensor<30x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 30}, {}]>>

// CHECK-LABEL: func.func @small_table
// CHECK-SAME: %arg1: tensor<4000xi32, #dovetail.sharding<@mesh, [{"y" : 0, 2000, 4000}]>>
// CHECK-SAME: dovetail.expected = {bytes = 7680 : i64
// CHECK: dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2000, 4000}, {}, {}]>
// CHECK-NEXT: dovetail.exp
func.func @small_table(%table: !table, %indices: tensor<4000xi32>) -> tensor<4000x64xf32> {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (!table, tensor<4000xi32>) -> tensor<4000x64xf32>
  %1 = dovetail.exp %0 : (tensor<4000x64xf32>) -> tensor<4000x64xf32>
  return %1 : tensor<4000x64xf32>
}

// -----

// What is asked of the result does not bring a large table to all ranks: to send what was found there is 288 bytes, 2
// and 4 columns of 12 rows; to bring columns of the table 296, 2 of 23 rows and 4 of 7.

dovetail.mesh @mesh = ["y" = 2]
!table = tensor<30x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 30}, {}]>>

// CHECK-LABEL: func.func @requested
// CHECK-SAME: dovetail.expected = {bytes = 288 : i64
// CHECK: %[[R:.*]] = dovetail.gather
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 7, 30}]>
// CHECK-NEXT: %[[S:.*]] = dovetail.reshard %[[R]] : {{.*}}partial = owner ["y"]>> -> tensor<12x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 6}]>>
// CHECK-NEXT: return %[[S]]
func.func @requested(%table: !table, %indices: tensor<12xi32>) -> (tensor<12x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 6}>]}) {
  %0 = dovetail.gather %table, %indices {axis = 0 : i64} : (!table, tensor<12xi32>) -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}
