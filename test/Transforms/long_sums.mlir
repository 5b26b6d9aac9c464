// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-fold-pads))' | FileCheck %s --check-prefix=PADS
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-integer-products))' | FileCheck %s --check-prefix=FORMED
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-float-products))' | FileCheck %s --check-prefix=FLOATS

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

// -----

// 514 products of 255 and 128 are at most 2^24: f32 has all integers up to that.
// FLOATS-LABEL: func @whole
// FLOATS: %[[D:.*]] = dovetail.sub
// FLOATS-DAG: %[[A:.*]] = dovetail.cast %[[D]] {to = f32}
// FLOATS-DAG: %[[B:.*]] = dovetail.cast %{{.*}} {to = f32} : (tensor<514x4xi32>)
// FLOATS: %[[P:.*]] = dovetail.matmul %[[A]], %[[B]] : (tensor<2x514xf32>, tensor<514x4xf32>) -> tensor<2x4xf32>
// FLOATS-NEXT: %[[I:.*]] = dovetail.cast %[[P]] {to = i32}
// FLOATS-NEXT: return %[[I]]
func.func @whole(%a: tensor<2x514xui8>, %b: tensor<514x4xi8>) -> tensor<2x4xi32> {
  %zero = dovetail.constant dense<17> : tensor<i32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x514xui8>) -> tensor<2x514xi32>
  %1 = dovetail.sub %0, %zero : (tensor<2x514xi32>, tensor<i32>) -> tensor<2x514xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<514x4xi8>) -> tensor<514x4xi32>
  %3 = dovetail.matmul %1, %2 : (tensor<2x514xi32>, tensor<514x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}

// More are added in i32, where they wrap around.
// FLOATS-LABEL: func @parts
// FLOATS: slice %{{.*}} {sizes = array<i64: 2, 272>, starts = array<i64: 0, 0>
// FLOATS: slice %{{.*}} {sizes = array<i64: 272, 4>, starts = array<i64: 0, 0>
// FLOATS: %[[P:.*]] = dovetail.matmul {{.*}} (tensor<2x272xf32>, tensor<272x4xf32>)
// FLOATS-NEXT: %[[A:.*]] = dovetail.cast %[[P]] {to = i32}
// FLOATS: slice %{{.*}} {sizes = array<i64: 2, 243>, starts = array<i64: 0, 272>
// FLOATS: slice %{{.*}} {sizes = array<i64: 243, 4>, starts = array<i64: 272, 0>
// FLOATS: %[[Q:.*]] = dovetail.matmul {{.*}} (tensor<2x243xf32>, tensor<243x4xf32>)
// FLOATS-NEXT: %[[B:.*]] = dovetail.cast %[[Q]] {to = i32}
// FLOATS-NEXT: %[[S:.*]] = dovetail.add %[[A]], %[[B]]
// FLOATS-NEXT: return %[[S]]
func.func @parts(%a: tensor<2x515xui8>, %b: tensor<515x4xi8>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x515xui8>) -> tensor<2x515xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<515x4xi8>) -> tensor<515x4xi32>
  %2 = dovetail.matmul %0, %1 : (tensor<2x515xi32>, tensor<515x4xi32>) -> tensor<2x4xi32>
  return %2 : tensor<2x4xi32>
}

// FLOATS-LABEL: func @channels
// FLOATS: dovetail.conv {{.*}} (tensor<1x304x1x1xf32>, tensor<4x304x1x1xf32>)
// FLOATS: dovetail.conv {{.*}} (tensor<1x296x1x1xf32>, tensor<4x296x1x1xf32>)
// FLOATS: dovetail.add {{.*}} -> tensor<1x4x1x1xi32>
func.func @channels(%x: tensor<1x600x1x1xui8>, %w: tensor<4x600x1x1xi8>) -> tensor<1x4x1x1xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x600x1x1xui8>) -> tensor<1x600x1x1xi32>
  %1 = dovetail.cast %w {to = i32} : (tensor<4x600x1x1xi8>) -> tensor<4x600x1x1xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
    : (tensor<1x600x1x1xi32>, tensor<4x600x1x1xi32>) -> tensor<1x4x1x1xi32>
  return %2 : tensor<1x4x1x1xi32>
}

// Of 17 parts, results would take longer than sums in i32.
// FLOATS-LABEL: func @many
// FLOATS: dovetail.matmul {{.*}} -> tensor<2x4xi32>
func.func @many(%a: tensor<2x8225xui8>, %b: tensor<8225x4xi8>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x8225xui8>) -> tensor<2x8225xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<8225x4xi8>) -> tensor<8225x4xi32>
  %2 = dovetail.matmul %0, %1 : (tensor<2x8225xi32>, tensor<8225x4xi32>) -> tensor<2x4xi32>
  return %2 : tensor<2x4xi32>
}
