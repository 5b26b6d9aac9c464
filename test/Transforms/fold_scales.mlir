// RUN: dovetail-opt %s --dovetail-fold-scales | FileCheck %s

// A batch normalisation after a convolution with a bias.
// CHECK-LABEL: func @batch_norm
// CHECK-SAME: %[[X:.*]]: tensor<1x2x5x5xf32>
// CHECK: %[[W:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<3x2x3x3xf32>, tensor<3x1x1x1xf32>)
// CHECK: %[[CONV:.*]] = dovetail.conv %[[X]], %[[W]]
// CHECK: %[[B:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<3x1x1xf32>, tensor<3x1x1xf32>)
// CHECK: %[[B2:.*]] = dovetail.add %[[B]], %{{.*}} : (tensor<3x1x1xf32>, tensor<3x1x1xf32>)
// CHECK: %[[SUM:.*]] = dovetail.add %[[CONV]], %[[B2]]
// CHECK: return %[[SUM]]
func.func @batch_norm(%x: tensor<1x2x5x5xf32>) -> tensor<1x3x5x5xf32> {
  %w = dovetail.constant dense<0.25> : tensor<3x2x3x3xf32>
  %b = dovetail.constant dense<[[[1.0]], [[2.0]], [[3.0]]]> : tensor<3x1x1xf32>
  %s = dovetail.constant dense<[[[0.5]], [[-1.5]], [[2.5]]]> : tensor<3x1x1xf32>
  %t = dovetail.constant dense<[[[0.1]], [[0.2]], [[0.3]]]> : tensor<3x1x1xf32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x5xf32>
  %1 = dovetail.add %0, %b : (tensor<1x3x5x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x5x5xf32>
  %2 = dovetail.mul %1, %s : (tensor<1x3x5x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x5x5xf32>
  %3 = dovetail.add %2, %t : (tensor<1x3x5x5xf32>, tensor<3x1x1xf32>) -> tensor<1x3x5x5xf32>
  return %3 : tensor<1x3x5x5xf32>
}

// CHECK-LABEL: func @grouped_transposed
// CHECK: dovetail.mul %{{.*}}, %{{.*}} : (tensor<2x2x3x2xf32>, tensor<2x1x3x1xf32>) -> tensor<2x2x3x2xf32>
// CHECK: dovetail.reshape %{{.*}} : (tensor<2x2x3x2xf32>) -> tensor<4x3x2xf32>
// CHECK: %[[CONV:.*]] = dovetail.conv_transpose
// CHECK-NEXT: return %[[CONV]]
func.func @grouped_transposed(%x: tensor<1x4x3xf32>) -> tensor<1x6x6xf32> {
  %w = dovetail.constant dense<[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]], [[1.0, 3.0], [5.0, 7.0], [9.0, 2.0]]]> : tensor<4x3x2xf32>
  %s = dovetail.constant dense<[[[1.5], [2.5], [-3.5], [0.5], [0.25], [8.0]]]> : tensor<1x6x1xf32>
  %0 = dovetail.conv_transpose %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, output_padding = array<i64: 0>, groups = 2 : i64} : (tensor<1x4x3xf32>, tensor<4x3x2xf32>) -> tensor<1x6x6xf32>
  %1 = dovetail.mul %0, %s : (tensor<1x6x6xf32>, tensor<1x6x1xf32>) -> tensor<1x6x6xf32>
  return %1 : tensor<1x6x6xf32>
}

// Columns scale the right matrix; a quotient is folded as a quotient.
// CHECK-LABEL: func @matmul_columns
// CHECK: %[[W:.*]] = dovetail.div %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<1x4xf32>)
// CHECK: %[[Y:.*]] = dovetail.matmul %{{.*}}, %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @matmul_columns(%x: tensor<2x5x3xf32>) -> tensor<2x5x4xf32> {
  %w = dovetail.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 1.0, 2.0, 3.0]]> : tensor<3x4xf32>
  %s = dovetail.constant dense<[1.5, 3.0, -2.0, 0.7]> : tensor<4xf32>
  %0 = dovetail.matmul %x, %w : (tensor<2x5x3xf32>, tensor<3x4xf32>) -> tensor<2x5x4xf32>
  %1 = dovetail.div %0, %s : (tensor<2x5x4xf32>, tensor<4xf32>) -> tensor<2x5x4xf32>
  return %1 : tensor<2x5x4xf32>
}

