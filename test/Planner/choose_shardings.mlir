// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// A cut follows a strided window to the result that is nearest to it.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<1x3x32x32xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 15, 32}>, #dovetail.dim_sharding<{}>]}, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x16x16xf32> {
  // CHECK: dovetail.conv
  // CHECK-SAME: -> tensor<1x8x16x16xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 8, 16}, {}]>>
  %0 = dovetail.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x3x32x32xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

// -----

// A split contraction gives a partial result.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @contraction
func.func @contraction(%a: tensor<4x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"k" : 0, 24, 64}>]}, %b: tensor<64x2xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 24, 64}>, #dovetail.dim_sharding<{}>]}) -> tensor<4x2xf32> {
  // CHECK: dovetail.matmul
  // CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 24, 64}]>
  // CHECK-SAME: -> tensor<4x2xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
  %0 = dovetail.matmul %a, %b : (tensor<4x64xf32>, tensor<64x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Operands disagree: the small one moves.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @conflict
func.func @conflict(%a: tensor<100x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 50, 100}>, #dovetail.dim_sharding<{}>]}, %b: tensor<1x64xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 32, 64}>]}) -> tensor<100x64xf32> {
  // CHECK: dovetail.add
  // CHECK-SAME: -> tensor<100x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 50, 100}, {}]>>
  %0 = dovetail.add %a, %b : (tensor<100x64xf32>, tensor<1x64xf32>) -> tensor<100x64xf32>
  return %0 : tensor<100x64xf32>
}

// -----

// An argument without a request takes the cuts that its user needs.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %arg1: tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>)
func.func @backward(%a: tensor<40x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 10, 40}>, #dovetail.dim_sharding<{}>]}, %b: tensor<40x8xf32>) -> tensor<40x8xf32> {
  %0 = dovetail.exp %b : (tensor<40x8xf32>) -> tensor<40x8xf32>
  %1 = dovetail.add %a, %0 : (tensor<40x8xf32>, tensor<40x8xf32>) -> tensor<40x8xf32>
  return %1 : tensor<40x8xf32>
}

// -----

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

// -----

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

// Of two sums that are multiplied at most one stays partial: the other one is combined first.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @product_of_sums
// CHECK: %[[A:.*]] = dovetail.reduce %arg0 {{.*}}partial = sum ["k"]
// CHECK: %[[B:.*]] = dovetail.reduce %arg1 {{.*}}partial = sum ["k"]
// CHECK: %[[SUM:.*]] = dovetail.reshard {{.*}}partial = sum ["k"]>> -> tensor<1x1xf32, #dovetail.sharding<@mesh, [{}, {}]>>
// CHECK: dovetail.mul {{.*}}%[[SUM]]
func.func @product_of_sums(%a: tensor<64x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 32, 64}>, #dovetail.dim_sharding<{}>]}, %b: tensor<64x1xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 32, 64}>, #dovetail.dim_sharding<{}>]}) -> tensor<1x1xf32> {
  %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x1xf32>) -> tensor<1x1xf32>
  %1 = dovetail.reduce %b {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x1xf32>) -> tensor<1x1xf32>
  %2 = dovetail.mul %0, %1 : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %2 : tensor<1x1xf32>
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
