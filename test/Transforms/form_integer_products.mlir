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

// Moves between a product and its factors are moves of the integers, wherever they are, and of zero points and scales.
// CHECK-LABEL: func @channels_last
// CHECK-DAG: %[[X:.*]] = dovetail.transpose %arg0 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x2xui8>) -> tensor<1x2x5x6xui8>
// CHECK-DAG: %[[W:.*]] = dovetail.transpose %arg1 {permutation = array<i64: 3, 2, 0, 1>} : (tensor<3x3x2x4xi8>) -> tensor<4x2x3x3xi8>
// CHECK-DAG: dovetail.conv %[[X]], %[[W]] {{.*}} : (tensor<1x2x5x6xui8>, tensor<4x2x3x3xi8>) -> tensor<1x4x3x4xi32>
// CHECK-DAG: dovetail.constant dense<{{\[\[\[\[}}1]], {{\[\[}}-2]], {{\[\[}}3]], {{\[\[}}-4]]]]> : tensor<1x4x1x1xi32>
// CHECK-DAG: dovetail.mul %{{.*}}, %{{.*}} : (tensor<1x1x3x4xi32>, tensor<1x4x1x1xi32>) -> tensor<1x4x3x4xi32>
// CHECK-DAG: %[[T:.*]] = dovetail.constant dense<{{\[\[\[\[}}2.500000e-01]], {{\[\[}}5.000000e-01]], {{\[\[}}7.500000e-01]], {{\[\[}}1.000000e+00]]]]> : tensor<1x4x1x1xf32>
// CHECK-DAG: %[[S:.*]] = dovetail.mul %{{.*}}, %[[T]] : (tensor<f32>, tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
// CHECK: dovetail.mul %{{.*}}, %[[S]] : (tensor<1x4x3x4xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x3x4xf32>
func.func @channels_last(%x: tensor<1x5x6x2xui8>, %w: tensor<3x3x2x4xi8>) -> tensor<1x4x3x4xf32> {
  %zero = dovetail.constant dense<7> : tensor<i32>
  %s = dovetail.constant dense<0.5> : tensor<f32>
  %zeros = dovetail.constant dense<[1, -2, 3, -4]> : tensor<4xi32>
  %t = dovetail.constant dense<[[[0.25, 0.5, 0.75, 1.0]]]> : tensor<1x1x4xf32>
  %0 = dovetail.cast %x {to = i32} : (tensor<1x5x6x2xui8>) -> tensor<1x5x6x2xi32>
  %1 = dovetail.sub %0, %zero : (tensor<1x5x6x2xi32>, tensor<i32>) -> tensor<1x5x6x2xi32>
  %2 = dovetail.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x2xi32>) -> tensor<1x2x5x6xi32>
  %3 = dovetail.cast %2 {to = f32} : (tensor<1x2x5x6xi32>) -> tensor<1x2x5x6xf32>
  %4 = dovetail.mul %3, %s : (tensor<1x2x5x6xf32>, tensor<f32>) -> tensor<1x2x5x6xf32>
  %5 = dovetail.cast %w {to = i32} : (tensor<3x3x2x4xi8>) -> tensor<3x3x2x4xi32>
  %6 = dovetail.sub %5, %zeros : (tensor<3x3x2x4xi32>, tensor<4xi32>) -> tensor<3x3x2x4xi32>
  %7 = dovetail.cast %6 {to = f32} : (tensor<3x3x2x4xi32>) -> tensor<3x3x2x4xf32>
  %8 = dovetail.mul %7, %t : (tensor<3x3x2x4xf32>, tensor<1x1x4xf32>) -> tensor<3x3x2x4xf32>
  %9 = dovetail.transpose %8 {permutation = array<i64: 3, 2, 0, 1>} : (tensor<3x3x2x4xf32>) -> tensor<4x2x3x3xf32>
  %10 = dovetail.conv %4, %9 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>}
    : (tensor<1x2x5x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x4xf32>
  return %10 : tensor<1x4x3x4xf32>
}

