// RUN: dovetail-opt %s --dovetail-partition --dovetail-verify-partition --split-input-file | FileCheck %s

// A window wider than the next shard reaches over it: no special case.

dovetail.mesh @mesh = ["y" = 4]
!rows = tensor<1x1x36x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 9, 11, 13, 36}, {}]>>

// CHECK-LABEL: func.func @wide_window
func.func @wide_window(%x: !rows, %w: tensor<1x1x7x1xf32>) -> !rows {
  // CHECK: dovetail.reshard
  // CHECK-SAME: {"y" : (0, 12), (6, 14), (8, 16), (10, 36)}
  // CHECK: dovetail.conv
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 9, 11, 13, 36}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 3, 0>, pads_high = array<i64: 3, 0>} : (!rows, tensor<1x1x7x1xf32>) -> !rows
  return %0 : !rows
}

// -----

// A sum stays partial through a product with a factor, and is reduced where the operation is not linear.

dovetail.mesh @mesh = ["k" = 2]
!terms = tensor<1x4xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>
!whole = tensor<1x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @delayed
func.func @delayed(%a: tensor<64x4xf32, #dovetail.sharding<@mesh, [{"k" : 0, 24, 64}, {}]>>) -> !whole {
  %c = dovetail.constant dense<0.5> : tensor<1x1xf32>
  // CHECK: dovetail.reduce
  // CHECK-NEXT: dovetail.mul
  // CHECK-SAME: partial = sum ["k"]
  // CHECK-NEXT: dovetail.reshard {{.*}}partial = sum ["k"]>> -> tensor<1x4xf32, #dovetail.sharding<@mesh, [{}, {}]>>
  // CHECK-NEXT: dovetail.exp
  %0 = dovetail.reduce %a {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 24, 64}]>, kind = #dovetail.reduce_kind<sum>, axes = array<i64: 0>} : (tensor<64x4xf32, #dovetail.sharding<@mesh, [{"k" : 0, 24, 64}, {}]>>) -> !terms
  %1 = dovetail.mul %0, %c {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!terms, tensor<1x1xf32>) -> !terms
  %2 = dovetail.exp %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!terms) -> !whole
  return %2 : !whole
}

// -----

// What a rank holds of an elementwise operand is what it needs: nothing moves.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 40, 40}, {}]>>

// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: dovetail.reshard
// CHECK: return
func.func @pointwise(%a: !rows, %b: tensor<8xf32>) -> !rows {
  %0 = dovetail.add %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 40, 40}, {}]>} : (!rows, tensor<8xf32>) -> !rows
  return %0 : !rows
}

// -----

// The coordinates of a pad's operand are those of its result, but its extent is not: the last rank needs what there is.

dovetail.mesh @mesh = ["y" = 3]
!rows = tensor<6x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4, 6}, {}]>>
!padded = tensor<12x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 2, 4, 12}, {}]>>

// CHECK-LABEL: func.func @padded
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.pad %arg0
func.func @padded(%a: !rows) -> !padded {
  %0 = dovetail.pad %a {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 2, 4, 12}, {}]>, low = array<i64: 0, 0>, high = array<i64: 6, 0>, mode = #dovetail.pad_mode<constant>} : (!rows) -> !padded
  return %0 : !padded
}

// -----

// What is linear in a sum that is partial may sum over another axis as well: the result is partial over both, and is
// combined where the function ends.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!cut = tensor<4x6x8xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2, 6}, {"x" : 0, 4, 8}]>>
!terms = tensor<4x1x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"x" : 0, 4, 8}], partial = sum ["y"]>>
!both = tensor<4x1x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}], partial = sum ["y", "x"]>>

