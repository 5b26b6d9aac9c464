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

// -----

// A column is exchanged before it is added to a row, though ranks then compute some sums twice: their parts overlap where
// the convolution reads more than its own. A sum of two tensors is exchanged afterwards: that is one, not two.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @overlapping
// CHECK: %[[HALO:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x24x1xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>>
// CHECK-NEXT: %[[ROWS:.*]] = dovetail.add %[[HALO]], %arg1
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>
// CHECK-NEXT: %[[Y:.*]] = dovetail.conv %[[ROWS]]
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[Y]], %{{.*}} {{.*}} -> tensor<1x1x24x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>>
// CHECK-NEXT: %[[SUMS:.*]] = dovetail.reshard %[[SUM]]
// CHECK-NEXT: dovetail.conv %[[SUMS]]
func.func @overlapping(%x: tensor<1x1x24x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 12, 24}>, #dovetail.dim_sharding<{}>]}, %v: tensor<1x1x1x4xf32>, %z: tensor<1x1x24x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 12, 24}>, #dovetail.dim_sharding<{}>]}, %w: tensor<1x1x3x1xf32>) -> tensor<1x1x24x4xf32> {
  %0 = dovetail.add %x, %v : (tensor<1x1x24x1xf32>, tensor<1x1x1x4xf32>) -> tensor<1x1x24x4xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x1x24x4xf32>, tensor<1x1x3x1xf32>) -> tensor<1x1x24x4xf32>
  %2 = dovetail.add %1, %z : (tensor<1x1x24x4xf32>, tensor<1x1x24x4xf32>) -> tensor<1x1x24x4xf32>
  %3 = dovetail.conv %2, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x1x24x4xf32>, tensor<1x1x3x1xf32>) -> tensor<1x1x24x4xf32>
  return %3 : tensor<1x1x24x4xf32>
}
