// RUN: dovetail-opt %s --dovetail-fold-constants=keep-factors | FileCheck %s
// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s --check-prefix=FOLDED

// What integers are that become a factor is for later passes to see. An import may have extended them.
// CHECK-LABEL: func @factors
// CHECK: dovetail.cast %{{.*}} {to = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
// CHECK: dovetail.sub
// CHECK: dovetail.cast %{{.*}} {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
// CHECK: dovetail.mul
// CHECK: dovetail.transpose
// CHECK: dovetail.cast %{{.*}} {to = f32} : (tensor<3x2xi32>) -> tensor<3x2xf32>
// FOLDED-LABEL: func @factors
// FOLDED-NOT: dovetail.cast
// FOLDED: dovetail.matmul
func.func @factors(%x: tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = dovetail.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>
  %zero = dovetail.constant dense<3> : tensor<i8>
  %s = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.cast %w {to = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %z = dovetail.cast %zero {to = i32} : (tensor<i8>) -> tensor<i32>
  %1 = dovetail.sub %0, %z : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %1 {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %2, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %5 = dovetail.matmul %x, %4 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %v = dovetail.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %6 = dovetail.cast %v {to = f32} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %7 = dovetail.matmul %x, %6 : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %5, %7 : tensor<4x2xf32>, tensor<4x2xf32>
}

// Other integers are converted: what is added to a product, or scales it.
// CHECK-LABEL: func @others
// CHECK-NOT: dovetail.cast
// CHECK: dovetail.mul %{{.*}}, %{{.*}} : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
func.func @others(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %a = dovetail.constant dense<[[1, 2]]> : tensor<1x2xi8>
  %0 = dovetail.cast %a {to = f32} : (tensor<1x2xi8>) -> tensor<1x2xf32>
  %1 = dovetail.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %2 = dovetail.mul %1, %0 : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %3 = dovetail.add %2, %0 : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %3 : tensor<4x2xf32>
}
