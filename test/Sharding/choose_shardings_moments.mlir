// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Moments over a split dimension are those of each rank's part, which all combine; over a whole one they are not divided.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @moments
func.func @moments(%a: tensor<40x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 10, 10, 40}>, #dovetail.dim_sharding<{}>]}) -> (tensor<1x8xf32>, tensor<40x1xf32>) {
  // CHECK: %{{.*}}, %[[M:.*]], %[[D:.*]] = dovetail.moments %arg0 {axes = array<i64: 0>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 1, 1, 2}, {}, {}]>, restarts = [array<i64: 10>]}
  // CHECK: %[[COUNTS:.*]] = dovetail.broadcast
  // CHECK-NEXT: dovetail.moments %[[COUNTS]], %[[M]], %[[D]] {axes = array<i64: 0>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 6, 8}, {}]>}
  %0:3 = dovetail.moments %a {axes = array<i64: 0>} : (tensor<40x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>)
  // CHECK: dovetail.moments %arg0 {axes = array<i64: 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 10, 40}, {}, {}]>}
  %1:3 = dovetail.moments %a {axes = array<i64: 1>} : (tensor<40x8xf32>) -> (tensor<40x1xf32>, tensor<40x1xf32>, tensor<40x1xf32>)
  return %0#1, %1#1 : tensor<1x8xf32>, tensor<40x1xf32>
}

// -----

// Where there are many of them, ranks divide the combination.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @many_moments
func.func @many_moments(%a: tensor<40x30000xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 10, 40}>, #dovetail.dim_sharding<{}>]}) -> tensor<1x30000xf32> {
  // CHECK: dovetail.moments %arg0 {{.*}}restarts = [array<i64: 10>]
  // CHECK: dovetail.moments {{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 15000, 30000}, {}]>
  %0:3 = dovetail.moments %a {axes = array<i64: 0>} : (tensor<40x30000xf32>) -> (tensor<1x30000xf32>, tensor<1x30000xf32>, tensor<1x30000xf32>)
  %1 = dovetail.sqrt %0#2 : (tensor<1x30000xf32>) -> tensor<1x30000xf32>
  return %1 : tensor<1x30000xf32>
}
