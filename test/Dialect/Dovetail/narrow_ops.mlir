// Conversions of elements that are only stored, computed here as in kernels. Hexadecimal numbers are the bits.
// RUN: dovetail-opt %s --dovetail-fold-constants | FileCheck %s

// All numbers of four bits; NaN and infinities; the smallest and the largest number.
// CHECK-LABEL: func @widen
// CHECK-DAG: dense<[0.000000e+00, 5.000000e-01, 1.000000e+00, 1.500000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 6.000000e+00, -0.000000e+00, -5.000000e-01, -6.000000e+00]> : tensor<11xf32>
// CHECK-DAG: dense<[0.001953125, 1.562500e-02, -4.480000e+02, 0x7FC00000, 0xFFC00000]> : tensor<5xf32>
// CHECK-DAG: dense<[0x7F800000, 0xFF800000, 5.734400e+04, 1.52587891E-5]> : tensor<4xf32>
// CHECK-DAG: dense<[0xFFC00000, 2.400000e+02, 9.765625E-4]> : tensor<3xf32>
// CHECK-DAG: dense<[5.87747175E-39, 1.000000e+00, 1.70141183E+38, 0x7FC00000]> : tensor<4xf32>
// CHECK-DAG: dense<[7, -8, -1]> : tensor<3xi8>
// CHECK-DAG: dense<[1, -2]> : tensor<2xi8>
func.func @widen() -> (tensor<11xf32>, tensor<5xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xi8>, tensor<2xi8>) {
  %0 = dovetail.constant dense<[0x0, 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xF]> : tensor<11xf4E2M1FN>
  %1 = dovetail.widen %0 : (tensor<11xf4E2M1FN>) -> tensor<11xf32>
  %2 = dovetail.constant dense<[0x01, 0x08, 0xFE, 0x7F, 0xFF]> : tensor<5xf8E4M3FN>
  %3 = dovetail.widen %2 : (tensor<5xf8E4M3FN>) -> tensor<5xf32>
  %4 = dovetail.constant dense<[0x7C, 0xFC, 0x7B, 0x01]> : tensor<4xf8E5M2>
  %5 = dovetail.widen %4 : (tensor<4xf8E5M2>) -> tensor<4xf32>
  %6 = dovetail.constant dense<[0x80, 0x7F, 0x01]> : tensor<3xf8E4M3FNUZ>
  %7 = dovetail.widen %6 : (tensor<3xf8E4M3FNUZ>) -> tensor<3xf32>
  %8 = dovetail.constant dense<[0x00, 0x7F, 0xFE, 0xFF]> : tensor<4xf8E8M0FNU>
  %9 = dovetail.widen %8 : (tensor<4xf8E8M0FNU>) -> tensor<4xf32>
  %10 = dovetail.constant dense<[7, -8, -1]> : tensor<3xi4>
  %11 = dovetail.widen %10 : (tensor<3xi4>) -> tensor<3xi8>
  %12 = dovetail.constant dense<[1, -2]> : tensor<2xi2>
  %13 = dovetail.widen %12 : (tensor<2xi2>) -> tensor<2xi8>
  return %1, %3, %5, %7, %9, %11, %13 : tensor<11xf32>, tensor<5xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xi8>, tensor<2xi8>
}

