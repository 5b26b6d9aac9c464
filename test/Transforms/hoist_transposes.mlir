// RUN: dovetail-opt %s --dovetail-simplify-shapes --split-input-file | FileCheck %s
// RUN: dovetail-opt %s --dovetail-simplify-shapes --dovetail-simplify-shapes --split-input-file | FileCheck %s

// A residual stream whose first value is read transposed alone, but for the sum, is added up in that order. Who reads
// the sum in the other order reads it transposed.
// CHECK-LABEL: func @residual
// CHECK-DAG: %[[A:.*]] = dovetail.relu %arg0
// CHECK-DAG: %[[T:.*]] = dovetail.transpose %[[A]] {permutation = array<i64: 0, 2, 1>}
// CHECK-DAG: %[[B:.*]] = dovetail.transpose %arg1 {permutation = array<i64: 0, 2, 1>}
// CHECK-DAG: %[[C:.*]] = dovetail.softmax %[[T]]
// CHECK-DAG: %[[S:.*]] = dovetail.add %[[T]], %[[B]] : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
// CHECK-DAG: %[[R:.*]] = dovetail.transpose %[[S]] {permutation = array<i64: 0, 2, 1>}
// CHECK-DAG: %[[M:.*]] = dovetail.mul %[[R]], %arg1
// CHECK: return %[[C]], %[[S]], %[[M]]
func.func @residual(%arg0: tensor<2x3x5xf32>, %arg1: tensor<2x3x5xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x3x5xf32>) {
  %0 = dovetail.relu %arg0 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %1 = dovetail.add %0, %arg1 : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %2 = dovetail.mul %1, %arg1 : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %3 = dovetail.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  %4 = dovetail.softmax %3 {axis = 2 : i64} : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %5 = dovetail.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  return %4, %5, %2 : tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x3x5xf32>
}

// -----

// Constants are transposed for it.
// CHECK-LABEL: func @residual_constant
// CHECK-DAG: %[[T:.*]] = dovetail.transpose %arg0 {permutation = array<i64: 1, 0>}
// CHECK-DAG: %[[C:.*]] = dovetail.constant dense<2.000000e+00> : tensor<1x3xf32>
// CHECK-DAG: dovetail.add %[[T]], %[[C]] : (tensor<5x3xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
func.func @residual_constant(%arg0: tensor<3x5xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>) {
  %c = dovetail.constant dense<2.0> : tensor<3x1xf32>
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %1 = dovetail.add %arg0, %c : (tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x5xf32>
  %2 = dovetail.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  return %0, %2 : tensor<5x3xf32>, tensor<5x3xf32>
}

// -----

// It stays where both orders are needed: of the operand, or of the sum by what is not elementwise, and where two
// operands would have to be transposed.
// CHECK-LABEL: func @no_residual
// CHECK: dovetail.add %arg0, %arg1 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK: dovetail.mul %arg2, %arg1 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK: dovetail.select %arg5, %arg3, %arg4 : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
func.func @no_residual(%arg0: tensor<3x5xf32>, %arg1: tensor<3x5xf32>, %arg2: tensor<3x5xf32>, %arg3: tensor<3x5xf32>, %arg4: tensor<3x5xf32>, %arg5: tensor<3x5xi1>) -> (tensor<5x3xf32>, tensor<5x3xf32>, tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>) {
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %1 = dovetail.add %arg0, %arg1 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = dovetail.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %3 = dovetail.softmax %arg0 {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %4 = dovetail.transpose %arg2 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %5 = dovetail.mul %arg2, %arg1 : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %6 = dovetail.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %7 = dovetail.softmax %5 {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %8 = dovetail.transpose %arg3 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %9 = dovetail.select %arg5, %arg3, %arg4 : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %10 = dovetail.transpose %9 {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  return %0, %2, %3, %4, %6, %7, %8, %10 : tensor<5x3xf32>, tensor<5x3xf32>, tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<3x5xf32>, tensor<5x3xf32>, tensor<5x3xf32>
}
