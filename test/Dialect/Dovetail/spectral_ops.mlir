// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Transforms of constants fold, as NumPy has them: fft, ifft, rfft, irfft, and pieces of a vector.

// CHECK-LABEL: func.func @transforms
// CHECK-DAG: dense<{{\[\[}}1.000000e+01, 0.000000e+00], [-2.000000e+00, 2.000000e+00], [-2.000000e+00, 0.000000e+00], [-2.000000e+00, -2.000000e+00]]>
// CHECK-DAG: dense<{{\[\[}}2.500000e+00, 0.000000e+00], [-5.000000e-01, -5.000000e-01], [-5.000000e-01, 0.000000e+00], [-5.000000e-01, 5.000000e-01]]>
// CHECK-DAG: dense<{{\[\[}}1.000000e+01, 0.000000e+00], [-2.000000e+00, 2.000000e+00], [-2.000000e+00, 0.000000e+00]]>
// CHECK-DAG: dense<{{\[\[}}1.000000e+00], [2.000000e+00], [3.000000e+00], [4.000000e+00]]>
// CHECK-DAG: dense<{{\[\[}}1, 2, 3], [3, 4, 5]]>
// CHECK-DAG: dense<{{\[\[}}1.000000e+01, 0.000000e+00], [-2.000000e+00, -2.000000e+00], [-2.000000e+00, 0.000000e+00], [-2.000000e+00, 2.000000e+00]]>
// CHECK-DAG: dense<{{\[\[}}4.000000e+00], [8.000000e+00], [1.200000e+01], [1.600000e+01]]>
func.func @transforms() -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<4x1xf32>, tensor<2x3xi64>, tensor<4x2xf32>, tensor<4x1xf32>) {
  %x = dovetail.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %none = dovetail.constant dense<0.0> : tensor<2xf32>
  %roots = dovetail.constant dense<[1.0, 0.0, 0.0, -1.0, -1.0, 0.0]> : tensor<6xf32>
  %s = dovetail.constant dense<[[10.0, 7.0], [-2.0, 2.0], [-2.0, 7.0]]> : tensor<3x2xf32>
  %v = dovetail.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi64>
  %0 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %2 = dovetail.dft %x, %roots {axis = 0 : i64, length = 4 : i64, onesided} : (tensor<4x1xf32>, tensor<6xf32>) -> tensor<3x2xf32>
  %3 = dovetail.dft %s, %roots {axis = 0 : i64, length = 4 : i64, inverse, onesided} : (tensor<3x2xf32>, tensor<6xf32>) -> tensor<4x1xf32>
  %5 = dovetail.dft %x, %none {axis = 0 : i64, length = 4 : i64, inverse, unscaled} : (tensor<4x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %z = dovetail.constant dense<[[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0]]> : tensor<3x2xf32>
  %6 = dovetail.dft %z, %roots {axis = 0 : i64, length = 4 : i64, inverse, onesided, unscaled} : (tensor<3x2xf32>, tensor<6xf32>) -> tensor<4x1xf32>
  %4 = dovetail.frames %v {axis = 0 : i64, length = 3 : i64, step = 2 : i64} : (tensor<6xi64>) -> tensor<2x3xi64>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<3x2xf32>, tensor<4x1xf32>, tensor<2x3xi64>, tensor<4x2xf32>, tensor<4x1xf32>
}

// -----

func.func @factors(%x: tensor<37x2xf32>, %t: tensor<2xf32>) -> tensor<37x2xf32> {
  // expected-error @+2 {{there are no factors of length 37}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 37 : i64} : (tensor<37x2xf32>, tensor<2xf32>) -> tensor<37x2xf32>
  return %0 : tensor<37x2xf32>
}

// -----

func.func @odd(%x: tensor<9x1xf32>, %t: tensor<2xf32>) -> tensor<5x2xf32> {
  // expected-error @+2 {{there are no factors of length 9}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 9 : i64, onesided} : (tensor<9x1xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}

// -----

func.func @parts(%x: tensor<4x3xf32>, %t: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @+2 {{the last dimension has 3 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64} : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @complex_to_one_side(%x: tensor<4x2xf32>, %t: tensor<6xf32>) -> tensor<3x2xf32> {
  // expected-error @+2 {{the last dimension has 2 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64, onesided} : (tensor<4x2xf32>, tensor<6xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @axis(%x: tensor<4x2xf32>, %t: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @+2 {{there is no dimension 1 before the last one}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 1 : i64, length = 2 : i64} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @extent(%x: tensor<5x2xf32>, %t: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @+2 {{dimension 0 has not 4 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64} : (tensor<5x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @table(%x: tensor<4x2xf32>, %t: tensor<3xf32>) -> tensor<4x2xf32> {
  // expected-error @+2 {{has table 'tensor<3xf32>', but needs 2 elements of 'f32'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64} : (tensor<4x2xf32>, tensor<3xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @halves(%x: tensor<4x2xf16>, %t: tensor<2xf16>) -> tensor<4x2xf16> {
  // expected-error @+2 {{elements are neither f32 nor f64}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64} : (tensor<4x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  return %0 : tensor<4x2xf16>
}

// -----

func.func @pieces(%x: tensor<4xf32>) -> tensor<1x5xf32> {
  // expected-error @+2 {{takes pieces of 5 elements, 1 apart, of 4 in dimension 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.frames %x {axis = 0 : i64, length = 5 : i64, step = 1 : i64} : (tensor<4xf32>) -> tensor<1x5xf32>
  return %0 : tensor<1x5xf32>
}

// -----

func.func @unscaled(%x: tensor<4x2xf32>, %t: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @+2 {{is unscaled, but not inverse}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.dft %x, %t {axis = 0 : i64, length = 4 : i64, unscaled} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
