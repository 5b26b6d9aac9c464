// Narrow weights that a product reads transposed are stored so, with their scales.
// RUN: dovetail-opt %s --dovetail-transpose-constants | FileCheck %s

// Rows of 3 elements, 1 to 6; blocks of two along each row, of which the last is cut off.
// CHECK-LABEL: func @blocks
// CHECK: %[[W:.*]] = dovetail.constant dense_resource<weights{{.*}}> : tensor<3x2xi4>
// CHECK: %[[I:.*]] = dovetail.widen %[[W]] : (tensor<3x2xi4>) -> tensor<3x2xi8>
// CHECK: %[[F:.*]] = dovetail.cast %[[I]] {to = f32} : (tensor<3x2xi8>) -> tensor<3x2xf32>
// CHECK: %[[T:.*]] = dovetail.constant dense_resource<scales{{.*}}> : tensor<2x1x2xi8>
// CHECK: %[[B:.*]] = dovetail.broadcast %[[T]] : (tensor<2x1x2xi8>) -> tensor<2x2x2xi8>
// CHECK: %[[R:.*]] = dovetail.reshape %[[B]] : (tensor<2x2x2xi8>) -> tensor<4x2xi8>
// CHECK: %[[S:.*]] = dovetail.slice %[[R]] {sizes = array<i64: 3, 2>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>}
// CHECK: %[[C:.*]] = dovetail.cast %[[S]] {to = f32} : (tensor<3x2xi8>) -> tensor<3x2xf32>
// CHECK: %[[M:.*]] = dovetail.mul %[[F]], %[[C]]
// CHECK-NOT: dovetail.transpose
// CHECK: dovetail.matmul %{{.*}}, %[[M]]
func.func @blocks(%x: tensor<5x3xf32>) -> tensor<5x2xf32> {
  %w = dovetail.constant dense_resource<weights> : tensor<2x3xi4>
  %i = dovetail.widen %w : (tensor<2x3xi4>) -> tensor<2x3xi8>
  %f = dovetail.cast %i {to = f32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %s = dovetail.constant dense_resource<scales> : tensor<2x2x1xi8>
  %b = dovetail.broadcast %s : (tensor<2x2x1xi8>) -> tensor<2x2x2xi8>
  %r = dovetail.reshape %b : (tensor<2x2x2xi8>) -> tensor<2x4xi8>
  %c = dovetail.slice %r {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x4xi8>) -> tensor<2x3xi8>
  %d = dovetail.cast %c {to = f32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %m = dovetail.mul %f, %d : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %t = dovetail.transpose %m {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %y = dovetail.matmul %x, %t : (tensor<5x3xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}

// Bytes that hold several elements move as they are.
// CHECK-LABEL: func @packed
// CHECK: %[[P:.*]] = dovetail.constant dense_resource<packed{{.*}}> : tensor<2x3xui8>
// CHECK: dovetail.unpack %[[P]] {dim = 0 : i64} : (tensor<2x3xui8>) -> tensor<3x3xui4>
// CHECK-NOT: dovetail.transpose
// CHECK: dovetail.matmul
func.func @packed(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %p = dovetail.constant dense_resource<packed> : tensor<3x2xui8>
  %w = dovetail.unpack %p {dim = 1} : (tensor<3x2xui8>) -> tensor<3x3xui4>
  %i = dovetail.widen %w : (tensor<3x3xui4>) -> tensor<3x3xui8>
  %f = dovetail.cast %i {to = f32} : (tensor<3x3xui8>) -> tensor<3x3xf32>
  %t = dovetail.transpose %f {permutation = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %y = dovetail.matmul %x, %t : (tensor<5x3xf32>, tensor<3x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// What somebody else reads, too, is there in one order only.
// CHECK-LABEL: func @shared
// CHECK: dovetail.transpose
func.func @shared(%x: tensor<5x3xf32>) -> (tensor<5x2xf32>, tensor<2x3xf32>) {
  %w = dovetail.constant dense_resource<weights> : tensor<2x3xi4>
  %i = dovetail.widen %w : (tensor<2x3xi4>) -> tensor<2x3xi8>
  %f = dovetail.cast %i {to = f32} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %t = dovetail.transpose %f {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %y = dovetail.matmul %x, %t : (tensor<5x3xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  return %y, %f : tensor<5x2xf32>, tensor<2x3xf32>
}

// Libraries take wide weights, and integers, in the order that they have.
// CHECK-LABEL: func @wide
// CHECK: dovetail.transpose
// CHECK: dovetail.transpose
func.func @wide(%x: tensor<5x3xf32>, %z: tensor<5x3xui8>) -> (tensor<5x2xf32>, tensor<5x2xi32>) {
  %w = dovetail.constant dense_resource<wide> : tensor<2x3xf32>
  %t = dovetail.transpose %w {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %y = dovetail.matmul %x, %t : (tensor<5x3xf32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  %i = dovetail.constant dense_resource<integers> : tensor<2x3xi8>
  %j = dovetail.transpose %i {permutation = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %k = dovetail.matmul %z, %j : (tensor<5x3xui8>, tensor<3x2xi8>) -> tensor<5x2xi32>
  return %y, %k : tensor<5x2xf32>, tensor<5x2xi32>
}

// Rows of the scales, (7, 8) and (9, 10), become columns.
// CHECK-DAG: weights{{.*}}: "0x40000000010402050306"
// CHECK-DAG: packed{{.*}}: "0x40000000214365030507"
// CHECK-DAG: scales{{.*}}: "0x400000000709080A"
{-#
  dialect_resources: {
    builtin: {
      packed: "0x40000000210343056507",
      weights: "0x01000000010203040506",
      scales: "0x010000000708090A",
      integers: "0x01000000010203040506",
      wide: "0x04000000000000000000000000000000000000000000000000000000"
    }
  }
#-}
