// RUN: dovetail-opt %s --dovetail-recognize-softmax | FileCheck %s

// CHECK-LABEL: func @softmax
// CHECK-NEXT: dovetail.softmax %arg0 {axis = 1 : i64}
func.func @softmax(%arg0: tensor<2x5x3xf32>) -> tensor<2x5x3xf32> {
  %0 = dovetail.reduce %arg0 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<2x5x3xf32>) -> tensor<2x1x3xf32>
  %1 = dovetail.sub %arg0, %0 : (tensor<2x5x3xf32>, tensor<2x1x3xf32>) -> tensor<2x5x3xf32>
  %2 = dovetail.exp %1 : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %3 = dovetail.reduce %2 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x5x3xf32>) -> tensor<2x1x3xf32>
  %4 = dovetail.div %2, %3 : (tensor<2x5x3xf32>, tensor<2x1x3xf32>) -> tensor<2x5x3xf32>
  return %4 : tensor<2x5x3xf32>
}

// Over different axes it is something else.
// CHECK-LABEL: func @two_axes
// CHECK-NOT: dovetail.softmax
func.func @two_axes(%arg0: tensor<2x5x3xf32>) -> tensor<2x5x3xf32> {
  %0 = dovetail.reduce %arg0 {axes = array<i64: 2>, kind = #dovetail.reduce_kind<max>} : (tensor<2x5x3xf32>) -> tensor<2x5x1xf32>
  %1 = dovetail.sub %arg0, %0 : (tensor<2x5x3xf32>, tensor<2x5x1xf32>) -> tensor<2x5x3xf32>
  %2 = dovetail.exp %1 : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %3 = dovetail.reduce %2 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x5x3xf32>) -> tensor<2x1x3xf32>
  %4 = dovetail.div %2, %3 : (tensor<2x5x3xf32>, tensor<2x1x3xf32>) -> tensor<2x5x3xf32>
  return %4 : tensor<2x5x3xf32>
}
