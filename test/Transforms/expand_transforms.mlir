// RUN: dovetail-opt %s --dovetail-expand-transforms | FileCheck %s

// What libraries do as it is stays.

// CHECK-LABEL: func @forward
// CHECK-NEXT: dovetail.dft %arg0, %arg2 {axis = 0 : i64, length = 4 : i64}
// CHECK-NEXT: dovetail.dft %arg1, %arg3 {axis = 0 : i64, length = 4 : i64, onesided}
// CHECK-NEXT: return
func.func @forward(%x: tensor<4x2xf32>, %r: tensor<4x1xf32>, %none: tensor<2xf32>, %roots: tensor<6xf32>) -> (tensor<4x2xf32>, tensor<3x2xf32>) {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = dovetail.dft %r, %roots {axis = 0 : i64, length = 4 : i64, onesided} : (tensor<4x1xf32>, tensor<6xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<3x2xf32>
}

// Real numbers get imaginary parts of zero.

// CHECK-LABEL: func @real
// CHECK-NEXT: %[[X:.*]] = dovetail.pad %arg0 {{.*}}high = array<i64: 0, 1>{{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: dovetail.dft %[[X]], %arg1 {axis = 0 : i64, length = 4 : i64} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return
func.func @real(%x: tensor<4x1xf32>, %none: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// There and back: one product, 1 / (4 * 4), before the last, of the spectrum of real numbers, of which imaginary parts of
// the first and last element do not count.

// CHECK-LABEL: func @inverse
// CHECK-NEXT: %[[FIRST:.*]] = dovetail.dft %arg0, %arg1 {axis = 0 : i64, inverse, length = 4 : i64, unscaled}
// CHECK-NEXT: %[[FACTOR:.*]] = dovetail.constant dense<6.250000e-02> : tensor<f32>
// CHECK-NEXT: %[[SCALED:.*]] = dovetail.mul %[[FIRST]], %[[FACTOR]]
// CHECK-NEXT: %[[ZERO:.*]] = dovetail.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[ENDS:.*]] = dovetail.constant dense<{{\[\[\[}}false, true], [false, false], [false, true]]]> : tensor<1x3x2xi1>
// CHECK-NEXT: %[[CLEARED:.*]] = dovetail.select %[[ENDS]], %[[ZERO]], %[[SCALED]]
// CHECK-NEXT: %[[SECOND:.*]] = dovetail.dft %[[CLEARED]], %arg2 {axis = 1 : i64, inverse, length = 4 : i64, onesided, unscaled}
// CHECK-NEXT: return %[[SECOND]]
func.func @inverse(%x: tensor<4x3x2xf32>, %none: tensor<2xf32>, %roots: tensor<6xf32>) -> tensor<4x4x1xf32> {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse} : (tensor<4x3x2xf32>, tensor<2xf32>) -> tensor<4x3x2xf32>
  %1 = dovetail.dft %0, %roots {axis = 1 : i64, length = 4 : i64, inverse, onesided} : (tensor<4x3x2xf32>, tensor<6xf32>) -> tensor<4x4x1xf32>
  return %1 : tensor<4x4x1xf32>
}

// A product that others read, too, stays where it is.

// CHECK-LABEL: func @shared
// CHECK-NEXT: dovetail.dft {{.*}}unscaled
// CHECK-NEXT: dovetail.constant dense<2.500000e-01>
// CHECK-NEXT: %[[SCALED:.*]] = dovetail.mul
// CHECK-NEXT: dovetail.dft %[[SCALED]], %arg1 {axis = 0 : i64, length = 4 : i64}
// CHECK-NEXT: return %[[SCALED]]
func.func @shared(%x: tensor<4x2xf32>, %none: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = dovetail.dft %0, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}
