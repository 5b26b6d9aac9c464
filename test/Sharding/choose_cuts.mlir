// RUN: dovetail-opt %s --dovetail-choose-cuts | FileCheck %s

// Cuts that the user left open lie at multiples of the strides behind the
// argument, as long as no shard gets much more than its share.

dovetail.mesh @mesh = ["y" = 4]

// Two layers of stride 2: multiples of 4.
// CHECK-LABEL: func.func @strided
// CHECK-SAME: dim_sharding<{"y" : 0, 28, 56, 80, 104}>
func.func @strided(%x: tensor<1x3x104x16xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y"}>, #dovetail.dim_sharding<{}>]}, %w: tensor<3x3x3x3xf32>) -> tensor<1x3x26x4xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x3x104x16xf32>, tensor<3x3x3x3xf32>) -> tensor<1x3x52x8xf32>
  %1 = dovetail.conv %0, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x3x52x8xf32>, tensor<3x3x3x3xf32>) -> tensor<1x3x26x4xf32>
  return %1 : tensor<1x3x26x4xf32>
}

// 20 rows of stride 16 would leave shards empty: the largest divisor that keeps
// every shard within a quarter of its share of 5 rows is 2.
// CHECK-LABEL: func.func @small
// CHECK-SAME: dim_sharding<{"y" : 0, 6, 12, 16, 20}>
func.func @small(%x: tensor<1x3x20x16xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y"}>, #dovetail.dim_sharding<{}>]}, %w: tensor<3x3x1x1xf32>) -> tensor<1x3x2x1xf32> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 16, 16>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x3x20x16xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x2x1xf32>
  return %0 : tensor<1x3x2x1xf32>
}

// Positions that the user gave are kept.
// CHECK-LABEL: func.func @given
// CHECK-SAME: dim_sharding<{"y" : 0, 1, 1, 7, 20}>
func.func @given(%x: tensor<1x20xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 1, 1, 7, 20}>]}) -> tensor<1x20xf32> {
  return %x : tensor<1x20xf32>
}
