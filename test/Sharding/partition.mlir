// RUN: dovetail-opt %s --dovetail-propagate --dovetail-partition --dovetail-verify-partition --split-input-file | FileCheck %s

// A window wider than the next shard reaches over it: no special case.

dovetail.mesh @mesh = ["y" = 4]

// CHECK-LABEL: func.func @wide_window
func.func @wide_window(%x: tensor<1x1x36x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 9, 11, 13, 36}>, #dovetail.dim_sharding<{}>]}, %w: tensor<1x1x7x1xf32>) -> tensor<1x1x36x8xf32> {
  // CHECK: dovetail.reshard
  // CHECK-SAME: {"y" : (0, 12), (6, 14), (8, 16), (10, 36)}
  // CHECK: dovetail.conv
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 3, 0>, pads_high = array<i64: 3, 0>} : (tensor<1x1x36x8xf32>, tensor<1x1x7x1xf32>) -> tensor<1x1x36x8xf32>
  return %0 : tensor<1x1x36x8xf32>
}

// -----

// A sum stays partial through a product with a factor, and is reduced where the operation is not linear.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @delayed
func.func @delayed(%a: tensor<64x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"k" : 0, 24, 64}>, #dovetail.dim_sharding<{}>]}) -> tensor<1x4xf32> {
  %c = dovetail.constant dense<0.5> : tensor<1x1xf32>
  // CHECK: dovetail.reduce
  // CHECK-NEXT: dovetail.mul
  // CHECK-SAME: partial = sum ["k"]
  // CHECK-NEXT: dovetail.reshard {{.*}}partial = sum ["k"]>> -> tensor<1x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
  // CHECK-NEXT: dovetail.exp
  %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x4xf32>) -> tensor<1x4xf32>
  %1 = dovetail.mul %0, %c : (tensor<1x4xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
  %2 = dovetail.exp %1 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %2 : tensor<1x4xf32>
}

// -----

// What a rank holds of an elementwise operand is what it needs: nothing moves.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: dovetail.reshard
// CHECK: return
func.func @pointwise(%a: tensor<40x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 40, 40}>, #dovetail.dim_sharding<{}>]}, %b: tensor<8xf32>) -> tensor<40x8xf32> {
  %0 = dovetail.add %a, %b : (tensor<40x8xf32>, tensor<8xf32>) -> tensor<40x8xf32>
  return %0 : tensor<40x8xf32>
}

// -----

// The coordinates of a pad's operand are those of its result, but its extent is not: the last rank needs what there is.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @padded
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.pad
// CHECK-SAME: -> tensor<12x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4, 12}, {}]>>
func.func @padded(%a: tensor<6x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 2, 4, 6}>, #dovetail.dim_sharding<{}>]}) -> tensor<12x8xf32> {
  %0 = dovetail.pad %a {low = array<i64: 0, 0>, high = array<i64: 6, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<6x8xf32>) -> tensor<12x8xf32>
  return %0 : tensor<12x8xf32>
}

// -----

// What is linear in a sum that is partial may sum over another axis as well: the result is partial over both.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// CHECK-LABEL: func.func @twice_partial
// CHECK: dovetail.reduce
// CHECK-SAME: partial = sum ["y"]
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.reduce
// CHECK-SAME: partial = sum ["y", "x"]
// CHECK-NEXT: dovetail.reshard
// CHECK-NEXT: return
func.func @twice_partial(%a: tensor<4x6x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 6}>, #dovetail.dim_sharding<{"x" : 0, 4, 8}>]}) -> tensor<4x1x1xf32> {
  %0 = dovetail.reduce %a {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<4x6x8xf32>) -> tensor<4x1x8xf32>
  %1 = dovetail.reduce %0 {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 2>} : (tensor<4x1x8xf32>) -> tensor<4x1x1xf32>
  return %1 : tensor<4x1x1xf32>
}

// -----

// Ranks compute what they need of an operation with overlapping windows: its operand is exchanged, its result is not.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @recomputed
// CHECK: %[[X:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 14), (10, 24)}]>>
// CHECK-NEXT: %[[H:.*]] = dovetail.conv %[[X]], {{.*}} -> tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]>>
// CHECK-NEXT: dovetail.conv %[[H]]
// CHECK-NEXT: return
func.func @recomputed(%x: tensor<1x1x24xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 12, 24}>]}, %w: tensor<1x1x3xf32>) -> tensor<1x1x24xf32> {
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x24xf32>, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x24xf32>, tensor<1x1x3xf32>) -> tensor<1x1x24xf32>
  return %1 : tensor<1x1x24xf32>
}

// -----

// Eight heads of queries read two heads of keys, each of which two ranks have: nothing moves.

dovetail.mesh @mesh = ["r" = 4]

// CHECK-LABEL: func.func @key_heads
// CHECK-NOT: dovetail.reshard
// CHECK: return
func.func @key_heads(%q: tensor<8x16x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"r" : 0, 2, 4, 6, 8}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}, %k: tensor<2x1x4x16xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) -> tensor<8x16x16xf32> {
  %0 = dovetail.broadcast %k {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : (0, 1), (0, 1), (1, 2), (1, 2)}, {}, {}, {}]>} : (tensor<2x1x4x16xf32>) -> tensor<2x4x4x16xf32>
  %1 = dovetail.reshape %0 : (tensor<2x4x4x16xf32>) -> tensor<8x4x16xf32>
  %2 = dovetail.matmul %q, %1 : (tensor<8x16x4xf32>, tensor<8x4x16xf32>) -> tensor<8x16x16xf32>
  return %2 : tensor<8x16x16xf32>
}

// -----

// A rank may hold more of an operand than its part of a sum: its loops say which terms it adds. Weights are cut all the
// same, so that each rank keeps its part only.

dovetail.mesh @mesh = ["k" = 2]

// CHECK-LABEL: func.func @more_than_its_part
// CHECK: %[[W:.*]] = dovetail.constant
// CHECK-NEXT: %[[PART:.*]] = dovetail.reshard %[[W]] {{.*}} -> tensor<6x5xf32, #dovetail.sharding<@mesh, [{"k" : 0, 2, 6}, {}]>>
// CHECK-NEXT: dovetail.matmul %arg0, %[[PART]]
// CHECK-NEXT: dovetail.matmul %arg0, %arg1
// CHECK: return
func.func @more_than_its_part(%a: tensor<4x6xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"k" : 0, 2, 6}>]}, %b: tensor<6x5xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>]}) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %w = dovetail.constant dense<1.0> : tensor<6x5xf32>
  %0 = dovetail.matmul %a, %w : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  %1 = dovetail.matmul %a, %b : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %0, %1 : tensor<4x5xf32>, tensor<4x5xf32>
}
