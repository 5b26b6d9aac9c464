// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Cuts that the user leaves open lie where layers need none of the others' elements, though some ranks then have more
// than others: pairs of pairs, of which there are 26.

dovetail.mesh @mesh = ["y" = 4]

// CHECK-LABEL: func.func @aligned
// CHECK-SAME: %arg0: tensor<1x1x104xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 28, {{52|56}}, 80, 104}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
func.func @aligned(%x: tensor<1x1x104xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y"}>]}, %w: tensor<1x1x2xf32>) -> tensor<1x1x26xf32> {
  // CHECK: dovetail.conv
  %0 = dovetail.conv %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x104xf32>, tensor<1x1x2xf32>) -> tensor<1x1x52xf32>
  // CHECK: dovetail.conv
  // CHECK-SAME: -> tensor<1x1x26xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 7, {{13|14}}, 20, 26}]>>
  %1 = dovetail.conv %0, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x52xf32>, tensor<1x1x2xf32>) -> tensor<1x1x26xf32>
  return %1 : tensor<1x1x26xf32>
}

// -----

// No rank is left without work where there are as many elements as ranks, after five layers. Of an odd number the last
// one is read by none.

dovetail.mesh @mesh = ["y" = 3]

// CHECK-LABEL: func.func @deep
// CHECK-SAME: %arg0: tensor<1x1x100xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 32, 64, 100}]>>
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
func.func @deep(%x: tensor<1x1x100xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y"}>]}, %w: tensor<1x1x2xf32>) -> tensor<1x1x3xf32> {
  // CHECK: dovetail.conv
  %0 = dovetail.conv %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x100xf32>, tensor<1x1x2xf32>) -> tensor<1x1x50xf32>
  // CHECK: dovetail.conv
  %1 = dovetail.conv %0, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x50xf32>, tensor<1x1x2xf32>) -> tensor<1x1x25xf32>
  // CHECK: dovetail.conv
  // CHECK-SAME: -> tensor<1x1x12xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8, 12}]>>
  %2 = dovetail.conv %1, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x25xf32>, tensor<1x1x2xf32>) -> tensor<1x1x12xf32>
  // CHECK: dovetail.conv
  %3 = dovetail.conv %2, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x12xf32>, tensor<1x1x2xf32>) -> tensor<1x1x6xf32>
  // CHECK: dovetail.conv
  // CHECK-SAME: -> tensor<1x1x3xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 1, 2, 3}]>>
  %4 = dovetail.conv %3, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x6xf32>, tensor<1x1x2xf32>) -> tensor<1x1x3xf32>
  return %4 : tensor<1x1x3xf32>
}

// -----

// Over two axes at once.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]

// CHECK-LABEL: func.func @axes
// CHECK-SAME: %arg0: tensor<1x1x26xf32, #dovetail.sharding<@mesh, [{}, {}, {"x"+"y" : 0, 8, 14, 20, 26}]>>
func.func @axes(%x: tensor<1x1x26xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"x" + "y"}>]}, %w: tensor<1x1x2xf32>) -> tensor<1x1x13xf32> {
  // CHECK: dovetail.conv
  %0 = dovetail.conv %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x26xf32>, tensor<1x1x2xf32>) -> tensor<1x1x13xf32>
  return %0 : tensor<1x1x13xf32>
}
