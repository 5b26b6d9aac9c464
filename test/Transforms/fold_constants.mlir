// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s

// Chains fold from front to back, and what they leave unused goes.
// CHECK-LABEL: func @chain
// CHECK-NEXT: %[[R:.*]] = dovetail.constant dense<[3, 24, 2, 2]> : tensor<4xi64>
// CHECK-NEXT: return %[[R]]
func.func @chain() -> tensor<4xi64> {
  // The shape arithmetic of exporters: Shape, Gather, Div, Concat.
  %shape = dovetail.constant dense<[3, 96, 4, 2]> : tensor<4xi64>
  %zero = dovetail.constant dense<0> : tensor<1xi64>
  %one = dovetail.constant dense<-3> : tensor<1xi32>
  %four = dovetail.constant dense<4> : tensor<i64>
  %n = dovetail.gather %shape, %zero {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %c = dovetail.gather %shape, %one {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi32>) -> tensor<1xi64>
  %group = dovetail.div %c, %four : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %size = dovetail.slice %shape {starts = array<i64: 3>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<4xi64>) -> tensor<1xi64>
  %result = dovetail.concat %n, %group, %size, %size {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  return %result : tensor<4xi64>
}

// Every element type, and an op with a reduction.
// CHECK-LABEL: func @types
// CHECK-DAG: dovetail.constant dense<[true, false, true]> : tensor<3xi1>
// CHECK-DAG: dovetail.constant dense<[255, 4, 0]> : tensor<3xui8>
// CHECK-DAG: dovetail.constant dense<[-1, 4, 0]> : tensor<3xi8>
// CHECK-DAG: dovetail.constant dense<[1.000980e+00, 6.550400e+04]> : tensor<2xf16>
// CHECK-DAG: dovetail.constant dense<[1.000000e+00, 6.553600e+04]> : tensor<2xbf16>
// CHECK-DAG: dovetail.constant dense<{{\[\[}}6.000000e+00], [1.500000e+01]]> : tensor<2x1xf64>
func.func @types() -> (tensor<3xi1>, tensor<3xui8>, tensor<3xi8>, tensor<2xf16>, tensor<2xbf16>, tensor<2x1xf64>) {
  %a = dovetail.constant dense<[-1, 260, 0]> : tensor<3xi32>
  %b = dovetail.constant dense<[true, true, false]> : tensor<3xi1>
  %c = dovetail.constant dense<[false, true, true]> : tensor<3xi1>
  %0 = dovetail.xor %b, %c : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %1 = dovetail.cast %a {to = ui8} : (tensor<3xi32>) -> tensor<3xui8>
  %2 = dovetail.cast %a {to = i8} : (tensor<3xi32>) -> tensor<3xi8>
  %d = dovetail.constant dense<[1.001, 65505.0]> : tensor<2xf32>
  %3 = dovetail.cast %d {to = f16} : (tensor<2xf32>) -> tensor<2xf16>
  %4 = dovetail.cast %d {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
  %e = dovetail.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf64>
  %5 = dovetail.reduce %e {kind = #dovetail.reduce_kind<sum>, axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<2x1xf64>
  return %0, %1, %2, %3, %4, %5 : tensor<3xi1>, tensor<3xui8>, tensor<3xi8>, tensor<2xf16>, tensor<2xbf16>, tensor<2x1xf64>
}

// Constants that are resources are read, and reshaped without a copy.
// CHECK-LABEL: func @resources
// CHECK-DAG: dovetail.constant dense<[false, true]> : tensor<2xi1>
// CHECK-DAG: dovetail.constant dense<[2, -5]> : tensor<2xi16>
// CHECK-DAG: dovetail.constant dense_resource<shorts> : tensor<2x1xi16>
func.func @resources() -> (tensor<2xi1>, tensor<2xi16>, tensor<2x1xi16>) {
  %0 = dovetail.constant dense_resource<bools> : tensor<2xi1>
  %1 = dovetail.not %0 : (tensor<2xi1>) -> tensor<2xi1>
  %2 = dovetail.constant dense_resource<shorts> : tensor<2xi16>
  %3 = dovetail.neg %2 : (tensor<2xi16>) -> tensor<2xi16>
  %4 = dovetail.reshape %2 : (tensor<2xi16>) -> tensor<2x1xi16>
  return %1, %3, %4 : tensor<2xi1>, tensor<2xi16>, tensor<2x1xi16>
}

// No elements, and one for all.
// CHECK-LABEL: func @sizes
// CHECK-DAG: dovetail.constant dense<> : tensor<0x3xf32>
// CHECK-DAG: dovetail.constant dense<2.500000e+00> : tensor<4x4xf32>
func.func @sizes() -> (tensor<0x3xf32>, tensor<4x4xf32>) {
  %0 = dovetail.constant dense<> : tensor<0x3xf32>
  %1 = dovetail.neg %0 : (tensor<0x3xf32>) -> tensor<0x3xf32>
  %2 = dovetail.constant dense<2.5> : tensor<f32>
  %3 = dovetail.broadcast %2 : (tensor<f32>) -> tensor<4x4xf32>
  return %1, %3 : tensor<0x3xf32>, tensor<4x4xf32>
}

// Left alone: an operand that is not constant, a result that is too large.
// CHECK-LABEL: func @left
// CHECK: dovetail.neg
// CHECK: dovetail.broadcast
func.func @left(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<4097xf32>) {
  %0 = dovetail.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = dovetail.constant dense<1.0> : tensor<f32>
  %2 = dovetail.broadcast %1 : (tensor<f32>) -> tensor<4097xf32>
  return %0, %2 : tensor<2xf32>, tensor<4097xf32>
}

// What parts of the keys come to, with the largest score and the sum of weights of each: scores are 0 in the first part,
// 4 and 4 in the second, and nothing but minus infinity in the third.
// CHECK-LABEL: func @attention_parts
// CHECK-NEXT: dovetail.constant dense<{{\[\[\[}}1.000000e+01, 0.000000e+00, 1.000000e+00]], {{\[\[}}5.000000e+01, 4.000000e+00, 2.000000e+00]], {{\[\[}}0.000000e+00, -3.40282347E+38, 0.000000e+00]]]> : tensor<3x1x3xf32>
func.func @attention_parts() -> tensor<3x1x3xf32> {
  %q = dovetail.constant dense<[[2.0, 0.0]]> : tensor<1x2xf32>
  %k = dovetail.constant dense<[[0.0, 1.0], [4.0, 0.0], [4.0, 7.0], [1.0, 1.0]]> : tensor<4x2xf32>
  %v = dovetail.constant dense<[[10.0], [20.0], [30.0], [40.0]]> : tensor<4x1xf32>
  %m = dovetail.constant dense<[0.0, 0.0, 0.0, 0xFF800000]> : tensor<4xf32>
  %0 = dovetail.attention %q, %k, %v mask %m {restarts = array<i64: 1, 3>, scale = 0.5 : f32} : (tensor<1x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>, tensor<4xf32>) -> tensor<3x1x3xf32>
  return %0 : tensor<3x1x3xf32>
}

{-#
  dialect_resources: {
    builtin: {
      bools: "0x010000000100",
      shorts: "0x02000000FEFF0500"
    }
  }
#-}
