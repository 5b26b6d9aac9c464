// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// Updates of one place are applied in order; negative indices count from the end.

// CHECK-LABEL: func.func @scatter
// CHECK-DAG: dense<[1, 7, 3, 8]>
// CHECK-DAG: dense<[1, 11, 3, 12]>
// CHECK-DAG: dense<{{\[}}[1, 0, 0], [0, 2, 0]]>
func.func @scatter() -> (tensor<4xi64>, tensor<4xi64>, tensor<2x3xi64>) {
  %data = dovetail.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %indices = dovetail.constant dense<[[1], [-1], [1]]> : tensor<3x1xi64>
  %updates = dovetail.constant dense<[2, 8, 7]> : tensor<3xi64>
  %0 = dovetail.scatter_nd %data, %indices, %updates : (tensor<4xi64>, tensor<3x1xi64>, tensor<3xi64>) -> tensor<4xi64>
  %1 = dovetail.scatter_nd %data, %indices, %updates {reduction = #dovetail.reduce_kind<sum>} : (tensor<4xi64>, tensor<3x1xi64>, tensor<3xi64>) -> tensor<4xi64>
  %zero = dovetail.constant dense<0> : tensor<2x3xi64>
  %at = dovetail.constant dense<[[0], [1]]> : tensor<2x1xi64>
  %values = dovetail.constant dense<[[1], [2]]> : tensor<2x1xi64>
  %2 = dovetail.scatter_elements %zero, %at, %values {axis = 1 : i64} : (tensor<2x3xi64>, tensor<2x1xi64>, tensor<2x1xi64>) -> tensor<2x3xi64>
  return %0, %1, %2 : tensor<4xi64>, tensor<4xi64>, tensor<2x3xi64>
}

// -----

func.func @updates(%data: tensor<4x3xf32>, %indices: tensor<5x1xi64>, %updates: tensor<5x2xf32>) -> tensor<4x3xf32> {
  // expected-error @+2 {{cannot place 'tensor<5x2xf32>' in 'tensor<4x3xf32>' by indices of type 'tensor<5x1xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scatter_nd %data, %indices, %updates : (tensor<4x3xf32>, tensor<5x1xi64>, tensor<5x2xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

func.func @elements(%data: tensor<4x3xf32>, %indices: tensor<5x2xi64>, %updates: tensor<5x2xf32>) -> tensor<4x3xf32> {
  // expected-error @+2 {{cannot place 'tensor<5x2xf32>' in 'tensor<4x3xf32>' by indices of type 'tensor<5x2xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scatter_elements %data, %indices, %updates {axis = 1 : i64} : (tensor<4x3xf32>, tensor<5x2xi64>, tensor<5x2xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

func.func @indices(%data: tensor<4xf32>, %indices: tensor<5x1xf32>, %updates: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{has indices of type 'tensor<5x1xf32>'; they must be integers}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scatter_nd %data, %indices, %updates : (tensor<4xf32>, tensor<5x1xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @k(%x: tensor<4xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
  // expected-error @+2 {{chooses 5 elements of 4 in dimension 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = dovetail.top_k %x {k = 5 : i64, axis = 0 : i64, largest = true} : (tensor<4xf32>) -> (tensor<5xf32>, tensor<5xi64>)
  return %0#0, %0#1 : tensor<5xf32>, tensor<5xi64>
}

// -----

func.func @owner(%data: tensor<4xf32>, %indices: tensor<5x1xi64>, %updates: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{cannot combine by kind owner}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.scatter_nd %data, %indices, %updates {reduction = #dovetail.reduce_kind<owner>} : (tensor<4xf32>, tensor<5x1xi64>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