// CHECK-LABEL: func.func @twice_partial
// CHECK: dovetail.reduce
// CHECK-NOT: dovetail.reshard
// CHECK: %[[TERMS:.*]] = dovetail.reduce
// CHECK-NEXT: %[[SUM:.*]] = dovetail.reshard %[[TERMS]] : {{.*}}partial = sum ["y", "x"]>> -> tensor<4x1x1xf32, #dovetail.sharding<@mesh, [{}, {}, {}]>>
// CHECK-NEXT: return %[[SUM]]
func.func @twice_partial(%a: !cut) -> !both {
  %0 = dovetail.reduce %a {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"x" : 0, 4, 8}, {"y" : 0, 2, 6}]>, kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (!cut) -> !terms
  %1 = dovetail.reduce %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}, {"x" : 0, 4, 8}]>, kind = #dovetail.reduce_kind<sum>, axes = array<i64: 2>} : (!terms) -> !both
  return %1 : !both
}

// -----

// Ranks compute what they need of an operation with overlapping windows: its operand is exchanged, its result is not.

dovetail.mesh @mesh = ["y" = 2]
!cut = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 12, 24}]>>
!windows = tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}]>>

// CHECK-LABEL: func.func @recomputed
// CHECK: %[[X:.*]] = dovetail.reshard %arg0 {{.*}} -> tensor<1x1x24xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 14), (10, 24)}]>>
// CHECK-NEXT: %[[H:.*]] = dovetail.conv %[[X]]
// CHECK-NEXT: dovetail.conv %[[H]]
// CHECK-NEXT: return
func.func @recomputed(%x: !cut, %w: tensor<1x1x3xf32>) -> !cut {
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : (0, 13), (11, 24)}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!cut, tensor<1x1x3xf32>) -> !windows
  %1 = dovetail.conv %0, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 12, 24}, {}]>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (!windows, tensor<1x1x3xf32>) -> !cut
  return %1 : !cut
}

// -----

// Eight heads of queries read two heads of keys, each of which two ranks have: nothing moves.

dovetail.mesh @mesh = ["r" = 4]
!queries = tensor<8x16x4xf32, #dovetail.sharding<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}]>>
!repeated = tensor<2x4x4x16xf32, #dovetail.sharding<@mesh, [{"r" : (0, 1), (0, 1), (1, 2), (1, 2)}, {}, {}, {}]>>
!keys = tensor<8x4x16xf32, #dovetail.sharding<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}]>>
!scores = tensor<8x16x16xf32, #dovetail.sharding<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}]>>

// CHECK-LABEL: func.func @key_heads
// CHECK-NOT: dovetail.reshard
// CHECK: return
func.func @key_heads(%q: !queries, %k: tensor<2x1x4x16xf32>) -> !scores {
  %0 = dovetail.broadcast %k {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : (0, 1), (0, 1), (1, 2), (1, 2)}, {}, {}, {}]>} : (tensor<2x1x4x16xf32>) -> !repeated
  %1 = dovetail.reshape %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}]>} : (!repeated) -> !keys
  %2 = dovetail.matmul %q, %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"r" : 0, 2, 4, 6, 8}, {}, {}, {}]>} : (!queries, !keys) -> !scores
  return %2 : !scores
}

// -----

// A rank may hold more of an operand than its part of a sum: its loops say which terms it adds. Weights are cut all the
// same, so that each rank keeps its part only.

dovetail.mesh @mesh = ["k" = 2]
!left = tensor<4x6xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2, 6}]>>
!terms = tensor<4x5xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>

// CHECK-LABEL: func.func @more_than_its_part
// CHECK: %[[W:.*]] = dovetail.constant
// CHECK-NEXT: %[[PART:.*]] = dovetail.reshard %[[W]] {{.*}} -> tensor<6x5xf32, #dovetail.sharding<@mesh, [{"k" : 0, 2, 6}, {}]>>
// CHECK-NEXT: dovetail.matmul %arg0, %[[PART]]
// CHECK-NEXT: dovetail.matmul %arg0, %arg1
// CHECK: return
func.func @more_than_its_part(%a: !left, %b: tensor<6x5xf32>) -> (!terms, !terms) {
  %w = dovetail.constant dense<1.0> : tensor<6x5xf32>
  %0 = dovetail.matmul %a, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 2, 6}]>} : (!left, tensor<6x5xf32>) -> !terms
  %1 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"k" : 0, 2, 6}]>} : (!left, tensor<6x5xf32>) -> !terms
  return %0, %1 : !terms, !terms
}
