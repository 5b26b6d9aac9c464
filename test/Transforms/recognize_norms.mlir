// RUN: dovetail-opt %s --dovetail-recognize-norms | FileCheck %s

// CHECK-LABEL: func @layer_norm
// CHECK-DAG: %[[S:.*]] = dovetail.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-DAG: %[[B:.*]] = dovetail.constant dense<[5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]>
// CHECK: dovetail.layer_norm %arg0, %[[S]], %[[B]] {axis = 2 : i64, epsilon = 9.99999974E-6 : f32
// CHECK-NEXT: return
func.func @layer_norm(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %n = dovetail.constant dense<0.25> : tensor<f32>
  %two = dovetail.constant dense<2.0> : tensor<f32>
  %eps = dovetail.constant dense<1.0e-5> : tensor<f32>
  %s = dovetail.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %b = dovetail.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = dovetail.reduce %arg0 {axes = array<i64: 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %1 = dovetail.mul %0, %n : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %2 = dovetail.sub %arg0, %1 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %3 = dovetail.pow %2, %two : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %4 = dovetail.reduce %3 {axes = array<i64: 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %5 = dovetail.mul %4, %n : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %6 = dovetail.add %5, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %7 = dovetail.sqrt %6 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %8 = dovetail.div %2, %7 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %9 = dovetail.mul %8, %s : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %10 = dovetail.add %9, %b : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %10 : tensor<2x3x4xf32>
}

// With the square as a product and a reciprocal root, over the last two dimensions.
// CHECK-LABEL: func @layer_norm_of_two
// CHECK: dovetail.layer_norm %arg0 {axis = 1 : i64
// CHECK-NEXT: return
func.func @layer_norm_of_two(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %n = dovetail.constant dense<12.0> : tensor<f32>
  %eps = dovetail.constant dense<1.0e-3> : tensor<f32>
  %0 = dovetail.reduce %arg0 {axes = array<i64: 1, 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
  %1 = dovetail.div %0, %n : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %2 = dovetail.sub %arg0, %1 : (tensor<2x3x4xf32>, tensor<2x1x1xf32>) -> tensor<2x3x4xf32>
  %3 = dovetail.mul %2, %2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %4 = dovetail.reduce %3 {axes = array<i64: 1, 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
  %5 = dovetail.div %4, %n : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %6 = dovetail.add %5, %eps : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %7 = dovetail.sqrt %6 : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %8 = dovetail.reciprocal %7 : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %9 = dovetail.mul %2, %8 : (tensor<2x3x4xf32>, tensor<2x1x1xf32>) -> tensor<2x3x4xf32>
  return %9 : tensor<2x3x4xf32>
}

// Variances by n - 1 are another normalisation.
// CHECK-LABEL: func @unbiased
// CHECK-NOT: dovetail.layer_norm
func.func @unbiased(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %n = dovetail.constant dense<4.0> : tensor<f32>
  %n1 = dovetail.constant dense<3.0> : tensor<f32>
  %eps = dovetail.constant dense<1.0e-3> : tensor<f32>
  %0 = dovetail.reduce %arg0 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %1 = dovetail.div %0, %n : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %2 = dovetail.sub %arg0, %1 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %3 = dovetail.mul %2, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = dovetail.reduce %3 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %5 = dovetail.div %4, %n1 : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %6 = dovetail.add %5, %eps : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %7 = dovetail.sqrt %6 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %8 = dovetail.div %2, %7 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %8 : tensor<2x4xf32>
}

// Over the spatial dimensions of an image, with a scale for each channel.
// CHECK-LABEL: func @instance_norm
// CHECK: dovetail.group_norm %arg0, %{{.*}} {epsilon = 9.99999974E-6 : f32, groups = 2 : i64
// CHECK-SAME: (tensor<1x2x2x3xf32>, tensor<2xf32>)
// CHECK-NEXT: return
func.func @instance_norm(%arg0: tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32> {
  %n = dovetail.constant dense<0.166666672> : tensor<f32>
  %eps = dovetail.constant dense<1.0e-5> : tensor<f32>
  %s = dovetail.constant dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %0 = dovetail.reduce %arg0 {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x2x2x3xf32>) -> tensor<1x2x1x1xf32>
  %1 = dovetail.mul %0, %n : (tensor<1x2x1x1xf32>, tensor<f32>) -> tensor<1x2x1x1xf32>
  %2 = dovetail.sub %arg0, %1 : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %3 = dovetail.mul %2, %2 : (tensor<1x2x2x3xf32>, tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  %4 = dovetail.reduce %3 {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x2x2x3xf32>) -> tensor<1x2x1x1xf32>
  %5 = dovetail.mul %4, %n : (tensor<1x2x1x1xf32>, tensor<f32>) -> tensor<1x2x1x1xf32>
  %6 = dovetail.add %eps, %5 : (tensor<f32>, tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  %7 = dovetail.rsqrt %6 : (tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  %8 = dovetail.mul %7, %2 : (tensor<1x2x1x1xf32>, tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  %9 = dovetail.mul %8, %s : (tensor<1x2x2x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2x3xf32>
  return %9 : tensor<1x2x2x3xf32>
}

// GroupNorm as PyTorch exports it: Reshape, InstanceNormalization with a scale of ones, Reshape, Mul, Add.
// CHECK-LABEL: func @group_norm
// CHECK: dovetail.group_norm %arg0, %{{.*}}, %{{.*}} {epsilon = 9.99999974E-6 : f32, groups = 2 : i64
// CHECK-SAME: (tensor<2x4x2x3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x2x3xf32>
// CHECK-NEXT: return
func.func @group_norm(%arg0: tensor<2x4x2x3xf32>) -> tensor<2x4x2x3xf32> {
  %ones = dovetail.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %zeros = dovetail.constant dense<0.0> : tensor<2xf32>
  %s = dovetail.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>
  %b = dovetail.constant dense<[[[5.0]], [[6.0]], [[7.0]], [[8.0]]]> : tensor<4x1x1xf32>
  %0 = dovetail.reshape %arg0 : (tensor<2x4x2x3xf32>) -> tensor<2x2x12xf32>
  %1 = dovetail.group_norm %0, %ones, %zeros {groups = 2 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x2x12xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2x12xf32>
  %2 = dovetail.reshape %1 : (tensor<2x2x12xf32>) -> tensor<2x4x2x3xf32>
  %3 = dovetail.mul %2, %s : (tensor<2x4x2x3xf32>, tensor<4x1x1xf32>) -> tensor<2x4x2x3xf32>
  %4 = dovetail.add %3, %b : (tensor<2x4x2x3xf32>, tensor<4x1x1xf32>) -> tensor<2x4x2x3xf32>
  return %4 : tensor<2x4x2x3xf32>
}

// The batch merged with the groups.
// CHECK-LABEL: func @group_norm_merged
// CHECK: %[[Y:.*]] = dovetail.group_norm %arg0 {epsilon = 9.99999974E-6 : f32, groups = 2 : i64
// CHECK-SAME: (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: return %[[Y]]
func.func @group_norm_merged(%arg0: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<2x4x3xf32>) -> tensor<1x4x6xf32>
  %1 = dovetail.group_norm %0 {groups = 4 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %2 = dovetail.reshape %1 : (tensor<1x4x6xf32>) -> tensor<2x4x3xf32>
  return %2 : tensor<2x4x3xf32>
}

// A scale for each group holds for all of its channels.
// CHECK-LABEL: func @group_scales
// CHECK: %[[R:.*]] = dovetail.broadcast %{{.*}} : (tensor<2x1xf32>) -> tensor<2x2xf32>
// CHECK: %[[S:.*]] = dovetail.reshape %[[R]] : (tensor<2x2xf32>) -> tensor<4xf32>
// CHECK: dovetail.group_norm %arg0, %[[S]]
func.func @group_scales(%arg0: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %s = dovetail.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = dovetail.reshape %arg0 : (tensor<2x4x3xf32>) -> tensor<2x2x6xf32>
  %1 = dovetail.group_norm %0, %s {groups = 2 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x2x6xf32>, tensor<2xf32>) -> tensor<2x2x6xf32>
  %2 = dovetail.reshape %1 : (tensor<2x2x6xf32>) -> tensor<2x4x3xf32>
  return %2 : tensor<2x4x3xf32>
}

// A scale that differs between the images of a batch has no place in a group norm.
// CHECK-LABEL: func @image_scales
// CHECK: dovetail.reshape
// CHECK: dovetail.group_norm
// CHECK: dovetail.reshape
func.func @image_scales(%arg0: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %s = dovetail.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = dovetail.reshape %arg0 : (tensor<2x4x3xf32>) -> tensor<1x4x6xf32>
  %1 = dovetail.group_norm %0, %s {groups = 4 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x4x6xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  %2 = dovetail.reshape %1 : (tensor<1x4x6xf32>) -> tensor<2x4x3xf32>
  return %2 : tensor<2x4x3xf32>
}

// Groups that cut channels in parts are none.
// CHECK-LABEL: func @parts_of_channels
// CHECK: dovetail.reshape
// CHECK: dovetail.group_norm
// CHECK: dovetail.reshape
func.func @parts_of_channels(%arg0: tensor<1x2x6xf32>) -> tensor<1x2x6xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<1x2x6xf32>) -> tensor<1x3x4xf32>
  %1 = dovetail.group_norm %0 {groups = 3 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %2 = dovetail.reshape %1 : (tensor<1x3x4xf32>) -> tensor<1x2x6xf32>
  return %2 : tensor<1x2x6xf32>
}
