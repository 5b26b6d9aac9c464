// RUN: dovetail-opt %s --dovetail-form-float-products | FileCheck %s

// Zero points are subtracted before.
// CHECK-LABEL: func @zero_points
// CHECK: %[[D:.*]] = dovetail.sub
// CHECK: %[[A:.*]] = dovetail.cast %[[D]] {to = f32}
// CHECK: %[[P:.*]] = dovetail.matmul %[[A]], {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: dovetail.cast %[[P]] {to = i32}
func.func @zero_points(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>, %z: tensor<2x1xui8>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %z {to = i32} : (tensor<2x1xui8>) -> tensor<2x1xi32>
  %2 = dovetail.sub %0, %1 : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  %3 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %4 = dovetail.matmul %2, %3 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %4 : tensor<2x4xi32>
}

// A zero point that may be any number leaves no bound.
// CHECK-LABEL: func @unknown
// CHECK: dovetail.matmul {{.*}} -> tensor<2x4xi32>
func.func @unknown(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>, %z: tensor<i32>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.sub %0, %z : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %1, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}

// Windows of 3 x 3 are two of their rows and the third: in f32 they may be computed in another way, which rounds. What
// the third reads begins a row later, where there is no padding.
// CHECK-LABEL: func @windows
// CHECK: %[[X:.*]] = dovetail.cast %{{.*}} {to = f32} : (tensor<1x3x6x6xi32>)
// CHECK: slice %{{.*}} {sizes = array<i64: 4, 3, 2, 3>, starts = array<i64: 0, 0, 0, 0>
// CHECK: dovetail.conv %[[X]], {{.*}}pads_high = array<i64: 0, 1>, pads_low = array<i64: 1, 1>{{.*}} -> tensor<1x4x6x6xf32>
// CHECK: slice %{{.*}} {sizes = array<i64: 1, 3, 5, 6>, starts = array<i64: 0, 0, 1, 0>
// CHECK: slice %{{.*}} {sizes = array<i64: 4, 3, 1, 3>, starts = array<i64: 0, 0, 2, 0>
// CHECK: dovetail.conv {{.*}}pads_high = array<i64: 1, 1>, pads_low = array<i64: 0, 1>{{.*}} -> tensor<1x4x6x6xf32>
// CHECK: dovetail.add {{.*}} -> tensor<1x4x6x6xi32>
func.func @windows(%x: tensor<1x3x6x6xui8>, %w: tensor<4x3x3x3xi8>) -> tensor<1x4x6x6xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x3x6x6xui8>) -> tensor<1x3x6x6xi32>
  %1 = dovetail.cast %w {to = i32} : (tensor<4x3x3x3xi8>) -> tensor<4x3x3x3xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>}
    : (tensor<1x3x6x6xi32>, tensor<4x3x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %2 : tensor<1x4x6x6xi32>
}

// Nor are three rows of a larger window, though that many terms were exact.
// CHECK-LABEL: func @rows
// CHECK-COUNT-2: dovetail.conv {{.*}}tensor<4x50x2x3xf32>) -> tensor<1x4x6x6xf32>
// CHECK: dovetail.conv {{.*}}tensor<4x50x1x3xf32>) -> tensor<1x4x6x6xf32>
// CHECK-NOT: dovetail.conv
// CHECK: return
func.func @rows(%x: tensor<1x50x10x8xui8>, %w: tensor<4x50x5x3xi8>) -> tensor<1x4x6x6xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x50x10x8xui8>) -> tensor<1x50x10x8xi32>
  %1 = dovetail.cast %w {to = i32} : (tensor<4x50x5x3xi8>) -> tensor<4x50x5x3xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
    : (tensor<1x50x10x8xi32>, tensor<4x50x5x3xi32>) -> tensor<1x4x6x6xi32>
  return %2 : tensor<1x4x6x6xi32>
}

// CHECK-LABEL: func @strides
// CHECK: dovetail.conv {{.*}}pads_high = array<i64: 0, 0>, pads_low = array<i64: 3, 0>{{.*}}tensor<1x114x2x3xf32>) -> tensor<1x1x3x2xf32>
// CHECK: dovetail.conv {{.*}}pads_high = array<i64: 1, 0>, pads_low = array<i64: 0, 0>{{.*}}tensor<1x114x1x3xf32>) -> tensor<1x1x3x2xf32>
func.func @strides(%x: tensor<1x114x5x5xi8>, %w: tensor<1x114x3x3xi8>) -> tensor<1x1x3x2xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x114x5x5xi8>) -> tensor<1x114x5x5xi32>
  %1 = dovetail.cast %w {to = i32} : (tensor<1x114x3x3xi8>) -> tensor<1x114x3x3xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 2, 2>, dilations = array<i64: 2, 1>, pads_low = array<i64: 3, 0>, pads_high = array<i64: 2, 0>}
    : (tensor<1x114x5x5xi32>, tensor<1x114x3x3xi32>) -> tensor<1x1x3x2xi32>
  return %2 : tensor<1x1x3x2xi32>
}

// Other algorithms are for windows without strides alone.
// CHECK-LABEL: func @few_terms
// CHECK: dovetail.conv {{.*}}tensor<2x3x3x3xf32>) -> tensor<1x2x4x3xf32>
// CHECK-NOT: dovetail.conv
// CHECK: return
func.func @few_terms(%x: tensor<1x3x6x7xi8>, %w: tensor<2x3x3x3xi8>) -> tensor<1x2x4x3xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<1x3x6x7xi8>) -> tensor<1x3x6x7xi32>
  %1 = dovetail.cast %w {to = i32} : (tensor<2x3x3x3xi8>) -> tensor<2x3x3x3xi32>
  %2 = dovetail.conv %0, %1 {strides = array<i64: 2, 2>, dilations = array<i64: 2, 1>, pads_low = array<i64: 3, 0>, pads_high = array<i64: 2, 0>}
    : (tensor<1x3x6x7xi32>, tensor<2x3x3x3xi32>) -> tensor<1x2x4x3xi32>
  return %2 : tensor<1x2x4x3xi32>
}

// CHECK-LABEL: func @floats
// CHECK-NEXT: dovetail.matmul %arg0, %arg1
func.func @floats(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = dovetail.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// Moves between a product and its factors change no bound. They stay where they are.
// CHECK-LABEL: func @moved
// CHECK: %[[A0:.*]] = dovetail.transpose %{{.*}} {permutation = array<i64: 1, 0>} : (tensor<3x2xi32>) -> tensor<2x3xi32>
// CHECK: %[[A:.*]] = dovetail.cast %[[A0]] {to = f32}
// CHECK: %[[B:.*]] = dovetail.cast %{{.*}} {to = f32} : (tensor<3x4xi32>) -> tensor<3x4xf32>
// CHECK: dovetail.matmul %[[A]], %[[B]] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @moved(%a: tensor<3x2xui8>, %b: tensor<6x4xi8>) -> tensor<2x4xi32> {
  %zeros = dovetail.constant dense<[1, -2, 3, 4]> : tensor<4xi32>
  %0 = dovetail.cast %a {to = i32} : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x2xi32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<6x4xi8>) -> tensor<6x4xi32>
  %3 = dovetail.slice %2 {starts = array<i64: 1, 0>, sizes = array<i64: 3, 4>, steps = array<i64: 2, 1>} : (tensor<6x4xi32>) -> tensor<3x4xi32>
  %4 = dovetail.sub %3, %zeros : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
  %5 = dovetail.matmul %1, %4 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %5 : tensor<2x4xi32>
}
