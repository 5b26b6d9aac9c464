// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --mlir-print-op-generic | dovetail-opt | FileCheck %s

// CHECK-LABEL: func @elementwise
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<3xf32>, %[[N:.*]]: tensor<3xui8>, %[[C:.*]]: tensor<2x1xi1>)
func.func @elementwise(%x: tensor<2x3xf32>, %y: tensor<3xf32>, %n: tensor<3xui8>, %c: tensor<2x1xi1>) {
  // CHECK: dovetail.add %[[X]], %[[Y]] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = dovetail.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: dovetail.less %[[X]], %[[Y]] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %1 = dovetail.less %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  // CHECK: dovetail.leaky_relu %[[X]] {alpha = 2.000000e-01 : f32}
  %2 = dovetail.leaky_relu %x {alpha = 0.2 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: dovetail.gelu %[[X]] {approximate = "tanh"}
  %3 = dovetail.gelu %x {approximate = "tanh"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: dovetail.cast %[[X]] {to = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  %4 = dovetail.cast %x {to = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  // CHECK: dovetail.mod %[[N]], %[[N]] {fmod = 1 : si64}
  %5 = dovetail.mod %n, %n {fmod = 1 : si64} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  // CHECK: dovetail.bit_shift %[[N]], %[[N]] {direction = "LEFT"}
  %6 = dovetail.bit_shift %n, %n {direction = "LEFT"} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  // CHECK: dovetail.select %[[C]], %[[X]], %[[Y]] : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %7 = dovetail.select %c, %x, %y : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: dovetail.pow %[[X]], %[[N]] : (tensor<2x3xf32>, tensor<3xui8>) -> tensor<2x3xf32>
  %8 = dovetail.pow %x, %n : (tensor<2x3xf32>, tensor<3xui8>) -> tensor<2x3xf32>
  return
}
