// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-lower-graph)' | FileCheck %s

// What is scattered into is written over where nobody else reads it. What the user gave is not.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<9x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 9}, {}]>>

// CHECK: plan.kernel @kernel1({{.*}} attributes {in_place = 0 : i64,
// CHECK-NOT: in_place
// CHECK-LABEL: plan.program @scatter
// CHECK: %[[INPUT:.*]] = plan.view
// CHECK: %[[BUFFER:.*]] = plan.buffer arena tensor<9x6xf32, {{.*}}{"y" : 0, 4, 9}
// CHECK-NEXT: %[[RESULT:.*]] = plan.view %[[BUFFER]]
// CHECK: %[[DATA:.*]] = plan.view %[[BUFFER]]
// CHECK: plan.launch @kernel0(%[[INPUT]]) -> (%[[DATA]])
// CHECK: plan.launch @kernel1(%[[DATA]], {{.*}}) -> (%[[RESULT]])
// CHECK: plan.launch @kernel2(%[[INPUT]], {{.*}}) -> (%
func.func @scatter(%x: !rows, %i: tensor<5x1xi64>, %u: tensor<5x6xf32>) -> (!rows, !rows) {
  %n = dovetail.neg %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 9}, {}]>} : (!rows) -> !rows
  %0 = dovetail.scatter_nd %n, %i, %u {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 9}, {}]>} : (!rows, tensor<5x1xi64>, tensor<5x6xf32>) -> !rows
  %1 = dovetail.scatter_nd %x, %i, %u {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 9}, {}]>} : (!rows, tensor<5x1xi64>, tensor<5x6xf32>) -> !rows
  return %0, %1 : !rows, !rows
}

// -----

// The same where the kernel computes the place: a cache to which a step writes a row is not copied.

dovetail.mesh @mesh = ["y" = 2]

// CHECK: plan.kernel @kernel1(%[[ON:.*]]: tensor<i1>, %[[AT:.*]]: tensor<1x1xi64>, %[[DATA:.*]]: tensor<9x6xf32>, {{.*}} attributes {in_place = 2 : i64,
// CHECK: %[[PLACE:.*]] = dovetail.select %[[ON]], %[[AT]]
// CHECK: dovetail.scatter_nd %[[DATA]], %[[PLACE]]
func.func @computed(%x: tensor<9x6xf32>, %on: tensor<i1>, %i: tensor<1x1xi64>, %u: tensor<1x6xf32>) -> tensor<9x6xf32> {
  %zero = dovetail.constant dense<0> : tensor<i64>
  %n = dovetail.neg %x : (tensor<9x6xf32>) -> tensor<9x6xf32>
  %at = dovetail.select %on, %i, %zero : (tensor<i1>, tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
  %0 = dovetail.scatter_nd %n, %at, %u : (tensor<9x6xf32>, tensor<1x1xi64>, tensor<1x6xf32>) -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

// One kernel writes all results of an operation.

dovetail.mesh @mesh = ["y" = 2]
!values = tensor<4x2xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
!indices = tensor<4x2xi64, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>

// CHECK: plan.kernel @kernel0(%{{.*}}: tensor<4x9xf32>) layouts [<[0, 1], [?, 9]>] -> [<[0, 1], [?, 2]>, <[0, 1], [?, 2]>]
// CHECK: plan.yield %[[VALUES:.*]], %[[INDICES:.*]] : tensor<4x2xf32>, tensor<4x2xi64>
// CHECK: plan.launch @kernel0(%{{.*}}) -> (%{{.*}}, %{{.*}}) loops [4 by <{"y" : 0, 1, 4}>, 2]
func.func @top(%x: tensor<4x9xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>) -> (!values, !indices) {
  %0:2 = dovetail.top_k %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 4}, {}]>, k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>) -> (!values, !indices)
  return %0#0, %0#1 : !values, !indices
}