// Rows scale the left matrix.
// CHECK-LABEL: func @matmul_rows
// CHECK: %[[W:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<2x1xf32>)
// CHECK: %[[Y:.*]] = dovetail.matmul %[[W]], %{{.*}}
// CHECK-NEXT: return %[[Y]]
func.func @matmul_rows(%x: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %w = dovetail.constant dense<[[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]> : tensor<2x3xf32>
  %s = dovetail.constant dense<[[1.5], [3.0]]> : tensor<2x1xf32>
  %0 = dovetail.matmul %w, %x : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = dovetail.mul %s, %0 : (tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// Not for each channel.
// CHECK-LABEL: func @per_column
// CHECK: dovetail.conv
// CHECK-NEXT: dovetail.mul
func.func @per_column(%x: tensor<1x1x2x3xf32>) -> tensor<1x1x2x3xf32> {
  %w = dovetail.constant dense<0.25> : tensor<1x1x1x1xf32>
  %s = dovetail.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x1x2x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x3xf32>
  %1 = dovetail.mul %0, %s : (tensor<1x1x2x3xf32>, tensor<3xf32>) -> tensor<1x1x2x3xf32>
  return %1 : tensor<1x1x2x3xf32>
}

// The product is needed as it is, too.
// CHECK-LABEL: func @two_uses
// CHECK: %[[Y:.*]] = dovetail.matmul
// CHECK-NEXT: dovetail.mul %[[Y]]
func.func @two_uses(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = dovetail.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = dovetail.constant dense<3.0> : tensor<f32>
  %0 = dovetail.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = dovetail.mul %0, %s : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// Such a factor could overflow in the weights.
// CHECK-LABEL: func @huge_factor
// CHECK: dovetail.matmul
// CHECK-NEXT: dovetail.mul
func.func @huge_factor(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = dovetail.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = dovetail.constant dense<1.0e30> : tensor<f32>
  %0 = dovetail.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = dovetail.mul %0, %s : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// A normalisation and a scale that follow no convolution are one product and one sum.
// CHECK-LABEL: func @chain
// CHECK: %[[S:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<2x1xf32>, tensor<2x1xf32>)
// CHECK: %[[Y:.*]] = dovetail.mul %arg0, %[[S]]
// CHECK: %[[B:.*]] = dovetail.mul %{{.*}}, %{{.*}} : (tensor<2x1xf32>, tensor<2x1xf32>)
// CHECK: %[[T:.*]] = dovetail.add %[[B]], %{{.*}} : (tensor<2x1xf32>, tensor<2x1xf32>)
// CHECK: %[[Z:.*]] = dovetail.add %[[Y]], %[[T]]
// CHECK-NEXT: return %[[Z]]
func.func @chain(%arg0: tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %a = dovetail.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %b = dovetail.constant dense<[[0.5], [-1.0]]> : tensor<2x1xf32>
  %c = dovetail.constant dense<[[1.5], [0.5]]> : tensor<2x1xf32>
  %d = dovetail.constant dense<[[7.0], [9.0]]> : tensor<2x1xf32>
  %0 = dovetail.mul %arg0, %a : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  %1 = dovetail.add %0, %b : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  %2 = dovetail.mul %1, %c : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  %3 = dovetail.add %2, %d : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  return %3 : tensor<1x2x3xf32>
}

// A table of positions is not merged with a bias for each column.
// CHECK-LABEL: func @positions
// CHECK: dovetail.matmul
// CHECK-NEXT: dovetail.add
// CHECK-NEXT: dovetail.add
// CHECK-NEXT: return
func.func @positions(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = dovetail.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = dovetail.constant dense<[0.5, -1.0]> : tensor<2xf32>
  %p = dovetail.constant dense<[[1.0, 2.0], [5.0, 6.0]]> : tensor<2x2xf32>
  %0 = dovetail.matmul %arg0, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = dovetail.add %0, %b : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %2 = dovetail.add %1, %p : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// What is constant as a whole is left alone: its factors would take turns for ever.
// CHECK-LABEL: func @alternating
// CHECK: %[[S:.*]] = dovetail.add %arg0, %[[A:.*]] :
// CHECK: %[[P:.*]] = dovetail.mul %[[S]], %[[B:.*]] :
// CHECK: %[[SQUARE:.*]] = dovetail.mul %[[B]], %[[B]] : (tensor<f32>
// CHECK: %[[Q:.*]] = dovetail.mul %[[P]], %[[SQUARE]] :
// CHECK: dovetail.add %[[Q]],
func.func @alternating(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = dovetail.constant dense<1.0> : tensor<f32>
  %b = dovetail.constant dense<0.5> : tensor<f32>
  %0 = dovetail.add %arg0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = dovetail.mul %0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.add %1, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.mul %2, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %4 = dovetail.add %3, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %5 = dovetail.mul %4, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}
