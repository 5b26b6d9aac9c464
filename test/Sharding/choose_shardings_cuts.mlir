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

// The deepest layer has seven rows, 4 and 3 of them for two ranks, and so has what follows it. The layers before it
// divide theirs evenly: of each layer one row moves, from the first rank to the second of the first one, and back of the
// second one; two of the last.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @strides
// CHECK-SAME: %arg0: tensor<1x1x28xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 14, 28}]>>
// CHECK-SAME: dovetail.expected = {bytes = 16 : i64
// CHECK: dovetail.conv
// CHECK-SAME: -> tensor<1x1x14xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 7, 14}]>>
// CHECK: dovetail.conv
// CHECK-SAME: -> tensor<1x1x7xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}]>>
// CHECK: dovetail.conv
// CHECK-SAME: -> tensor<1x1x7xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}]>>
func.func @strides(%x: tensor<1x1x28xf32>) -> tensor<1x1x7xf32> {
  %w = dovetail.constant dense<1.0> : tensor<1x1x3xf32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x28xf32>, tensor<1x1x3xf32>) -> tensor<1x1x14xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x14xf32>, tensor<1x1x3xf32>) -> tensor<1x1x7xf32>
  %2 = dovetail.conv %1, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 1>} : (tensor<1x1x7xf32>, tensor<1x1x3xf32>) -> tensor<1x1x7xf32>
  return %2 : tensor<1x1x7xf32>
}

// -----

// Patches of four rows are cut where their seven results are, though 16 and 12 rows are less even than 14 and 14: nothing
// is computed of the input, and nothing moves.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @patches
// CHECK-SAME: %arg0: tensor<1x1x28xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 16, 28}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
// CHECK: dovetail.conv
// CHECK-SAME: -> tensor<1x1x7xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}]>>
func.func @patches(%x: tensor<1x1x28xf32>) -> tensor<1x1x7xf32> {
  %w = dovetail.constant dense<1.0> : tensor<1x1x4xf32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 4>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x28xf32>, tensor<1x1x4xf32>) -> tensor<1x1x7xf32>
  return %0 : tensor<1x1x7xf32>
}

// -----

// Two heads of keys, one for each rank: through the reshapes the columns of their projection and the eight heads of
// queries that read them are cut at the same places, and nothing moves.

dovetail.mesh @mesh = ["r" = 2]

// CHECK-LABEL: func.func @heads
// CHECK-SAME: %arg1: tensor<8x16x4xf32, #dovetail.sharding<@mesh, [{"r" : 0, 4, 8}, {}, {}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
// CHECK: dovetail.matmul {{.*}} -> tensor<16x8xf32, #dovetail.sharding<@mesh, [{}, {"r" : 0, 4, 8}]>>
// CHECK: dovetail.reshape {{.*}} -> tensor<16x2x4xf32, #dovetail.sharding<@mesh, [{}, {"r" : 0, 1, 2}, {}]>>
// CHECK: dovetail.broadcast {{.*}} -> tensor<2x4x4x16xf32, #dovetail.sharding<@mesh, [{"r" : 0, 1, 2}, {}, {}, {}]>>
// CHECK: dovetail.matmul {{.*}} -> tensor<8x16x16xf32, #dovetail.sharding<@mesh, [{"r" : 0, 4, 8}, {}, {}]>>
func.func @heads(%x: tensor<16x12xf32, #dovetail.sharding<@mesh, [{}, {}]>>, %q: tensor<8x16x4xf32>) -> tensor<8x16x16xf32> {
  %w = dovetail.constant dense<1.0> : tensor<12x8xf32>
  %0 = dovetail.matmul %x, %w : (tensor<16x12xf32, #dovetail.sharding<@mesh, [{}, {}]>>, tensor<12x8xf32>) -> tensor<16x8xf32>
  %1 = dovetail.reshape %0 : (tensor<16x8xf32>) -> tensor<16x2x4xf32>
  %2 = dovetail.transpose %1 {permutation = array<i64: 1, 2, 0>} : (tensor<16x2x4xf32>) -> tensor<2x4x16xf32>
  %3 = dovetail.reshape %2 : (tensor<2x4x16xf32>) -> tensor<2x1x4x16xf32>
  %4 = dovetail.broadcast %3 : (tensor<2x1x4x16xf32>) -> tensor<2x4x4x16xf32>
  %5 = dovetail.reshape %4 : (tensor<2x4x4x16xf32>) -> tensor<8x4x16xf32>
  %6 = dovetail.matmul %q, %5 : (tensor<8x16x4xf32>, tensor<8x4x16xf32>) -> tensor<8x16x16xf32>
  return %6 : tensor<8x16x16xf32>
}

// -----

// A cut that is requested goes back through all that the result is made of: two heads and one are 8 columns and 4, though
// half of the columns would be more even.

dovetail.mesh @mesh = ["r" = 2]

// CHECK-LABEL: func.func @odd_heads
// CHECK-SAME: %arg0: tensor<1x12xf32, #dovetail.sharding<@mesh, [{}, {"r" : 0, 8, 12}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
// CHECK: dovetail.exp {{.*}} -> tensor<1x12xf32, #dovetail.sharding<@mesh, [{}, {"r" : 0, 8, 12}]>>
// CHECK: dovetail.reshape {{.*}} -> tensor<3x4xf32, #dovetail.sharding<@mesh, [{"r" : 0, 2, 3}, {}]>>
// CHECK: dovetail.scan {{.*}} -> tensor<3x4xf32, #dovetail.sharding<@mesh, [{"r" : 0, 2, 3}, {}]>>
func.func @odd_heads(%x: tensor<1x12xf32>) -> (tensor<3x4xf32> {dovetail.shard = [#dovetail.dim_sharding<{"r" : 0, 2, 3}>, #dovetail.dim_sharding<{}>]}) {
  %0 = dovetail.exp %x : (tensor<1x12xf32>) -> tensor<1x12xf32>
  %1 = dovetail.reshape %0 : (tensor<1x12xf32>) -> tensor<3x4xf32>
  %2 = dovetail.scan %1 {axis = 1 : i64, kind = #dovetail.reduce_kind<sum>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// -----

// A shift follows its operand's cut at 8 to 12, where it meets a value that is cut at 8. It may be cut as that is, which
// divides it evenly: 4 rows of 3 elements move.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @shift
// CHECK-SAME: %arg0: tensor<16x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 16}, {}]>>
// CHECK-SAME: dovetail.expected = {bytes = 48 : i64
// CHECK: dovetail.pad {{.*}} -> tensor<16x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 16}, {}]>>
// CHECK: dovetail.add {{.*}} -> tensor<16x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 16}, {}]>>
func.func @shift(%x: tensor<16x3xf32>) -> tensor<16x3xf32> {
  %0 = dovetail.pad %x {low = array<i64: 4, 0>, high = array<i64: -4, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<16x3xf32>) -> tensor<16x3xf32>
  %1 = dovetail.add %x, %0 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xf32>
  return %1 : tensor<16x3xf32>
}
