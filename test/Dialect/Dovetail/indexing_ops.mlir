// RUN: dovetail-opt %s --split-input-file --verify-diagnostics --dovetail-fold-constants | FileCheck %s

// The examples of the ONNX specification.

// CHECK-LABEL: func.func @gather_nd
// CHECK-DAG: dense<[0, 3]> : tensor<2xi32>
// CHECK-DAG{LITERAL}: dense<[[2, 3], [4, 5]]> : tensor<2x2xi32>
// CHECK-DAG{LITERAL}: dense<[[6, 7], [0, 1]]> : tensor<2x2xi32>
func.func @gather_nd() -> (tensor<2xi32>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %data = dovetail.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi32>
  %indices = dovetail.constant dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 0 : i64} : (tensor<2x2xi32>, tensor<2x2xi64>) -> tensor<2xi32>
  %cube = dovetail.constant dense<[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]> : tensor<2x2x2xi32>
  %rows = dovetail.constant dense<[[1], [0]]> : tensor<2x1xi64>
  %1 = dovetail.gather_nd %cube, %rows {batch_dims = 1 : i64} : (tensor<2x2x2xi32>, tensor<2x1xi64>) -> tensor<2x2xi32>
  %negative = dovetail.constant dense<[[-1, -1], [-2, 0]]> : tensor<2x2xi64>
  %2 = dovetail.gather_nd %cube, %negative {batch_dims = 0 : i64} : (tensor<2x2x2xi32>, tensor<2x2xi64>) -> tensor<2x2xi32>
  return %0, %1, %2 : tensor<2xi32>, tensor<2x2xi32>, tensor<2x2xi32>
}

// CHECK-LABEL: func.func @tensor_scatter
// CHECK{LITERAL}: dense<[[0, 1, 2, 0], [4, 0, 0, 3]]>
func.func @tensor_scatter() -> tensor<2x4xi64> {
  %data = dovetail.constant dense<0> : tensor<2x4xi64>
  %indices = dovetail.constant dense<[[1, 2], [3, 0]]> : tensor<2x2xi64>
  %updates = dovetail.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %0 = dovetail.tensor_scatter %data, %indices, %updates {axis = 1 : i64} : (tensor<2x4xi64>, tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}

// Two blocks of two elements overlap in one.

// CHECK-LABEL: func.func @col2im
// CHECK{LITERAL}: dense<[[[1, 6, 8, 6]]]>
func.func @col2im() -> tensor<1x1x4xi64> {
  %blocks = dovetail.constant dense<[[[[1, 2, 3], [4, 5, 6]]]]> : tensor<1x1x2x3xi64>
  %0 = dovetail.col2im %blocks {sizes = array<i64: 4>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x2x3xi64>) -> tensor<1x1x4xi64>
  return %0 : tensor<1x1x4xi64>
}

// The second window is moved inside.

// CHECK-LABEL: func.func @resample
// CHECK: dense<[1.500000e+00, 3.750000e+00]>
func.func @resample() -> tensor<2xf32> {
  %x = dovetail.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %weights = dovetail.constant dense<[[0.5, 0.5], [0.25, 0.75]]> : tensor<2x2xf32>
  %starts = dovetail.constant dense<[0, 9]> : tensor<2xi64>
  %0 = dovetail.resample %x, %weights, %starts {axis = 0 : i64} : (tensor<4xf32>, tensor<2x2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Rows change places, and one of them its sign.

// CHECK-LABEL: func.func @eliminate
// CHECK{LITERAL}: dense<[[3.000000e+00, 4.000000e+00], [-0.000000e+00, -2.000000e+00]]>
func.func @eliminate() -> tensor<2x2xf32> {
  %x = dovetail.constant dense<[[0.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = dovetail.eliminate %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @tuples(%data: tensor<4x3xf32>, %indices: tensor<5x3xi64>) -> tensor<5xf32> {
  // expected-error @+2 {{cannot take slices of 'tensor<4x3xf32>' by indices of type 'tensor<5x3xi64>' behind 0 batch dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 0 : i64} : (tensor<4x3xf32>, tensor<5x3xi64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @batch(%data: tensor<4x3xf32>, %indices: tensor<5x1xi64>) -> tensor<5xf32> {
  // expected-error @+2 {{cannot take slices of 'tensor<4x3xf32>' by indices of type 'tensor<5x1xi64>' behind 1 batch dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 1 : i64} : (tensor<4x3xf32>, tensor<5x1xi64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @indices(%data: tensor<4x3xf32>, %indices: tensor<5x1xf32>) -> tensor<5x3xf32> {
  // expected-error @+2 {{has indices of type 'tensor<5x1xf32>'; they must be integers}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 0 : i64} : (tensor<4x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// -----

func.func @nothing(%data: tensor<0x3xf32>, %indices: tensor<5x1xi64>) -> tensor<5x3xf32> {
  // expected-error @+2 {{takes elements from dimension 0 of 'tensor<0x3xf32>', which has none}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.gather_nd %data, %indices {batch_dims = 0 : i64} : (tensor<0x3xf32>, tensor<5x1xi64>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// -----

func.func @axis(%data: tensor<2x4xf32>, %indices: tensor<2x2xi64>, %updates: tensor<2x2xf32>) -> tensor<2x4xf32> {
  // expected-error @+2 {{has axis 0, which is not one of 'tensor<2x4xf32>' after the batch dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.tensor_scatter %data, %indices, %updates {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @updates(%data: tensor<2x4xf32>, %indices: tensor<2x3xi64>, %updates: tensor<2x2xf32>) -> tensor<2x4xf32> {
  // expected-error @+2 {{cannot place 'tensor<2x2xf32>' in 'tensor<2x4xf32>' by indices of type 'tensor<2x3xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.tensor_scatter %data, %indices, %updates {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x3xi64>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @places(%x: tensor<1x1x2x4xf32>) -> tensor<1x1x4xf32> {
  // expected-error @+2 {{has 4 places of blocks along spatial dimension 0, but 3 fit}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.col2im %x {sizes = array<i64: 4>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x2x4xf32>) -> tensor<1x1x4xf32>
  return %0 : tensor<1x1x4xf32>
}

// -----

func.func @rank(%x: tensor<1x1x2xf32>) -> tensor<1x1x4xf32> {
  // expected-error @+2 {{has an operand 'tensor<1x1x2xf32>', but needs numbers of dimensions [N, C, block..., grid...] for 1 sizes}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.col2im %x {sizes = array<i64: 4>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  return %0 : tensor<1x1x4xf32>
}

// -----

func.func @width(%x: tensor<4xf32>, %weights: tensor<2x5xf32>, %starts: tensor<2xi64>) -> tensor<2xf32> {
  // expected-error @+2 {{has windows of 5 elements in dimension 0 of 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.resample %x, %weights, %starts {axis = 0 : i64} : (tensor<4xf32>, tensor<2x5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @weights(%x: tensor<4xf32>, %weights: tensor<2x2xf64>, %starts: tensor<2xi64>) -> tensor<2xf32> {
  // expected-error @+2 {{has weights 'tensor<2x2xf64>' and starts 'tensor<2xi64>' that do not fit 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.resample %x, %weights, %starts {axis = 0 : i64} : (tensor<4xf32>, tensor<2x2xf64>, tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @square(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // expected-error @+2 {{has an operand 'tensor<4x3xf32>', which is not of square matrices}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = dovetail.eliminate %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