// Slices take as many zero points and scales, backwards as well, and a reshape leaves them next to each other.
// CHECK-LABEL: func @parts
// CHECK-DAG: %[[Z:.*]] = dovetail.cast %arg2 {to = i32}
// CHECK-DAG: %[[X0:.*]] = dovetail.reshape %arg0 : (tensor<4x6xui8>) -> tensor<4x2x3xui8>
// CHECK-DAG: %[[X:.*]] = dovetail.slice %[[X0]] {sizes = array<i64: 3, 2, 3>, starts = array<i64: 1, 0, 0>, steps = array<i64: 1, 1, 1>}
// CHECK-DAG: %[[W0:.*]] = dovetail.slice %arg1 {sizes = array<i64: 4, 3>, starts = array<i64: 7, 0>, steps = array<i64: -2, 1>}
// CHECK-DAG: %[[W1:.*]] = dovetail.transpose %[[W0]] {permutation = array<i64: 1, 0>}
// CHECK-DAG: %[[W:.*]] = dovetail.reshape %[[W1]] : (tensor<3x4xi8>) -> tensor<1x3x4xi8>
// CHECK-DAG: %[[Z0:.*]] = dovetail.slice %[[Z]] {sizes = array<i64: 4, 1>, starts = array<i64: 7, 0>, steps = array<i64: -2, 1>}
// CHECK-DAG: %[[Z1:.*]] = dovetail.reshape %[[Z0]] : (tensor<4x1xi32>) -> tensor<1x1x4xi32>
// CHECK-DAG: dovetail.matmul %[[X]], %[[W]] : (tensor<3x2x3xui8>, tensor<1x3x4xi8>) -> tensor<3x2x4xi32>
// CHECK: dovetail.mul %{{.*}}, %[[Z1]] : (tensor<3x2x1xi32>, tensor<1x1x4xi32>) -> tensor<3x2x4xi32>
func.func @parts(%x: tensor<4x6xui8>, %w: tensor<8x3xi8>, %zeros: tensor<8x1xi8>) -> tensor<3x2x4xi32> {
  %0 = dovetail.cast %x {to = i32} : (tensor<4x6xui8>) -> tensor<4x6xi32>
  %1 = dovetail.reshape %0 : (tensor<4x6xi32>) -> tensor<4x2x3xi32>
  %2 = dovetail.slice %1 {starts = array<i64: 1, 0, 0>, sizes = array<i64: 3, 2, 3>, steps = array<i64: 1, 1, 1>} : (tensor<4x2x3xi32>) -> tensor<3x2x3xi32>
  %3 = dovetail.cast %w {to = i32} : (tensor<8x3xi8>) -> tensor<8x3xi32>
  %4 = dovetail.cast %zeros {to = i32} : (tensor<8x1xi8>) -> tensor<8x1xi32>
  %5 = dovetail.sub %3, %4 : (tensor<8x3xi32>, tensor<8x1xi32>) -> tensor<8x3xi32>
  %6 = dovetail.slice %5 {starts = array<i64: 7, 0>, sizes = array<i64: 4, 3>, steps = array<i64: -2, 1>} : (tensor<8x3xi32>) -> tensor<4x3xi32>
  %7 = dovetail.transpose %6 {permutation = array<i64: 1, 0>} : (tensor<4x3xi32>) -> tensor<3x4xi32>
  %8 = dovetail.reshape %7 : (tensor<3x4xi32>) -> tensor<1x3x4xi32>
  %9 = dovetail.matmul %2, %8 : (tensor<3x2x3xi32>, tensor<1x3x4xi32>) -> tensor<3x2x4xi32>
  return %9 : tensor<3x2x4xi32>
}

