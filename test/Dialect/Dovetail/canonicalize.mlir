// RUN: dovetail-opt %s --canonicalize | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: func @same
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @same(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = dovetail.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.reshard %x : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @twice
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: %[[R:.*]] = dovetail.reshape %[[X]] : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %[[R]]
func.func @twice(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = dovetail.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = dovetail.reshape %0 : (tensor<6xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// Once values are cut, the step in between says how.
// CHECK-LABEL: func @cut
// CHECK: dovetail.reshape
// CHECK: dovetail.reshape
func.func @cut(%x: tensor<2x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 2}, {}]>>) -> tensor<2x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 0, 2}, {}]>> {
  %0 = dovetail.reshape %x : (tensor<2x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 1, 2}, {}]>>) -> tensor<6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 6}]>>
  %1 = dovetail.reshape %0 : (tensor<6xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 6}]>>) -> tensor<2x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 0, 2}, {}]>>
  return %1 : tensor<2x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 0, 2}, {}]>>
}

// A constant of any size changes its shape without a copy.
// CHECK-LABEL: func @constant
// CHECK-NEXT: %[[C:.*]] = dovetail.constant dense<2.000000e+00> : tensor<4000000xf32>
// CHECK-NEXT: return %[[C]]
func.func @constant() -> tensor<4000000xf32> {
  %0 = dovetail.constant dense<2.0> : tensor<2000x2000xf32>
  %1 = dovetail.reshape %0 : (tensor<2000x2000xf32>) -> tensor<4000000xf32>
  return %1 : tensor<4000000xf32>
}
