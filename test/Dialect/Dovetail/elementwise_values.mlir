// What ONNX leaves to implementations, or is easy to get wrong, as ONNX Runtime computes it on x86.
// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s

// Halves round to even; the sign of NaN and relu of NaN are NaN.
// CHECK-LABEL: func @rounding
// CHECK-DAG: dense<[-2.000000e+00, -2.000000e+00, -0.000000e+00, 0.000000e+00, 2.000000e+00, 2.000000e+00]>
// CHECK-DAG: dense<[-1.000000e+00, 1.000000e+00, 0x7FC00000]>
// CHECK-DAG: dense<[0.000000e+00, 3.000000e+00, 0x7FC00000]>
func.func @rounding() -> (tensor<6xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0 = dovetail.constant dense<[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]> : tensor<6xf32>
  %1 = dovetail.round %0 : (tensor<6xf32>) -> tensor<6xf32>
  %2 = dovetail.constant dense<[-3.0, 3.0, 0x7FC00000]> : tensor<3xf32>
  %3 = dovetail.sign %2 : (tensor<3xf32>) -> tensor<3xf32>
  %4 = dovetail.relu %2 : (tensor<3xf32>) -> tensor<3xf32>
  return %1, %3, %4 : tensor<6xf32>, tensor<3xf32>, tensor<3xf32>
}

// NaN wins in either place.
// CHECK-LABEL: func @extremes
// CHECK-DAG: dense<[0x7FC00000, 0x7FC00000, 2.000000e+00]>
// CHECK-DAG: dense<[0x7FC00000, 0x7FC00000, 1.000000e+00]>
func.func @extremes() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = dovetail.constant dense<[0x7FC00000, 1.0, 1.0]> : tensor<3xf32>
  %1 = dovetail.constant dense<[1.0, 0x7FC00000, 2.0]> : tensor<3xf32>
  %2 = dovetail.max %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = dovetail.min %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %2, %3 : tensor<3xf32>, tensor<3xf32>
}

// Quotients truncate; remainders have the divisor's sign, or with fmod the dividend's. By zero, which ONNX Runtime refuses, and where the processor
// would trap, there is a result.
// CHECK-LABEL: func @division
// CHECK-DAG: dense<[2, -2, -2, 2, 0, -2147483648]> : tensor<6xi32>
// CHECK-DAG: dense<[1, 2, -2, -1, 0, 0]> : tensor<6xi32>
// CHECK-DAG: dense<[1, -1, 1, -1, 0, 0]> : tensor<6xi32>
// CHECK-DAG: dense<[2, 28, 0, 0]> : tensor<4xui8>
// CHECK-DAG: dense<[1, 4, 9, 0]> : tensor<4xui8>
func.func @division() -> (tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<4xui8>, tensor<4xui8>) {
  %0 = dovetail.constant dense<[7, -7, 7, -7, 5, -2147483648]> : tensor<6xi32>
  %1 = dovetail.constant dense<[3, 3, -3, -3, 0, -1]> : tensor<6xi32>
  %2 = dovetail.div %0, %1 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  %3 = dovetail.mod %0, %1 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  %4 = dovetail.mod %0, %1 {fmod = 1 : si64} : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  %5 = dovetail.constant dense<[7, 200, 9, 5]> : tensor<4xui8>
  %6 = dovetail.constant dense<[3, 7, 200, 0]> : tensor<4xui8>
  %7 = dovetail.div %5, %6 : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %8 = dovetail.mod %5, %6 : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %2, %3, %4, %7, %8 : tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<4xui8>, tensor<4xui8>
}