// Zero points of rows that are known when the program runs are moved with these.
// CHECK-LABEL: func @moved_rows
// CHECK-DAG: %[[A:.*]] = dovetail.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<3x2xui8>) -> tensor<2x3xui8>
// CHECK-DAG: %[[Z:.*]] = dovetail.reshape %{{.*}} : (tensor<2xi32>) -> tensor<2x1xi32>
// CHECK-DAG: dovetail.matmul %[[A]], %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK: dovetail.mul %[[Z]], %{{.*}} : (tensor<2x1xi32>, tensor<1x4xi32>) -> tensor<2x4xi32>
func.func @moved_rows(%a: tensor<3x2xui8>, %b: tensor<3x4xi8>, %z: tensor<2xui8>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<3x2xui8>) -> tensor<3x2xi32>
  %1 = dovetail.cast %z {to = i32} : (tensor<2xui8>) -> tensor<2xi32>
  %2 = dovetail.sub %0, %1 : (tensor<3x2xi32>, tensor<2xi32>) -> tensor<3x2xi32>
  %3 = dovetail.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<3x2xi32>) -> tensor<2x3xi32>
  %4 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %5 = dovetail.matmul %3, %4 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %5 : tensor<2x4xi32>
}

// A reshape that merges channels with others leaves no scale for each channel. Nothing is moved then.
// CHECK-LABEL: func @merged_channels
// CHECK-NOT: dovetail.reshape {{.*}}i8>
// CHECK: dovetail.matmul {{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @merged_channels(%x: tensor<2x3xui8>, %w: tensor<4x3xi8>) -> tensor<2x4xf32> {
  %t = dovetail.constant dense<[[0.25], [0.5], [0.75], [1.0]]> : tensor<4x1xf32>
  %0 = dovetail.cast %x {to = f32} : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %1 = dovetail.cast %w {to = f32} : (tensor<4x3xi8>) -> tensor<4x3xf32>
  %2 = dovetail.mul %1, %t : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %3 = dovetail.reshape %2 : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %4 = dovetail.matmul %0, %3 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// Nor are factors of a product that stays as it is: groups whose weights have zero points.
// CHECK-LABEL: func @moved_groups
// CHECK-NOT: dovetail.transpose {{.*}}i8>
// CHECK: dovetail.conv {{.*}} : (tensor<1x4x9xi32>, tensor<4x2x3xi32>) -> tensor<1x4x7xi32>
func.func @moved_groups(%x: tensor<1x9x4xui8>, %w: tensor<4x2x3xi8>) -> tensor<1x4x7xi32> {
  %zero = dovetail.constant dense<7> : tensor<i32>
  %0 = dovetail.cast %x {to = i32} : (tensor<1x9x4xui8>) -> tensor<1x9x4xi32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<1x9x4xi32>) -> tensor<1x4x9xi32>
  %2 = dovetail.cast %w {to = i32} : (tensor<4x2x3xi8>) -> tensor<4x2x3xi32>
  %3 = dovetail.sub %2, %zero : (tensor<4x2x3xi32>, tensor<i32>) -> tensor<4x2x3xi32>
  %4 = dovetail.conv %1, %3 {strides = array<i64: 1>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, groups = 2 : i64}
    : (tensor<1x4x9xi32>, tensor<4x2x3xi32>) -> tensor<1x4x7xi32>
  return %4 : tensor<1x4x7xi32>
}

// Booleans are integers of 8 bits.
// CHECK-LABEL: func @booleans
// CHECK-NEXT: %[[A:.*]] = dovetail.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<3x2xi1>) -> tensor<2x3xi1>
// CHECK-NEXT: %[[U:.*]] = dovetail.cast %[[A]] {to = ui8}
// CHECK-NEXT: dovetail.matmul %[[U]], %arg1 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
func.func @booleans(%a: tensor<3x2xi1>, %b: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %0 = dovetail.cast %a {to = i32} : (tensor<3x2xi1>) -> tensor<3x2xi32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x2xi32>) -> tensor<2x3xi32>
  %2 = dovetail.cast %b {to = i32} : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %3 = dovetail.matmul %1, %2 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %3 : tensor<2x4xi32>
}
