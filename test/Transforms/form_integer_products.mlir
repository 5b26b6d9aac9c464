// RUN: dovetail-opt %s --dovetail-form-integer-products | FileCheck %s

// Zero points of 0 are not subtracted.
// CHECK-LABEL: func @plain
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %arg0, %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: return %[[P]]
func.func @plain(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %zero = dovetail.constant dense<0> : tensor<i8>
  %z = dovetail.cast %zero {to = i32} : (tensor<i8>) -> tensor<i32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %2 = dovetail.sub %1, %z : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %0, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}

// The sum of (a - x) * (b - y) is that of a * b, less x times the sum of b - y, less y times that of a.
// CHECK-LABEL: func @zero_points
// CHECK-DAG: %[[N:.*]] = dovetail.constant dense<3> : tensor<i32>
// CHECK-DAG: %[[P:.*]] = dovetail.matmul %arg0, %arg1
// CHECK-DAG: %[[WB:.*]] = dovetail.cast %arg1 {to = i32}
// CHECK-DAG: %[[SB:.*]] = dovetail.reduce %[[WB]] {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>}
// CHECK-DAG: %[[NY:.*]] = dovetail.mul %arg3, %[[N]]
// CHECK-DAG: %[[B:.*]] = dovetail.sub %[[SB]], %[[NY]]
// CHECK-DAG: %[[XB:.*]] = dovetail.mul %arg2, %[[B]]
// CHECK-DAG: %[[L:.*]] = dovetail.sub %[[P]], %[[XB]]
// CHECK-DAG: %[[WA:.*]] = dovetail.cast %arg0 {to = i32}
// CHECK-DAG: %[[A:.*]] = dovetail.reduce %[[WA]] {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>}
// CHECK-DAG: %[[YA:.*]] = dovetail.mul %[[A]], %arg3
// CHECK: %[[R:.*]] = dovetail.sub %[[L]], %[[YA]]
// CHECK-NEXT: return %[[R]]
func.func @zero_points(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>, %x: tensor<2x1xi32>, %y: tensor<4xi32>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.sub %0, %x : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %3 = dovetail.sub %2, %y : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
  %4 = dovetail.matmul %1, %3 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %4 : tensor<2x4xi32>
}

// The second factor gets a sign: 128 less of it and of its zero point, which is then 0.
// CHECK-LABEL: func @unsigned
// CHECK: %[[S:.*]] = dovetail.sub %arg1, %{{.*}} : (tensor<3x4xui8>, tensor<ui8>) -> tensor<3x4xui8>
// CHECK-NEXT: %[[B:.*]] = dovetail.bit_cast %[[S]] {to = i8}
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %arg0, %[[B]] : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: return %[[P]]
func.func @unsigned(%a: tensor<2x3xui8>, %b: tensor<3x4xui8>) -> tensor<2x4xi32> {
  %z = dovetail.constant dense<128> : tensor<i32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<3x4xui8>) -> tensor<3x4xi32>
  %2 = dovetail.sub %1, %z : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %0, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}

