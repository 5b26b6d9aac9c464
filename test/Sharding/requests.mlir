// RUN: dovetail-opt %s --dovetail-choose-cuts --dovetail-propagate --split-input-file | FileCheck %s

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

// One value, returned twice with different cuts: one of them needs a reshard.
// CHECK-LABEL: func.func @twice
// CHECK: %[[R:.*]] = dovetail.relu {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4}, {}]>>
// CHECK: %[[S:.*]] = dovetail.reshard %[[R]] {{.*}} -> tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 6}]>>
// CHECK: return %[[R]], %[[S]]
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

// A reduction over one element is not split: only one rank would have the element.
// CHECK-LABEL: func.func @single
// CHECK: dovetail.reduce {{.*}} -> tensor<1x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
func.func @single(%a: tensor<1x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 0, 1}>, #dovetail.dim_sharding<{}>]})
    -> tensor<1x4xf32> {
  %0 = dovetail.reduce %a {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