// CHECK-LABEL: func @float_remainder
// CHECK: dense<[1.000000e+00, -1.000000e+00, 1.000000e+00, -1.000000e+00, 5.000000e+00, 0x{{[7F]FC00000}}]>
func.func @float_remainder() -> tensor<6xf32> {
  %0 = dovetail.constant dense<[7.0, -7.0, 7.0, -7.0, 5.0, 5.0]> : tensor<6xf32>
  %1 = dovetail.constant dense<[3.0, 3.0, -3.0, -3.0, 0x7F800000, 0.0]> : tensor<6xf32>
  %2 = dovetail.mod %0, %1 {fmod = 1 : si64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %2 : tensor<6xf32>
}

// Shifts by the width or more give zero.
// CHECK-LABEL: func @shifts
// CHECK-DAG: dense<[0, 0, -128, 0]> : tensor<4xi8>
// CHECK-DAG: dense<[0, 0, 0, 16]> : tensor<4xui8>
func.func @shifts() -> (tensor<4xi8>, tensor<4xui8>) {
  %0 = dovetail.constant dense<[255, 255, 1, 128]> : tensor<4xui8>
  %1 = dovetail.constant dense<[8, 9, 7, 3]> : tensor<4xui8>
  %2 = dovetail.bit_shift %0, %1 {direction = "LEFT"} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %3 = dovetail.cast %2 {to = i8} : (tensor<4xui8>) -> tensor<4xi8>
  %4 = dovetail.bit_shift %0, %1 {direction = "RIGHT"} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %3, %4 : tensor<4xi8>, tensor<4xui8>
}

// Beyond its range a float has no integer: the least one stands for it.
// CHECK-LABEL: func @casts
// CHECK-DAG: dense<[-2147483648, -2147483648, -1, 1, 300]> : tensor<5xi32>
// CHECK-DAG: dense<[0, 0, -1, 1, 44]> : tensor<5xi8>
// CHECK-DAG: dense<[9223372036854775808, 9223372036854775808, 18446744073709551615, 1, 300]> : tensor<5xui64>
// CHECK-DAG: dense<true> : tensor<5xi1>
// CHECK-DAG: dense<[-1.000000e+00, 0x4B800000]> : tensor<2xf32>
func.func @casts() -> (tensor<5xi32>, tensor<5xi8>, tensor<5xui64>, tensor<5xi1>, tensor<2xf32>) {
  %0 = dovetail.constant dense<[0x7FC00000, 0xFF800000, -1.9, 1.9, 300.7]> : tensor<5xf32>
  %1 = dovetail.cast %0 {to = i32} : (tensor<5xf32>) -> tensor<5xi32>
  %2 = dovetail.cast %0 {to = i8} : (tensor<5xf32>) -> tensor<5xi8>
  %3 = dovetail.cast %0 {to = ui64} : (tensor<5xf32>) -> tensor<5xui64>
  %4 = dovetail.cast %0 {to = i1} : (tensor<5xf32>) -> tensor<5xi1>
  %5 = dovetail.constant dense<[-1, 16777217]> : tensor<2xi32>
  %6 = dovetail.cast %5 {to = f32} : (tensor<2xi32>) -> tensor<2xf32>
  return %1, %2, %3, %4, %6 : tensor<5xi32>, tensor<5xi8>, tensor<5xui64>, tensor<5xi1>, tensor<2xf32>
}

// CHECK-LABEL: func @bits
// CHECK-DAG: dense<[1065353216, -2147483648]> : tensor<2xi32>
// CHECK-DAG: dense<[16256, 32768]> : tensor<2xui16>
// CHECK-DAG: dense<[1, 0]> : tensor<2xui8>
// CHECK-DAG: dense<[true, false]> : tensor<2xi1>
func.func @bits() -> (tensor<2xi32>, tensor<2xui16>, tensor<2xui8>, tensor<2xi1>) {
  %0 = dovetail.constant dense<[1.0, -0.0]> : tensor<2xf32>
  %1 = dovetail.bit_cast %0 {to = i32} : (tensor<2xf32>) -> tensor<2xi32>
  %2 = dovetail.constant dense<[1.0, -0.0]> : tensor<2xbf16>
  %3 = dovetail.bit_cast %2 {to = ui16} : (tensor<2xbf16>) -> tensor<2xui16>
  %4 = dovetail.constant dense<[true, false]> : tensor<2xi1>
  %5 = dovetail.bit_cast %4 {to = ui8} : (tensor<2xi1>) -> tensor<2xui8>
  %6 = dovetail.constant dense<[-2, 0]> : tensor<2xi8>
  %7 = dovetail.bit_cast %6 {to = i1} : (tensor<2xi8>) -> tensor<2xi1>
  return %1, %3, %5, %7 : tensor<2xi32>, tensor<2xui16>, tensor<2xui8>, tensor<2xi1>
}

// CHECK-LABEL: func @powers
// CHECK-DAG: dense<[8, -8, 1, 0, 0, -2147483648, 1, -1, -2147483648, 1]> : tensor<10xi32>
// CHECK-DAG: dense<[8.000000e+00, -8.000000e+00, 4.000000e+00, 0x7F800000]> : tensor<4xf32>
// CHECK-DAG: dense<[11, -8, 3, 0]> : tensor<4xi32>
func.func @powers() -> (tensor<10xi32>, tensor<4xf32>, tensor<4xi32>) {
  %0 = dovetail.constant dense<[2, -2, 0, 3, 2, 2, 1, -1, 0, 7]> : tensor<10xi32>
  %1 = dovetail.constant dense<[3, 3, 0, -1, -1, 40, -5, -3, -1, 0]> : tensor<10xi32>
  %2 = dovetail.pow %0, %1 : (tensor<10xi32>, tensor<10xi32>) -> tensor<10xi32>
  %3 = dovetail.constant dense<[2.0, -2.0, 0.5, 0.0]> : tensor<4xf32>
  %4 = dovetail.constant dense<[3, 3, -2, -1]> : tensor<4xi64>
  %5 = dovetail.pow %3, %4 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %6 = dovetail.constant dense<[2, -2, 9, 3]> : tensor<4xi32>
  %7 = dovetail.constant dense<[3.5, 3.0, 0.5, -1.0]> : tensor<4xf32>
  %8 = dovetail.pow %6, %7 : (tensor<4xi32>, tensor<4xf32>) -> tensor<4xi32>
  return %2, %5, %8 : tensor<10xi32>, tensor<4xf32>, tensor<4xi32>
}

// Far out, where a careless formula gives NaN or infinity.
// CHECK-LABEL: func @saturated
// CHECK-DAG: dense<[0.000000e+00, 1.000000e+00]>
// CHECK-DAG: dense<[3.78{{[0-9]*}}e-44, 1.000000e+02]>
// CHECK-DAG: dense<[-0.000000e+00, 1.000000e+02]>
func.func @saturated() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = dovetail.constant dense<[-100.0, 100.0]> : tensor<2xf32>
  %1 = dovetail.sigmoid %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = dovetail.softplus %0 : (tensor<2xf32>) -> tensor<2xf32>
  %3 = dovetail.hard_swish %0 : (tensor<2xf32>) -> tensor<2xf32>
  return %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
