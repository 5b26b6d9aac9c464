// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-fold-pads))' | FileCheck %s --check-prefix=PADS
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-integer-products))' | FileCheck %s --check-prefix=FORMED

// Libraries may take sums of integers that f32 does not hold through f32 where windows reach beyond the border: there is
// nothing for them to pad of 515 terms, but of 514.

// PADS-LABEL: func @padded
// PADS: %[[P:.*]] = dovetail.pad %arg1
// PADS: dovetail.conv %arg0, %arg2 {{.*}}pads_high = array<i64: 2>, pads_low = array<i64: 2>
// PADS: dovetail.conv %[[P]], %arg3 {{.*}}pads_high = array<i64: 0>, pads_low = array<i64: 0>
func.func @padded(%x: tensor<1x257x9xui8>, %y: tensor<1x515x9xui8>, %v: tensor<4x257x2xi8>, %w: tensor<4x515x1xi8>)
    -> (tensor<1x4x12xi32>, tensor<1x4x13xi32>) {
  %0 = dovetail.pad %x {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 2>, mode = #dovetail.pad_mode<constant>} : (tensor<1x257x9xui8>) -> tensor<1x257x13xui8>
  %1 = dovetail.pad %y {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 2>, mode = #dovetail.pad_mode<constant>} : (tensor<1x515x9xui8>) -> tensor<1x515x13xui8>
  %2 = dovetail.conv %0, %v {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x257x13xui8>, tensor<4x257x2xi8>) -> tensor<1x4x12xi32>
  %3 = dovetail.conv %1, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x515x13xui8>, tensor<4x515x1xi8>) -> tensor<1x4x13xi32>
  return %2, %3 : tensor<1x4x12xi32>, tensor<1x4x13xi32>
}

// -----

// FORMED-LABEL: func @extended
// FORMED: dovetail.conv %arg0, %arg2 {{.*}}pads_high = array<i64: 2>, pads_low = array<i64: 2>
// FORMED: %[[P:.*]] = dovetail.pad %arg1
// FORMED: dovetail.conv %[[P]], %arg3 {{.*}}pads_high = array<i64: 0>, pads_low = array<i64: 0>
func.func @extended(%x: tensor<1x257x9xui8>, %y: tensor<1x515x9xui8>, %v: tensor<4x257x2xi8>, %w: tensor<4x515x1xi8>)
    -> (tensor<1x4x12xi32>, tensor<1x4x13xi32>) {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x257x9xui8>) -> tensor<1x257x9xi32>
  %1 = dovetail.cast %v {to = i32} : (tensor<4x257x2xi8>) -> tensor<4x257x2xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 2>} : (tensor<1x257x9xi32>, tensor<4x257x2xi32>) -> tensor<1x4x12xi32>
  %3 = dovetail.cast %y {to = i32} : (tensor<1x515x9xui8>) -> tensor<1x515x9xi32>
  %4 = dovetail.cast %w {to = i32} : (tensor<4x515x1xi8>) -> tensor<4x515x1xi32>
  %5 = dovetail.conv %3, %4 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 2>, pads_high = array<i64: 2>} : (tensor<1x515x9xi32>, tensor<4x515x1xi32>) -> tensor<1x4x13xi32>
  return %2, %5 : tensor<1x4x12xi32>, tensor<1x4x13xi32>
}
