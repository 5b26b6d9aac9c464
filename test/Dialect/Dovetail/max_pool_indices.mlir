// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings | FileCheck %s --check-prefix=SPLIT

dovetail.mesh @mesh = ["y" = 2]

// The example of ONNX's documentation of MaxPool, in both orders.
// CHECK-LABEL: func.func @orders
// CHECK{LITERAL}: dovetail.constant dense<[[[[6, 8], [16, 18]]]]>
// CHECK{LITERAL}: dovetail.constant dense<[[[[6, 16], [8, 18]]]]>
func.func @orders() -> (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) {
  %x = dovetail.constant dense<[[[[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0], [11.0, 12.0, 13.0, 14.0, 15.0],
                                  [16.0, 17.0, 18.0, 19.0, 20.0], [21.0, 22.0, 23.0, 24.0, 25.0]]]]> : tensor<1x1x5x5xf32>
  %0 = dovetail.max_pool_indices %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x5x5xf32>) -> tensor<1x1x2x2xi64>
  %1 = dovetail.max_pool_indices %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, column_major} : (tensor<1x1x5x5xf32>) -> tensor<1x1x2x2xi64>
  return %0, %1 : tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>
}

// Pads are nowhere; of equals the first counts, in the second channel too.
// CHECK-LABEL: func.func @equals
// CHECK{LITERAL}: dovetail.constant dense<[[[0, 0, 1], [3, 4, 4]]]>
func.func @equals() -> tensor<1x2x3xi64> {
  %x = dovetail.constant dense<[[[7, 7, 7], [-128, 5, 5]]]> : tensor<1x2x3xi8>
  %0 = dovetail.max_pool_indices %x {kernel = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 0>} : (tensor<1x2x3xi8>) -> tensor<1x2x3xi64>
  return %0 : tensor<1x2x3xi64>
}

// Rows split as those of a pool.
// SPLIT-LABEL: func.func @split
// SPLIT: dovetail.max_pool_indices
// SPLIT-SAME: -> tensor<1x1x4x4xi64, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 1, 4}, {}]>>
func.func @split(%x: tensor<1x1x8x8xf32> {dovetail.shard = [#dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{}>, #dovetail.dim_sharding<{"y" : 0, 2, 8}>, #dovetail.dim_sharding<{}>]}) -> tensor<1x1x4x4xi64> {
  %0 = dovetail.max_pool_indices %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xi64>
  return %0 : tensor<1x1x4x4xi64>
}
