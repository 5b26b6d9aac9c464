// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings | FileCheck %s --check-prefix=SPLIT

// The examples of the ONNX specification.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func.func @columns
// CHECK{LITERAL}: dovetail.constant dense<[[1, 1], [4, 3]]>
func.func @columns() -> tensor<2x2xi32> {
  %data = dovetail.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %indices = dovetail.constant dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>
  %0 = dovetail.gather_elements %data, %indices {axis = 1 : si64} : (tensor<2x2xi32>, tensor<2x2xi64>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}

// CHECK-LABEL: func.func @rows
// CHECK{LITERAL}: dovetail.constant dense<[[4, 8, 3], [7, 2, 3]]>
func.func @rows() -> tensor<2x3xi32> {
  %data = dovetail.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %indices = dovetail.constant dense<[[1, 2, 0], [-1, 0, 0]]> : tensor<2x3xi64>
  %0 = dovetail.gather_elements %data, %indices {axis = 0 : si64} : (tensor<3x3xi32>, tensor<2x3xi64>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// A dimension other than the axis stays split.
// SPLIT-LABEL: func.func @split
// SPLIT: dovetail.gather_elements
// SPLIT-SAME: -> tensor<4x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 4}, {}]>>
func.func @split(%data: tensor<4x9xf32> {dovetail.shard = [#dovetail.dim_sharding<{"y" : 0, 1, 4}>, #dovetail.dim_sharding<{}>]}, %indices: tensor<4x3xi64>) -> tensor<4x3xf32> {
  %0 = dovetail.gather_elements %data, %indices {axis = -1 : si64} : (tensor<4x9xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
