// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Where ranks have keys and values of their own, each gives what these come to, with the largest score and the sum of
// weights, and all are combined. A rank without keys has no part.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @keys
func.func @keys(%q: tensor<2x4x8xf32>, %k: tensor<2x9000x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 4000, 4000, 9000}>, #dovetail.dim_sharding<{}>]},
                %v: tensor<2x9000x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 4000, 4000, 9000}>, #dovetail.dim_sharding<{}>]}) -> tensor<2x4x6xf32> {
  // CHECK: %[[PARTS:.*]] = dovetail.attention %arg0, %arg1, %arg2 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 1, 2}, {}, {}, {}, {}]>, restarts = array<i64: 4000>, scale = 5.000000e-01 : f32} {{.*}} -> tensor<2x2x4x8xf32
  // CHECK: %[[MOST:.*]] = dovetail.slice %{{.*}} {{.*}}sizes = array<i64: 2, 2, 4, 1>, starts = array<i64: 0, 0, 0, 6>
  // CHECK: %[[LARGEST:.*]] = dovetail.reduce %[[MOST]] {{.*}}reduce_kind<max>
  // CHECK: %[[DIFFERENCE:.*]] = dovetail.sub %[[MOST]], %[[LARGEST]]
  // CHECK: %[[WEIGHTS:.*]] = dovetail.exp %[[DIFFERENCE]]
  // CHECK: dovetail.div
  // CHECK: dovetail.reshape {{.*}} -> tensor<2x4x6xf32
  %0 = dovetail.attention %q, %k, %v {scale = 0.5 : f32} : (tensor<2x4x8xf32>, tensor<2x9000x8xf32>, tensor<2x9000x6xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}
