// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// The operation that computes a result splits it as requested, and the argument follows.
// CHECK-LABEL: func.func @result
// CHECK-SAME: %arg0: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>
// CHECK-NOT: dovetail.reshard
func.func @result(%a: tensor<8xf32>) -> (tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>]}) {
  %0 = dovetail.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// Cuts that are left open are those that follow from the operands.
// CHECK-LABEL: func.func @open
// CHECK: dovetail.relu {{.*}} -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
func.func @open(%a: tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 8}>]})
    -> (tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y"}>]}) {
  %0 = dovetail.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// One value, returned twice with different cuts, is computed as one of them and sent to where the other one is: of its 24
// elements half.
// CHECK-LABEL: func.func @twice
// CHECK-SAME: -> (tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}, {}]>> {{.*}}, tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6}]>> {{.*}})
// CHECK-SAME: dovetail.expected = {bytes = 48 : i64
// CHECK: dovetail.relu
// CHECK-NEXT: dovetail.reshard
// CHECK-NEXT: return
func.func @twice(%a: tensor<4x6xf32>)
    -> (tensor<4x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y"}>, #dovetail.dim_sharding<{}>]},
        tensor<4x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y"}>]}) {
  %0 = dovetail.relu %a : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %0 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// A value in between. The request is no attribute of the operation any more.
// CHECK-LABEL: func.func @between
// CHECK: dovetail.relu %{{[^ ]*}} {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 7, 8}]>} : {{.*}} -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 8}]>>
// CHECK: dovetail.neg {{.*}} -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 7, 8}]>>
func.func @between(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dovetail.relu %a {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 7, 8}>]} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dovetail.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// A reduction over one element is not split: only one rank would have the element. They divide what is left.
// CHECK-LABEL: func.func @single
// CHECK: dovetail.reduce
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 2, 4}, {}]>
func.func @single(%a: tensor<1x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 0, 1}>, #dovetail.dim_sharding<{}>]})
    -> tensor<1x4xf32> {
  %0 = dovetail.reduce %a {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

// Both results have what is requested of the first one, though the operation goes through its line as a whole.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @two_results
// CHECK: %[[V:.*]], %[[I:.*]] = dovetail.top_k
// CHECK-DAG: %[[VALUES:.*]] = dovetail.reshard %[[V]] {{.*}} -> tensor<4x2xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}]>>
// CHECK-DAG: %[[INDICES:.*]] = dovetail.reshard %[[I]] {{.*}} -> tensor<4x2xi64, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}]>>
// CHECK: return %[[VALUES]], %[[INDICES]]
func.func @two_results(%x: tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  %0:2 = dovetail.top_k %x {k = 2 : i64, axis = 1 : i64, largest = true, dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 1, 2}>]} : (tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi64>
}
