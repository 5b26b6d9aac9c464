// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --mlir-print-op-generic | dovetail-opt | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func @windows
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x9x7xf32>, %[[W:.*]]: tensor<6x2x3x3xf32>, %[[T:.*]]: tensor<4x3x2x2xf32>)
func.func @windows(%x: tensor<1x4x9x7xf32>, %w: tensor<6x2x3x3xf32>, %t: tensor<4x3x2x2xf32>) {
  // CHECK: dovetail.conv %[[X]], %[[W]] {dilations = array<i64: 1, 2>, groups = 2 : i64, pads_high = array<i64: 0, -1>, pads_low = array<i64: 1, 0>, strides = array<i64: 2, 1>}
  %0 = dovetail.conv %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 0, -1>, groups = 2 : i64} : (tensor<1x4x9x7xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x2xf32>
  // CHECK: dovetail.conv_transpose %[[X]], %[[T]] {{.*}}output_padding = array<i64: 1, 0>{{.*}} -> tensor<1x3x19x13xf32>
  %1 = dovetail.conv_transpose %x, %t {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 1>, pads_high = array<i64: 0, 0>, output_padding = array<i64: 1, 0>} : (tensor<1x4x9x7xf32>, tensor<4x3x2x2xf32>) -> tensor<1x3x19x13xf32>
  // CHECK: dovetail.pool %[[X]] {ceil, {{.*}}kind = #dovetail.pool_kind<max>{{.*}} -> tensor<1x4x5x4xf32>
  %2 = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, ceil} : (tensor<1x4x9x7xf32>) -> tensor<1x4x5x4xf32>
  // CHECK: dovetail.lrn %[[X]] {alpha = 9.99999974E-5 : f32, beta = 7.500000e-01 : f32, bias = 1.000000e+00 : f32, size = 5 : i64}
  %3 = dovetail.lrn %x {size = 5 : i64, alpha = 0.0001 : f32, beta = 0.75 : f32, bias = 1.0 : f32} : (tensor<1x4x9x7xf32>) -> tensor<1x4x9x7xf32>
  // CHECK: dovetail.resize %[[X]] {{.*}}mode = #dovetail.resize_mode<linear>{{.*}} -> tensor<1x4x18x14xf32>
  %4 = dovetail.resize %x {sizes = array<i64: 1, 4, 18, 14>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<1x4x9x7xf32>) -> tensor<1x4x18x14xf32>
  return
}

// CHECK-LABEL: func @reductions
// CHECK-SAME: (%[[X:.*]]: tensor<2x6x5xf32>, %[[S:.*]]: tensor<6xf32>, %[[H:.*]]: tensor<2x6x5xf16>)
func.func @reductions(%x: tensor<2x6x5xf32>, %s: tensor<6xf32>, %h: tensor<2x6x5xf16>) {
  // CHECK: dovetail.matmul %[[X]], %{{.*}} : (tensor<2x6x5xf32>, tensor<5x3xf32>) -> tensor<2x6x3xf32>
  %w = dovetail.constant dense<1.0> : tensor<5x3xf32>
  %0 = dovetail.matmul %x, %w : (tensor<2x6x5xf32>, tensor<5x3xf32>) -> tensor<2x6x3xf32>
  // CHECK: dovetail.reduce %[[X]] {axes = array<i64: 0, 2>, kind = #dovetail.reduce_kind<max>} : (tensor<2x6x5xf32>) -> tensor<1x6x1xf32>
  %1 = dovetail.reduce %x {axes = array<i64: 0, 2>, kind = #dovetail.reduce_kind<max>} : (tensor<2x6x5xf32>) -> tensor<1x6x1xf32>
  // CHECK: dovetail.moments %[[H]] {axes = array<i64: 1>} : (tensor<2x6x5xf16>) -> (tensor<2x1x5xf32>, tensor<2x1x5xf32>, tensor<2x1x5xf32>)
  %2:3 = dovetail.moments %h {axes = array<i64: 1>} : (tensor<2x6x5xf16>) -> (tensor<2x1x5xf32>, tensor<2x1x5xf32>, tensor<2x1x5xf32>)
  // CHECK: %[[C:.*]], %[[M:.*]], %[[D:.*]] = dovetail.moments %[[H]] {axes = array<i64: 0, 1>, restarts = [array<i64>, array<i64: 2, 3>]} : (tensor<2x6x5xf16>) -> (tensor<1x3x5xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>)
  %parts:3 = dovetail.moments %h {axes = array<i64: 0, 1>, restarts = [array<i64>, array<i64: 2, 3>]} : (tensor<2x6x5xf16>) -> (tensor<1x3x5xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>)
  // CHECK: dovetail.sum_exp %[[H]] {axes = array<i64: 0, 2>} : (tensor<2x6x5xf16>) -> (tensor<1x6x1xf32>, tensor<1x6x1xf32>)
  %sums:2 = dovetail.sum_exp %h {axes = array<i64: 0, 2>} : (tensor<2x6x5xf16>) -> (tensor<1x6x1xf32>, tensor<1x6x1xf32>)
  // CHECK: dovetail.arg_reduce %[[H]] {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>, last} : (tensor<2x6x5xf16>) -> (tensor<2x1x5xf16>, tensor<2x1x5xi64>)
  %where:2 = dovetail.arg_reduce %h {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>, last} : (tensor<2x6x5xf16>) -> (tensor<2x1x5xf16>, tensor<2x1x5xi64>)
  // CHECK: dovetail.moments %[[C]], %[[M]], %[[D]] {axes = array<i64: 1>}
  %all:3 = dovetail.moments %parts#0, %parts#1, %parts#2 {axes = array<i64: 1>} : (tensor<1x3x5xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x5xf32>, tensor<1x1x5xf32>)
  // CHECK: dovetail.softmax %[[X]] {axis = 1 : i64, log} : (tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  %3 = dovetail.softmax %x {axis = 1 : i64, log} : (tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  // CHECK: dovetail.layer_norm %[[X]] {axis = 2 : i64, epsilon = 9.99999974E-6 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}
  %4 = dovetail.layer_norm %x {axis = 2 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  // CHECK: dovetail.group_norm %[[X]], %[[S]], %[[S]] {epsilon = 9.99999974E-6 : f32, groups = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 1>}
  %5 = dovetail.group_norm %x, %s, %s {groups = 3 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5xf32>
  return
}

// Types that are cut keep their sharding, which inference does not see.
// CHECK-LABEL: func @sharded
func.func @sharded(%x: tensor<2x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 6}]>>) {
  // CHECK: dovetail.reduce {{.*}} -> tensor<2x1xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 6}]>>) -> tensor<2x1xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>
  return
}
