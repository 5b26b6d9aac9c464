// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Positions, ascending, and then zeros, for each line.

// CHECK-LABEL: func.func @compact
// CHECK: dense<{{\[}}[1, 2, 0, 0], [0, 0, 0, 0], [0, 1, 2, 3]]> : tensor<3x4xi64>
func.func @compact() -> tensor<3x4xi64> {
  %mask = dovetail.constant dense<[[false, true, true, false], [false, false, false, false], [true, true, true, true]]> : tensor<3x4xi1>
  %0 = dovetail.compact %mask : (tensor<3x4xi1>) -> tensor<3x4xi64>
  return %0 : tensor<3x4xi64>
}

// -----

// CHECK-LABEL: func.func @clear_tail
// CHECK: dense<{{\[}}[1, 2, 0], [4, 5, 0]]> : tensor<2x3xi32>
func.func @clear_tail() -> tensor<2x3xi32> {
  %x = dovetail.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %count = dovetail.constant dense<2> : tensor<i64>
  %0 = dovetail.clear_tail %x, %count {axis = 1 : i64} : (tensor<2x3xi32>, tensor<i64>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// The first column that differs decides, equal rows stay in order, and what is no number comes last.

// CHECK-LABEL: func.func @sort_rows
// CHECK: dense<[2, 5, 0, 4, 1, 3]> : tensor<6xi64>
func.func @sort_rows() -> tensor<6xi64> {
  %x = dovetail.constant dense<[[1.0, 2.0], [0x7FC00000, 0.0], [-0.0, 9.0], [0x7FC00000, 0.0], [1.0, 0x7FC00000], [0.0, 9.0]]> : tensor<6x2xf32>
  %0 = dovetail.sort_rows %x : (tensor<6x2xf32>) -> tensor<6xi64>
  return %0 : tensor<6xi64>
}

// -----

// Of the first two boxes one overlaps the other by 1/3. The third one has no more than the threshold.

// CHECK-LABEL: func.func @select_boxes
// CHECK-DAG: dense<{{\[\[\[}}1, -1, -1]]]> : tensor<1x1x3xi64>
// CHECK-DAG: dense<{{\[\[\[}}1, 0, -1]]]> : tensor<1x1x3xi64>
func.func @select_boxes() -> (tensor<1x1x3xi64>, tensor<1x1x3xi64>) {
  %boxes = dovetail.constant dense<[[[0.0, 0.0, 1.0, 1.0], [1.0, 1.5, 0.0, 0.5], [5.0, 5.0, 6.0, 6.0]]]> : tensor<1x3x4xf32>
  %scores = dovetail.constant dense<[[[0.8, 0.9, 0.5]]]> : tensor<1x1x3xf32>
  %limit = dovetail.constant dense<3> : tensor<i64>
  %low = dovetail.constant dense<0.25> : tensor<f32>
  %high = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.select_boxes %boxes, %scores, %limit, %low, %high : (tensor<1x3x4xf32>, tensor<1x1x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x1x3xi64>
  %1 = dovetail.select_boxes %boxes, %scores, %limit, %high, %high : (tensor<1x3x4xf32>, tensor<1x1x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x1x3xi64>
  return %0, %1 : tensor<1x1x3xi64>, tensor<1x1x3xi64>
}

// -----

func.func @scalar(%mask: tensor<i1>) -> tensor<i64> {
  // expected-error @+2 {{needs a dimension, but its mask is 'tensor<i1>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.compact %mask : (tensor<i1>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

func.func @axis(%x: tensor<4xf32>, %count: tensor<i64>) -> tensor<4xf32> {
  // expected-error @+2 {{has axis 1, which 'tensor<4xf32>' does not have}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.clear_tail %x, %count {axis = 1 : i64} : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @count(%x: tensor<4xf32>, %count: tensor<1xi64>) -> tensor<4xf32> {
  // expected-error @+2 {{has a count of type 'tensor<1xi64>'; it must be a scalar of i64}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.clear_tail %x, %count {axis = 0 : i64} : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @matrix(%x: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+2 {{needs a matrix, but its operand is 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.sort_rows %x : (tensor<4xf32>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

func.func @boxes(%boxes: tensor<1x3x5xf32>, %scores: tensor<1x1x3xf32>, %limit: tensor<i64>, %overlap: tensor<f32>) -> tensor<1x1x3xi64> {
  // expected-error @+2 {{cannot choose among boxes 'tensor<1x3x5xf32>' by scores 'tensor<1x1x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.select_boxes %boxes, %scores, %limit, %overlap : (tensor<1x3x5xf32>, tensor<1x1x3xf32>, tensor<i64>, tensor<f32>) -> tensor<1x1x3xi64>
  return %0 : tensor<1x1x3xi64>
}

// -----

func.func @limit(%boxes: tensor<1x3x4xf32>, %scores: tensor<1x1x3xf32>, %limit: tensor<1xi64>, %overlap: tensor<f32>) -> tensor<1x1x3xi64> {
  // expected-error @+2 {{needs a scalar of i64 as limit, and scalars as overlap and threshold}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.select_boxes %boxes, %scores, %limit, %overlap : (tensor<1x3x4xf32>, tensor<1x1x3xf32>, tensor<1xi64>, tensor<f32>) -> tensor<1x1x3xi64>
  return %0 : tensor<1x1x3xi64>
}
