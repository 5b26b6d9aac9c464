// RUN: dovetail-opt %s --dovetail-form-attention=min-scores=6 | FileCheck %s
// RUN: dovetail-opt %s --dovetail-form-attention | FileCheck %s --check-prefix=SHORT

// SHORT-NOT: dovetail.attention

// The keys are transposed where that is not undone by how they were made.
// CHECK-LABEL: func @plain
// CHECK-NEXT: %[[K:.*]] = dovetail.transpose %arg1 {permutation = array<i64: 0, 2, 1>}
// CHECK-NEXT: dovetail.attention %arg0, %[[K]], %arg2 {fill = 0.000000e+00 : f32, scale = 1.000000e+00 : f32} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
func.func @plain(%q: tensor<2x3x4xf32>, %k: tensor<2x4x5xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  %s = dovetail.matmul %q, %k : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %p = dovetail.softmax %s {axis = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %0 = dovetail.matmul %p, %v : (tensor<2x3x5xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
  return %0 : tensor<2x3x6xf32>
}

// CHECK-LABEL: func @scale_and_mask
// CHECK-NEXT: dovetail.attention %arg0, %arg1, %arg2 mask %arg3 {fill = 0.000000e+00 : f32, scale = 2.500000e-01 : f32} : (tensor<2x3x4xf32>, tensor<1x5x4xf32>, tensor<1x5x6xf32>, tensor<3x5xf32>) -> tensor<2x3x6xf32>
func.func @scale_and_mask(%q: tensor<2x3x4xf32>, %k: tensor<1x5x4xf32>, %v: tensor<1x5x6xf32>, %m: tensor<3x5xf32>) -> tensor<2x3x6xf32> {
  %t = dovetail.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<1x5x4xf32>) -> tensor<1x4x5xf32>
  %s = dovetail.matmul %q, %t : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32>
  %two = dovetail.constant dense<2.0> : tensor<f32>
  %half = dovetail.constant dense<0.5> : tensor<f32>
  %a = dovetail.div %s, %two : (tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x3x5xf32>
  %b = dovetail.mul %half, %a : (tensor<f32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %c = dovetail.add %m, %b : (tensor<3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %p = dovetail.softmax %c {axis = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %0 = dovetail.matmul %p, %v : (tensor<2x3x5xf32>, tensor<1x5x6xf32>) -> tensor<2x3x6xf32>
  return %0 : tensor<2x3x6xf32>
}

// CHECK-LABEL: func @chosen
// CHECK-NOT: dovetail.not
// CHECK: dovetail.attention %arg0, %arg1, %arg2 mask %arg3 {fill = -1.000000e+09 : f32
// CHECK: %[[NOT:.*]] = dovetail.not %arg3
// CHECK: dovetail.attention %arg0, %arg1, %arg2 mask %[[NOT]] {fill = -1.000000e+09 : f32
func.func @chosen(%q: tensor<3x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x6xf32>, %m: tensor<3x5xi1>) -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %t = dovetail.transpose %k {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %s = dovetail.matmul %q, %t : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %low = dovetail.constant dense<-1.0e+9> : tensor<f32>
  %c = dovetail.select %m, %s, %low : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %p = dovetail.softmax %c {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %0 = dovetail.matmul %p, %v : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  %s2 = dovetail.matmul %q, %t : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %c2 = dovetail.select %m, %low, %s2 : (tensor<3x5xi1>, tensor<f32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %p2 = dovetail.softmax %c2 {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = dovetail.matmul %p2, %v : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  return %0, %1 : tensor<3x6xf32>, tensor<3x6xf32>
}

// Weights or scores that somebody else wants are stored.
// CHECK-LABEL: func @used
// CHECK-NOT: dovetail.attention
func.func @used(%q: tensor<3x4xf32>, %k: tensor<4x5xf32>, %v: tensor<5x6xf32>) -> (tensor<3x6xf32>, tensor<3x5xf32>, tensor<3x6xf32>, tensor<3x5xf32>) {
  %s = dovetail.matmul %q, %k : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p = dovetail.softmax %s {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %0 = dovetail.matmul %p, %v : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  %s2 = dovetail.matmul %q, %k : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %p2 = dovetail.softmax %s2 {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = dovetail.matmul %p2, %v : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  return %0, %p, %1, %s2 : tensor<3x6xf32>, tensor<3x5xf32>, tensor<3x6xf32>, tensor<3x5xf32>
}

// Over another dimension, its logarithm, and in another type it is something else.
// CHECK-LABEL: func @others
// CHECK-NOT: dovetail.attention
func.func @others(%q: tensor<5x4xf32>, %k: tensor<4x5xf32>, %v: tensor<5x6xf32>, %r: tensor<5x4xf16>, %l: tensor<4x5xf16>, %w: tensor<5x6xf16>) -> (tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf16>) {
  %s = dovetail.matmul %q, %k : (tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
  %p = dovetail.softmax %s {axis = 0 : i64} : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %0 = dovetail.matmul %p, %v : (tensor<5x5xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %s2 = dovetail.matmul %q, %k : (tensor<5x4xf32>, tensor<4x5xf32>) -> tensor<5x5xf32>
  %p2 = dovetail.softmax %s2 {axis = 1 : i64, log} : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %1 = dovetail.matmul %p2, %v : (tensor<5x5xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %s3 = dovetail.matmul %r, %l : (tensor<5x4xf16>, tensor<4x5xf16>) -> tensor<5x5xf16>
  %p3 = dovetail.softmax %s3 {axis = 1 : i64} : (tensor<5x5xf16>) -> tensor<5x5xf16>
  %2 = dovetail.matmul %p3, %w : (tensor<5x5xf16>, tensor<5x6xf16>) -> tensor<5x6xf16>
  return %0, %1, %2 : tensor<5x6xf32>, tensor<5x6xf32>, tensor<5x6xf16>
}
