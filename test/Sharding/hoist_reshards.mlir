// RUN: dovetail-opt %s --dovetail-propagate --dovetail-partition --dovetail-hoist-reshards --dovetail-verify-partition --split-input-file | FileCheck %s

// Rows are gathered before they are repeated, and before the addition of a vector that every rank has.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @repeated
// CHECK: %[[ROWS:.*]] = dovetail.reshard %{{.*}} : tensor<8x1xf32, {{.*}}> -> tensor<8x1xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[ROWS]], %{{.*}} -> tensor<8x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.matmul %{{.*}}, %[[SUM]]
func.func @repeated(%x: tensor<8x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>, #dovetail.dim_sharding<{}>]}, %v: tensor<1x64xf32>, %w: tensor<64x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 4, 8}>]}) -> tensor<64x64xf32> {
  %0 = dovetail.add %x, %v : (tensor<8x1xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  %1 = dovetail.matmul %w, %0 : (tensor<64x8xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