// A zero point for each term is part of no sum, and other integers are too wide.
// CHECK-LABEL: func @others
// CHECK-NOT: i8>) -> tensor<2x4xi32>
func.func @others(%a: tensor<2x3xi8>, %b: tensor<3x4xi8>, %z: tensor<3x1xi32>, %c: tensor<3x4xi16>) -> (tensor<2x4xi32>, tensor<2x4xi32>) {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %2 = dovetail.sub %1, %z : (tensor<3x4xi32>, tensor<3x1xi32>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %0, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  %4 = dovetail.cast %c {to = i32} : (tensor<3x4xi16>) -> tensor<3x4xi32>
  %5 = dovetail.matmul %0, %4 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3, %5 : tensor<2x4xi32>, tensor<2x4xi32>
}

// What is padded is the zero point before that is subtracted.
// CHECK-LABEL: func @convolution
// CHECK-DAG: %[[X:.*]] = dovetail.pad %arg0, %arg2 {high = array<i64: 0, 0, 2>, low = array<i64: 0, 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<1x2x9xui8>, tensor<ui8>) -> tensor<1x2x12xui8>
// CHECK-DAG: %[[P:.*]] = dovetail.conv %[[X]], %arg1 {dilations = array<i64: 1>, pads_high = array<i64: 0>, pads_low = array<i64: 0>, strides = array<i64: 1>} : (tensor<1x2x12xui8>, tensor<4x2x3xi8>) -> tensor<1x4x10xi32>
// CHECK-DAG: %[[S:.*]] = dovetail.reduce %{{.*}} {axes = array<i64: 1, 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x2x3xi32>) -> tensor<4x1x1xi32>
// CHECK: %[[R:.*]] = dovetail.sub %[[P]], %{{.*}} : (tensor<1x4x10xi32>, tensor<1x4x1xi32>) -> tensor<1x4x10xi32>
// CHECK-NEXT: return %[[R]]
func.func @convolution(%x: tensor<1x2x9xui8>, %w: tensor<4x2x3xi8>, %zero: tensor<ui8>) -> tensor<1x4x10xi32> {
  %z = dovetail.cast %zero {to = i32} : (tensor<ui8>) -> tensor<i32>
  %0 = dovetail.cast %x {to = i32} : (tensor<1x2x9xui8>) -> tensor<1x2x9xi32>
  %1 = dovetail.sub %0, %z : (tensor<1x2x9xi32>, tensor<i32>) -> tensor<1x2x9xi32>
  %2 = dovetail.cast %w {to = i32} : (tensor<4x2x3xi8>) -> tensor<4x2x3xi32>
  %3 = dovetail.conv %1, %2 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 1>, pads_high = array<i64: 2>} : (tensor<1x2x9xi32>, tensor<4x2x3xi32>) -> tensor<1x4x10xi32>
  return %3 : tensor<1x4x10xi32>
}

