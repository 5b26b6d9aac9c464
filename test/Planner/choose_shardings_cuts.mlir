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
