// RUN: dovetail-opt %s --dovetail-choose-shardings='objective=bytes' --split-input-file | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// What an argument is in the next run is cut as the argument: that is left open, so all is cut as the result.
// CHECK-LABEL: func.func @open
// CHECK-SAME: %arg0: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
// CHECK-NOT: dovetail.reshard
func.func @open(%a: tensor<8xf32>) -> (tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>]},
                                      tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>}) {
  %0 = dovetail.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// Both are stated: two elements of four bytes change places.
// CHECK-LABEL: func.func @stated
// CHECK: dovetail.reshard
// CHECK: return {{.*}} : tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}]>>, tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 8}]>>
func.func @stated(%a: tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 5, 8}>]})
    -> (tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>]},
        tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>}) {
  %0 = dovetail.relu %a : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// Arguments that take each other's places are cut alike, and one that is returned as it is stays.
// CHECK-LABEL: func.func @swap
// CHECK-SAME: %arg0: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
// CHECK-SAME: %arg1: tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
// CHECK-NOT: dovetail.reshard
// CHECK: return %arg1, %arg0, %arg2
func.func @swap(%a: tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 8}>]}, %b: tensor<8xf32>,
                %c: tensor<8xf32>)
    -> (tensor<8xf32> {dovetail.feedback = array<i64: 0, 0>}, tensor<8xf32> {dovetail.feedback = array<i64: 1, 0>},
        tensor<8xf32> {dovetail.feedback = array<i64: 2, 0>}) {
  return %b, %a, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