// Of dequantised factors it is scaled, by a number for each output channel.
// CHECK-LABEL: func @dequantized
// CHECK: %[[T:.*]] = dovetail.transpose %arg1 {permutation = array<i64: 1, 0>} : (tensor<4x3xi8>) -> tensor<3x4xi8>
// CHECK-NEXT: %[[P:.*]] = dovetail.matmul %arg0, %[[T]] : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK: %[[S:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<f32>, tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: %[[F:.*]] = dovetail.cast %[[P]] {to = f32}
// CHECK-NEXT: %[[R:.*]] = dovetail.mul %[[F]], %[[S]] : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @dequantized(%x: tensor<2x3xui8>, %w: tensor<4x3xi8>) -> tensor<2x4xf32> {
  %s = dovetail.constant dense<0.5> : tensor<f32>
  %t = dovetail.constant dense<[[0.25], [0.5], [0.75], [1.0]]> : tensor<4x1xf32>
  %0 = dovetail.cast %x {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %0 {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %1, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.cast %w {to = i32} : (tensor<4x3xi8>) -> tensor<4x3xi32>
  %4 = dovetail.cast %3 {to = f32} : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %5 = dovetail.mul %4, %t : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %6 = dovetail.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %7 = dovetail.matmul %2, %6 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %7 : tensor<2x4xf32>
}

// A scale of 1 is no operation any more, and one cast extends what has no zero point.
// CHECK-LABEL: func @unscaled
// CHECK: %[[P:.*]] = dovetail.matmul %arg0, %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT: %[[R:.*]] = dovetail.cast %[[P]] {to = f32}
// CHECK-NEXT: return %[[R]]
func.func @unscaled(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %0 = dovetail.cast %x {to = f32} : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %1 = dovetail.cast %w {to = f32} : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %2 = dovetail.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// A scale for each term cannot be left out of the sum, nor one that is not constant.
// CHECK-LABEL: func @scaled_terms
// CHECK-COUNT-2: dovetail.matmul %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @scaled_terms(%x: tensor<2x3xui8>, %w: tensor<3x4xi8>, %given: tensor<f32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %s = dovetail.constant dense<0.5> : tensor<f32>
  %t = dovetail.constant dense<[[0.25], [0.5], [0.75]]> : tensor<3x1xf32>
  %0 = dovetail.cast %x {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %0 {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %1, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.cast %w {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %4 = dovetail.cast %3 {to = f32} : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %5 = dovetail.mul %4, %t : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = dovetail.matmul %2, %5 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %7 = dovetail.mul %4, %given : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %8 = dovetail.matmul %2, %7 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %6, %8 : tensor<2x4xf32>, tensor<2x4xf32>
}

// Small constants, which an import has computed, are such integers once more: those that do not fit have a zero point.
// CHECK-LABEL: func @constants
// CHECK-DAG: %[[B:.*]] = dovetail.constant dense<{{\[\[}}-128, 127], [1, 2{{\]\]}}> : tensor<2x2xi8>
// CHECK-DAG: %[[C:.*]] = dovetail.constant dense<{{\[\[}}-128, 127], [-126, -123{{\]\]}}> : tensor<2x2xi8>
// CHECK-DAG: dovetail.matmul %arg0, %[[B]] : (tensor<2x2xui8>, tensor<2x2xi8>) -> tensor<2x2xi32>
// CHECK-DAG: dovetail.matmul %arg0, %[[C]] : (tensor<2x2xui8>, tensor<2x2xi8>) -> tensor<2x2xi32>
// CHECK-DAG: dovetail.matmul %{{.*}}, %{{.*}} : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
func.func @constants(%a: tensor<2x2xui8>) -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %b = dovetail.constant dense<[[-128, 127], [1, 2]]> : tensor<2x2xi32>
  %c = dovetail.constant dense<[[0, 255], [2, 5]]> : tensor<2x2xi32>
  %d = dovetail.constant dense<[[0, 256], [2, 5]]> : tensor<2x2xi32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %1 = dovetail.matmul %0, %b : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  %2 = dovetail.matmul %0, %c : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  %3 = dovetail.matmul %0, %d : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  return %1, %2, %3 : tensor<2x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>
}

// A cast to i8 wraps around: it is no extension of what it is of.
// CHECK-LABEL: func @wraps
// CHECK-NEXT: %[[A:.*]] = dovetail.cast %arg0 {to = i8}
// CHECK-NEXT: %[[B:.*]] = dovetail.bit_cast %[[A]] {to = ui8}
// CHECK: %[[U:.*]] = dovetail.add %[[B]], %{{.*}} : (tensor<2x3xui8>, tensor<ui8>) -> tensor<2x3xui8>
// CHECK: dovetail.matmul %[[U]], %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
func.func @wraps(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %narrow = dovetail.cast %a {to = i8} : (tensor<2x3xui8>) -> tensor<2x3xi8>
  %0 = dovetail.cast %narrow {to = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %2 = dovetail.matmul %0, %1 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %2 : tensor<2x4xi32>
}

// Sums of dequantised numbers that are far from their zero point are no sums in i32.
// CHECK-LABEL: func @far
// CHECK: dovetail.matmul {{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @far(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %zero = dovetail.constant dense<1000000> : tensor<i32>
  %scale = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.sub %0, %zero : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %1 {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %2, %scale : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %5 = dovetail.cast %4 {to = f32} : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %6 = dovetail.mul %5, %scale : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %7 = dovetail.matmul %3, %6 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %7 : tensor<2x4xf32>
}

// A first factor with a sign gets rid of it: 128 more of it and of its zero point.
// CHECK-LABEL: func @signed(
// CHECK: %[[B:.*]] = dovetail.bit_cast %arg0 {to = ui8}
// CHECK: %[[U:.*]] = dovetail.add %[[B]], %{{.*}} : (tensor<2x3xui8>, tensor<ui8>) -> tensor<2x3xui8>
// CHECK: %[[Z:.*]] = dovetail.add %arg2, %{{.*}} : (tensor<2x1xi32>, tensor<i32>) -> tensor<2x1xi32>
// CHECK: %[[P:.*]] = dovetail.matmul %[[U]], %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK: %[[X:.*]] = dovetail.mul %[[Z]], %{{.*}} : (tensor<2x1xi32>, tensor<1x4xi32>) -> tensor<2x4xi32>
// CHECK: dovetail.sub %[[P]], %[[X]]
func.func @signed(%a: tensor<2x3xi8>, %b: tensor<3x4xi8>, %x: tensor<2x1xi32>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xi8>) -> tensor<2x3xi32>
  %1 = dovetail.sub %0, %x : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %1, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}

// Scales whose product f32 does not have, or that are no numbers, are applied one by one.
// CHECK-LABEL: func @scales(
// CHECK: dovetail.matmul {{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @scales(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>) -> tensor<2x4xf32> {
  %large = dovetail.constant dense<1.0e20> : tensor<f32>
  %0 = dovetail.cast %a {to = i32} : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = dovetail.cast %0 {to = f32} : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %1, %large : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %4 = dovetail.cast %3 {to = f32} : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %5 = dovetail.mul %4, %large : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %6 = dovetail.matmul %2, %5 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %6 : tensor<2x4xf32>
}
