// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// A sharding in a type counts as a request; declarations are passed over.

dovetail.mesh @mesh = ["y" = 2]
func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>

// CHECK-LABEL: func.func @stated_in_types
// CHECK-SAME: %arg0: tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>, %arg1: tensor<10xf32, #dovetail.sharding<@mesh, [{}]>>
func.func @stated_in_types(%x: tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>, %y: tensor<10xf32, #dovetail.sharding<@mesh, [{}]>>) -> tensor<10xf32> {
  // CHECK: dovetail.relu
  // CHECK-SAME: -> tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>
  %0 = dovetail.relu %x : (tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 10}]>>) -> tensor<10xf32>
  // CHECK: dovetail.exp
  // CHECK-SAME: -> tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 10}]>>
  %1 = dovetail.exp %y : (tensor<10xf32, #dovetail.sharding<@mesh, [{}]>>) -> tensor<10xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 10}]>>
  return %0 : tensor<10xf32>
}

// -----

// Stated loop shardings are kept, windows that overlap included: what several ranks compute, none of them has to send.
// Whoever reads them needs less, or as much.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @stated
func.func @stated(%x: tensor<1x1x24xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 12, 24}>]}, %w: tensor<1x1x3xf32>) -> tensor<1x1x24xf32> {
  // CHECK: dovetail.conv
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>
  // CHECK-SAME: -> tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]>>
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x24xf32>, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  // CHECK: dovetail.conv
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x24xf32>, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  return %1 : tensor<1x1x24xf32>
}

// -----

// Two heads of keys for eight of queries, over four ranks: each head of keys is computed by two ranks, and the copies that
// are made of it are cut as the queries are.

dovetail.mesh @mesh = ["r" = 4]

// CHECK-LABEL: func.func @key_heads
func.func @key_heads(%q: tensor<8x16x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"r" : 0, 2, 4, 6, 8}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}, %k: tensor<2x1x4x16xf32>) -> tensor<8x16x16xf32> {
  // CHECK: dovetail.broadcast
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : (0, 1), (0, 1), (1, 2), (1, 2)}, {}, {}, {}]>
  %0 = dovetail.broadcast %k {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : (0, 1), (0, 1), (1, 2), (1, 2)}, {}, {}, {}]>} : (tensor<2x1x4x16xf32>) -> tensor<2x4x4x16xf32>
  // CHECK: dovetail.reshape
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}]>
  %1 = dovetail.reshape %0 : (tensor<2x4x4x16xf32>) -> tensor<8x4x16xf32>
  // CHECK: dovetail.matmul
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}, {}]>
  %2 = dovetail.matmul %q, %1 : (tensor<8x16x4xf32>, tensor<8x4x16xf32>) -> tensor<8x16x16xf32>
  return %2 : tensor<8x16x16xf32>
}

// -----

// A reshard to what has no sharding gathers; what is stated of its result is kept.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @stated_reshards
// CHECK: dovetail.reshard %arg0 {{.*}} -> tensor<8xf32>
// CHECK: dovetail.reshard {{.*}} -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
func.func @stated_reshards(%x: tensor<8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 3, 8}>]}) -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>> {
  %0 = dovetail.reshard %x : tensor<8xf32> -> tensor<8xf32>
  %1 = dovetail.reshard %0 : tensor<8xf32> -> tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
  return %1 : tensor<8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 8}]>>
}