// Ties go to even numbers; what is above the largest number is that number, or else infinity or NaN; f64 is rounded once.
// CHECK-LABEL: func @narrow
// CHECK-DAG: dense<[1.600000e+01, 2.000000e+01, 4.480000e+02, 4.480000e+02, -4.480000e+02, 0x7F]> : tensor<6xf8E4M3FN>
// CHECK-DAG: dense<[1.600000e+01, 2.000000e+01, 4.480000e+02, 0x7F, 0xFF, 0x7F]> : tensor<6xf8E4M3FN>
// CHECK-DAG: dense<[1.600000e+01, 2.000000e+01, 4.480000e+02, 1.024000e+03, 0xFC, 0x7E]> : tensor<6xf8E5M2>
// CHECK-DAG: dense<[0.000000e+00, 0x80]> : tensor<2xf8E5M2FNUZ>
// CHECK-DAG: dense<[1.000000e+00, 1.125000e+00]> : tensor<2xf8E4M3FN>
// CHECK-DAG: dense<[4.000000e+00, 2.000000e+00, 5.877470e-39]> : tensor<3xf8E8M0FNU>
// CHECK-DAG: dense<[2.000000e+00, 2.000000e+00, 0xFF]> : tensor<3xf8E8M0FNU>
// CHECK-DAG: dense<[3, -1]> : tensor<2xi4>
func.func @narrow() -> (tensor<6xf8E4M3FN>, tensor<6xf8E4M3FN>, tensor<6xf8E5M2>, tensor<2xf8E5M2FNUZ>, tensor<2xf8E4M3FN>,
    tensor<3xf8E8M0FNU>, tensor<3xf8E8M0FNU>, tensor<2xi4>) {
  %0 = dovetail.constant dense<[17.0, 19.0, 464.0, 1000.0, 0xFF800000, 0x7FC00000]> : tensor<6xf32>
  %1 = dovetail.narrow %0 {to = f8E4M3FN} : (tensor<6xf32>) -> tensor<6xf8E4M3FN>
  %2 = dovetail.narrow %0 {to = f8E4M3FN, saturate = false} : (tensor<6xf32>) -> tensor<6xf8E4M3FN>
  %3 = dovetail.narrow %0 {to = f8E5M2, saturate = false} : (tensor<6xf32>) -> tensor<6xf8E5M2>
  %4 = dovetail.constant dense<[-1.0e-10, 0x7FC00000]> : tensor<2xf32>
  %5 = dovetail.narrow %4 {to = f8E5M2FNUZ} : (tensor<2xf32>) -> tensor<2xf8E5M2FNUZ>
  %6 = dovetail.constant dense<[1.0625, 1.0625000000000002]> : tensor<2xf64>
  %7 = dovetail.narrow %6 {to = f8E4M3FN} : (tensor<2xf64>) -> tensor<2xf8E4M3FN>
  %8 = dovetail.constant dense<[2.5, 2.0, 0.0]> : tensor<3xf32>
  %9 = dovetail.narrow %8 {to = f8E8M0FNU} : (tensor<3xf32>) -> tensor<3xf8E8M0FNU>
  %10 = dovetail.narrow %8 {to = f8E8M0FNU, saturate = false, round_mode = "nearest"} : (tensor<3xf32>) -> tensor<3xf8E8M0FNU>
  %11 = dovetail.constant dense<[19, -1]> : tensor<2xi8>
  %12 = dovetail.narrow %11 {to = i4} : (tensor<2xi8>) -> tensor<2xi4>
  return %1, %2, %3, %5, %7, %9, %10, %12 : tensor<6xf8E4M3FN>, tensor<6xf8E4M3FN>, tensor<6xf8E5M2>, tensor<2xf8E5M2FNUZ>,
    tensor<2xf8E4M3FN>, tensor<3xf8E8M0FNU>, tensor<3xf8E8M0FNU>, tensor<2xi4>
}

// What is only moved stays as it is.
// CHECK-LABEL: func @move
// CHECK-DAG: dense<{{\[\[}}1, 3], [2, -4]]> : tensor<2x2xi4>
// CHECK-DAG: dense<[0x7E, 0.000000e+00]> : tensor<2xf8E5M2>
func.func @move() -> (tensor<2x2xi4>, tensor<2xf8E5M2>) {
  %0 = dovetail.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi4>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<2x2xi4>) -> tensor<2x2xi4>
  %2 = dovetail.constant dense<[0x7E]> : tensor<1xf8E5M2>
  %3 = dovetail.pad %2 {low = array<i64: 0>, high = array<i64: 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1xf8E5M2>) -> tensor<2xf8E5M2>
  return %1, %3 : tensor<2x2xi4>, tensor<2xf8E5M2>
}

// Bytes of rows 0 and 1, and of row 2 alone; the first row has the low bits.
// CHECK-LABEL: func @unpack
// CHECK: dense<{{\[\[}}1, 2], [-1, -2], [4, 5]]> : tensor<3x2xi4>
func.func @unpack() -> tensor<3x2xi4> {
  %0 = dovetail.constant dense<[[0xF1, 0xE2], [0x04, 0x05]]> : tensor<2x2xui8>
  %1 = dovetail.unpack %0 {dim = 0 : i64} : (tensor<2x2xui8>) -> tensor<3x2xi4>
  return %1 : tensor<3x2xi4>
}
