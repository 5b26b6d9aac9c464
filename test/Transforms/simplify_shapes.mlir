// RUN: dovetail-opt %s --dovetail-simplify-shapes | FileCheck %s

// CHECK-LABEL: func @identities
// CHECK-NEXT: return %arg0
func.func @identities(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = dovetail.slice %0 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 4>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = dovetail.pad %1 {low = array<i64: 0, 0, 0>, high = array<i64: 0, 0, 0>, mode = #dovetail.pad_mode<reflect>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = dovetail.broadcast %2 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %4 = dovetail.concat %3 {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = dovetail.reshape %4 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %6 = dovetail.reshape %5 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %7 = dovetail.transpose %6 {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %8 = dovetail.transpose %7 {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  return %8 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @resize_of_scale_one
// CHECK-NEXT: return %arg0
func.func @resize_of_scale_one(%arg0: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %0 = dovetail.resize %arg0 {sizes = array<i64: 1, 1, 4, 4>, scales = array<f64: 1.0, 1.0, 1.0, 1.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %0 : tensor<1x1x4x4xf32>
}

// Moving dimensions of extent 1 leaves elements where they are.
// CHECK-LABEL: func @transpose_of_unit
// CHECK-NEXT: dovetail.reshape %arg0 : (tensor<1x3x1x4xf32>) -> tensor<3x1x4x1xf32>
func.func @transpose_of_unit(%arg0: tensor<1x3x1x4xf32>) -> tensor<3x1x4x1xf32> {
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 1, 0, 3, 2>} : (tensor<1x3x1x4xf32>) -> tensor<3x1x4x1xf32>
  return %0 : tensor<3x1x4x1xf32>
}

// CHECK-LABEL: func @slices
// CHECK-NEXT: dovetail.slice %arg0 {sizes = array<i64: 2, 1>, starts = array<i64: 7, 3>, steps = array<i64: -4, 1>}
func.func @slices(%arg0: tensor<10x4xf32>) -> tensor<2x1xf32> {
  %0 = dovetail.slice %arg0 {starts = array<i64: 9, 0>, sizes = array<i64: 5, 4>, steps = array<i64: -2, 1>} : (tensor<10x4xf32>) -> tensor<5x4xf32>
  %1 = dovetail.slice %0 {starts = array<i64: 1, 3>, sizes = array<i64: 2, 1>, steps = array<i64: 2, 5>} : (tensor<5x4xf32>) -> tensor<2x1xf32>
  return %1 : tensor<2x1xf32>
}

// CHECK-LABEL: func @pads
// CHECK-NEXT: %[[P:.*]] = dovetail.pad %arg0 {high = array<i64: 0, 3>, low = array<i64: 1, 1>
// CHECK-NEXT: return %[[P]]
func.func @pads(%arg0: tensor<3x4xf32>) -> tensor<4x8xf32> {
  %0 = dovetail.pad %arg0 {low = array<i64: 0, 1>, high = array<i64: 0, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<3x4xf32>) -> tensor<3x6xf32>
  %1 = dovetail.pad %0 {low = array<i64: 1, 0>, high = array<i64: 0, 2>, mode = #dovetail.pad_mode<constant>} : (tensor<3x6xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// What the first pad crops, the second would bring back; reflecting twice is not reflecting further.
// CHECK-LABEL: func @different_pads
// CHECK-COUNT-4: dovetail.pad
func.func @different_pads(%arg0: tensor<6xf32>) -> (tensor<6xf32>, tensor<8xf32>) {
  %0 = dovetail.pad %arg0 {low = array<i64: -1>, high = array<i64: 0>, mode = #dovetail.pad_mode<constant>} : (tensor<6xf32>) -> tensor<5xf32>
  %1 = dovetail.pad %0 {low = array<i64: 1>, high = array<i64: 0>, mode = #dovetail.pad_mode<constant>} : (tensor<5xf32>) -> tensor<6xf32>
  %2 = dovetail.pad %arg0 {low = array<i64: 1>, high = array<i64: 0>, mode = #dovetail.pad_mode<reflect>} : (tensor<6xf32>) -> tensor<7xf32>
  %3 = dovetail.pad %2 {low = array<i64: 1>, high = array<i64: 0>, mode = #dovetail.pad_mode<reflect>} : (tensor<7xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<6xf32>, tensor<8xf32>
}

// More than 96 inputs are joined in parts, which stay: 49 and 48.
// CHECK-LABEL: func @wide_concat
// CHECK-NEXT: %[[A:.*]] = dovetail.concat {{.*}} -> tensor<98x2xf32>
// CHECK-NEXT: %[[B:.*]] = dovetail.concat {{.*}} -> tensor<96x2xf32>
// CHECK-NEXT: %[[C:.*]] = dovetail.concat %[[A]], %[[B]] {axis = 0 : i64}
// CHECK-NEXT: return %[[C]]
func.func @wide_concat(%arg0: tensor<2x2xf32>) -> tensor<194x2xf32> {
  %0 = dovetail.concat %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0 {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<194x2xf32>
  return %0 : tensor<194x2xf32>
}

// CHECK-LABEL: func @concats
// CHECK-NEXT: %[[C:.*]] = dovetail.concat %arg0, %arg1, %arg0 {axis = 0 : i64}
// CHECK-NEXT: return %[[C]], %arg1
func.func @concats(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) -> (tensor<7xf32>, tensor<3xf32>) {
  %0 = dovetail.concat %arg0, %arg1 {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = dovetail.concat %0, %arg0 {axis = 0 : i64} : (tensor<5xf32>, tensor<2xf32>) -> tensor<7xf32>
  %2 = dovetail.concat %arg0, %arg1, %arg0 {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<7xf32>
  %3 = dovetail.slice %2 {starts = array<i64: 2>, sizes = array<i64: 3>, steps = array<i64: 1>} : (tensor<7xf32>) -> tensor<3xf32>
  return %1, %3 : tensor<7xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @reduce_of_unit
// CHECK-NEXT: dovetail.reduce %arg0 {axes = array<i64: 2>
// CHECK-NEXT: return
func.func @reduce_of_unit(%arg0: tensor<2x1x3xf32>) -> tensor<2x1x1xf32> {
  %0 = dovetail.reduce %arg0 {axes = array<i64: 1, 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x1x3xf32>) -> tensor<2x1x1xf32>
  %1 = dovetail.reduce %0 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  return %1 : tensor<2x1x1xf32>
}

// Circular padding of both dimensions by slices and concatenations.
// CHECK-LABEL: func @circular
// CHECK-NEXT: %[[P:.*]] = dovetail.pad %arg0 {high = array<i64: 2, 0>, low = array<i64: 1, 2>, mode = #dovetail.pad_mode<wrap>}
// CHECK-NEXT: return %[[P]]
func.func @circular(%arg0: tensor<4x3xf32>) -> tensor<7x5xf32> {
  %0 = dovetail.slice %arg0 {starts = array<i64: 3, 0>, sizes = array<i64: 1, 3>, steps = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<1x3xf32>
  %1 = dovetail.slice %arg0 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.concat %0, %arg0, %1 {axis = 0 : i64} : (tensor<1x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<7x3xf32>
  %3 = dovetail.slice %2 {starts = array<i64: 0, 1>, sizes = array<i64: 7, 2>, steps = array<i64: 1, 1>} : (tensor<7x3xf32>) -> tensor<7x2xf32>
  %4 = dovetail.concat %3, %2 {axis = 1 : i64} : (tensor<7x2xf32>, tensor<7x3xf32>) -> tensor<7x5xf32>
  return %4 : tensor<7x5xf32>
}

// The wrong end.
// CHECK-LABEL: func @not_circular
// CHECK: dovetail.concat
func.func @not_circular(%arg0: tensor<4xf32>) -> tensor<5xf32> {
  %0 = dovetail.slice %arg0 {starts = array<i64: 0>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<1xf32>
  %1 = dovetail.concat %0, %arg0 {axis = 0 : i64} : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}

// CHECK-LABEL: func @gathers
// CHECK: %[[A:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1, 2>, starts = array<i64: 2, 0>, steps = array<i64: 1, 1>}
// CHECK: %[[B:.*]] = dovetail.reshape %[[A]] : (tensor<1x2xf32>) -> tensor<2xf32>
// CHECK: %[[C:.*]] = dovetail.slice %arg0 {sizes = array<i64: 2, 2>, starts = array<i64: 2, 0>, steps = array<i64: -2, 1>}
// CHECK: %[[D:.*]] = dovetail.gather
// CHECK: return %[[B]], %[[C]], %[[D]]
func.func @gathers(%arg0: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %last = dovetail.constant dense<-1> : tensor<i64>
  %back = dovetail.constant dense<[2, 0]> : tensor<2xi64>
  %same = dovetail.constant dense<[1, 1]> : tensor<2xi64>
  %0 = dovetail.gather %arg0, %last {axis = 0 : i64} : (tensor<3x2xf32>, tensor<i64>) -> tensor<2xf32>
  %1 = dovetail.gather %arg0, %back {axis = 0 : i64} : (tensor<3x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = dovetail.gather %arg0, %same {axis = 0 : i64} : (tensor<3x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// A channels-last model: transposes meet behind what lies between them.
// CHECK-LABEL: func @channels_last
// CHECK-NOT: dovetail.transpose
// CHECK: dovetail.add %arg0, %{{.*}} : (tensor<1x2x3x4xf32>, tensor<1x2x1x1xf32>)
// CHECK: dovetail.relu
// CHECK: dovetail.slice %{{.*}} {sizes = array<i64: 1, 2, 3, 3>, starts = array<i64: 0, 0, 0, 1>
// CHECK: dovetail.pad %{{.*}} {high = array<i64: 0, 0, 1, 0>, low = array<i64: 0, 0, 0, 2>
// CHECK: dovetail.concat %{{.*}} {axis = 1 : i64}
// CHECK: dovetail.softmax %{{.*}} {axis = 1 : i64}
// CHECK-NOT: dovetail.transpose
// CHECK: return
func.func @channels_last(%arg0: tensor<1x2x3x4xf32>) -> tensor<1x4x4x5xf32> {
  %b = dovetail.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %1 = dovetail.add %0, %b : (tensor<1x3x4x2xf32>, tensor<2xf32>) -> tensor<1x3x4x2xf32>
  %2 = dovetail.relu %1 : (tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
  %3 = dovetail.slice %2 {starts = array<i64: 0, 0, 1, 0>, sizes = array<i64: 1, 3, 3, 2>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x3x4x2xf32>) -> tensor<1x3x3x2xf32>
  %4 = dovetail.pad %3 {low = array<i64: 0, 0, 2, 0>, high = array<i64: 0, 1, 0, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<1x3x3x2xf32>) -> tensor<1x4x5x2xf32>
  %5 = dovetail.concat %4, %4 {axis = 3 : i64} : (tensor<1x4x5x2xf32>, tensor<1x4x5x2xf32>) -> tensor<1x4x5x4xf32>
  %6 = dovetail.softmax %5 {axis = 3 : i64} : (tensor<1x4x5x4xf32>) -> tensor<1x4x5x4xf32>
  %7 = dovetail.transpose %6 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x4xf32>) -> tensor<1x4x4x5xf32>
  return %7 : tensor<1x4x4x5xf32>
}

// A mean over the image, and a residual sum.
// CHECK-LABEL: func @residual
// CHECK-DAG: %[[R:.*]] = dovetail.reduce %arg0 {axes = array<i64: 2, 3>
// CHECK-DAG: %[[S:.*]] = dovetail.add %arg0, %arg1
// CHECK: return %[[S]], %[[R]]
func.func @residual(%arg0: tensor<1x2x3x4xf32>, %arg1: tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x1x1xf32>) {
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %1 = dovetail.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %2 = dovetail.transpose %arg1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %3 = dovetail.add %0, %2 : (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
  %4 = dovetail.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x3x4x2xf32>) -> tensor<1x2x3x4xf32>
  %5 = dovetail.reduce %1 {axes = array<i64: 1, 2>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x3x4x2xf32>) -> tensor<1x1x1x2xf32>
  %6 = dovetail.reshape %5 : (tensor<1x1x1x2xf32>) -> tensor<1x2x1x1xf32>
  return %4, %6 : tensor<1x2x3x4xf32>, tensor<1x2x1x1xf32>
}

// CHECK-LABEL: func @resize_between
// CHECK-NEXT: %[[R:.*]] = dovetail.resize %arg0 {{.*}}scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00>, sizes = array<i64: 1, 2, 4, 9>
// CHECK-NEXT: return %[[R]]
func.func @resize_between(%arg0: tensor<1x2x2x3xf32>) -> tensor<1x2x4x9xf32> {
  %0 = dovetail.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x2x3xf32>) -> tensor<1x2x3x2xf32>
  %1 = dovetail.resize %0 {sizes = array<i64: 1, 4, 9, 2>, scales = array<f64: 1.0, 2.0, 3.0, 1.0>, mode = #dovetail.resize_mode<linear>, coordinates = #dovetail.coordinate_mode<half_pixel>, nearest = #dovetail.nearest_mode<floor>, roi = array<f64>, cubic_coeff_a = -0.75 : f32, extrapolation_value = 0.0 : f32} : (tensor<1x2x3x2xf32>) -> tensor<1x4x9x2xf32>
  %2 = dovetail.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x9x2xf32>) -> tensor<1x2x4x9xf32>
  return %2 : tensor<1x2x4x9xf32>
}

// The bias and the activation of a flattened product are computed with it.
// CHECK-LABEL: func @dense
// CHECK: %[[P:.*]] = dovetail.matmul
// CHECK: %[[S:.*]] = dovetail.add %[[P]], %{{.*}} : (tensor<6x2xf32>, tensor<1x2xf32>) -> tensor<6x2xf32>
// CHECK: %[[R:.*]] = dovetail.relu %[[S]]
// CHECK: dovetail.reshape %[[R]] : (tensor<6x2xf32>) -> tensor<2x3x2xf32>
func.func @dense(%arg0: tensor<6x4xf32>, %arg1: tensor<4x2xf32>) -> tensor<2x3x2xf32> {
  %b = dovetail.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = dovetail.matmul %arg0, %arg1 : (tensor<6x4xf32>, tensor<4x2xf32>) -> tensor<6x2xf32>
  %1 = dovetail.reshape %0 : (tensor<6x2xf32>) -> tensor<2x3x2xf32>
  %2 = dovetail.add %1, %b : (tensor<2x3x2xf32>, tensor<2xf32>) -> tensor<2x3x2xf32>
  %3 = dovetail.relu %2 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %3 : tensor<2x3x2xf32>
}

// A bias that differs between rows of a merged dimension does not fit the product.
// CHECK-LABEL: func @row_bias
// CHECK: dovetail.reshape
// CHECK: dovetail.add
func.func @row_bias(%arg0: tensor<6x4xf32>, %arg1: tensor<4x2xf32>) -> tensor<2x3x2xf32> {
  %b = dovetail.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %0 = dovetail.matmul %arg0, %arg1 : (tensor<6x4xf32>, tensor<4x2xf32>) -> tensor<6x2xf32>
  %1 = dovetail.reshape %0 : (tensor<6x2xf32>) -> tensor<2x3x2xf32>
  %2 = dovetail.add %1, %b : (tensor<2x3x2xf32>, tensor<3x1xf32>) -> tensor<2x3x2xf32>
  return %2 : tensor<2x3x2xf32>
}

// Pixel shuffle stays what it is.
// CHECK-LABEL: func @pixel_shuffle
// CHECK: dovetail.reshape
// CHECK: dovetail.transpose
// CHECK: dovetail.reshape
func.func @pixel_shuffle(%arg0: tensor<1x8x2x3xf32>) -> tensor<1x2x4x6xf32> {
  %0 = dovetail.reshape %arg0 : (tensor<1x8x2x3xf32>) -> tensor<1x2x2x2x2x3xf32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 0, 1, 4, 2, 5, 3>} : (tensor<1x2x2x2x2x3xf32>) -> tensor<1x2x2x2x3x2xf32>
  %2 = dovetail.reshape %1 : (tensor<1x2x2x2x3x2xf32>) -> tensor<1x2x4x6xf32>
  return %2 : tensor<1x2x4x6xf32>
}

// CHECK-LABEL: func @slices_of_pads
// CHECK-DAG: dovetail.pad %arg0 {high = array<i64: -1, 2>, low = array<i64: 1, 0>
// CHECK-DAG: dovetail.constant dense<0.000000e+00> : tensor<1x4xf32>
// CHECK-NOT: dovetail.slice
func.func @slices_of_pads(%arg0: tensor<3x4xf32>) -> (tensor<3x6xf32>, tensor<1x4xf32>) {
  %0 = dovetail.pad %arg0 {low = array<i64: 2, 1>, high = array<i64: 0, 3>, mode = #dovetail.pad_mode<constant>} : (tensor<3x4xf32>) -> tensor<5x8xf32>
  %1 = dovetail.slice %0 {starts = array<i64: 1, 1>, sizes = array<i64: 3, 6>, steps = array<i64: 1, 1>} : (tensor<5x8xf32>) -> tensor<3x6xf32>
  %2 = dovetail.slice %0 {starts = array<i64: 0, 0>, sizes = array<i64: 1, 4>, steps = array<i64: 1, 1>} : (tensor<5x8xf32>) -> tensor<1x4xf32>
  return %1, %2 : tensor<3x6xf32>, tensor<1x4xf32>
}

// CHECK-LABEL: func @zeros_around
// CHECK: %[[P:.*]] = dovetail.pad %arg0 {high = array<i64: 0, 2>, low = array<i64: 0, 1>
// CHECK: dovetail.concat %arg0, {{.*}}, %arg0
// CHECK: return %[[P]]
func.func @zeros_around(%arg0: tensor<3x4xf32>) -> (tensor<3x7xf32>, tensor<3x9xf32>) {
  %one = dovetail.constant dense<0.0> : tensor<3x1xf32>
  %two = dovetail.constant dense<0.0> : tensor<3x2xf32>
  %0 = dovetail.concat %one, %arg0, %two {axis = 1 : i64} : (tensor<3x1xf32>, tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x7xf32>
  %1 = dovetail.concat %arg0, %one, %arg0 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x9xf32>
  return %0, %1 : tensor<3x7xf32>, tensor<3x9xf32>
}

// CHECK-LABEL: func @scatters
// CHECK-DAG: dovetail.pad %arg1 {high = array<i64: 0, 2>, low = array<i64: 0, 1>
// CHECK-DAG: %[[L:.*]] = dovetail.slice %arg0 {sizes = array<i64: 2, 1>, starts = array<i64: 0, 0>
// CHECK-DAG: %[[H:.*]] = dovetail.slice %arg0 {sizes = array<i64: 2, 2>, starts = array<i64: 0, 3>
// CHECK-DAG: dovetail.concat %[[L]], %arg1, %[[H]] {axis = 1 : i64}
// CHECK-DAG: %[[R:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1, 5>, starts = array<i64: 0, 0>
// CHECK-DAG: dovetail.concat %[[R]], %arg2 {axis = 0 : i64}
func.func @scatters(%arg0: tensor<2x5xf32>, %arg1: tensor<2x2xf32>, %arg2: tensor<1x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {
  %zeros = dovetail.constant dense<0.0> : tensor<2x5xf32>
  %given = dovetail.constant dense<[1, 2]> : tensor<2xi64>
  %index = dovetail.broadcast %given : (tensor<2xi64>) -> tensor<2x2xi64>
  %whole = dovetail.constant dense<[[1, -3], [1, 2]]> : tensor<2x2xi64>
  %row = dovetail.constant dense<-1> : tensor<1x1xi64>
  %0 = dovetail.scatter_elements %zeros, %index, %arg1 {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x5xf32>
  %1 = dovetail.scatter_elements %arg0, %whole, %arg1 {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x5xf32>
  %2 = dovetail.scatter_nd %arg0, %row, %arg2 : (tensor<2x5xf32>, tensor<1x1xi64>, tensor<1x5xf32>) -> tensor<2x5xf32>
  return %0, %1, %2 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
}

// Sums, other orders, indices that differ between rows, and fewer rows stay what they are.
// CHECK-LABEL: func @other_scatters
// CHECK-COUNT-4: dovetail.scatter_elements
func.func @other_scatters(%arg0: tensor<2x5xf32>, %arg1: tensor<2x2xf32>, %arg2: tensor<1x2xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {
  %up = dovetail.constant dense<[[1, 2], [1, 2]]> : tensor<2x2xi64>
  %down = dovetail.constant dense<[[2, 1], [2, 1]]> : tensor<2x2xi64>
  %shifted = dovetail.constant dense<[[1, 2], [2, 3]]> : tensor<2x2xi64>
  %one = dovetail.constant dense<[[1, 2]]> : tensor<1x2xi64>
  %0 = dovetail.scatter_elements %arg0, %up, %arg1 {axis = 1 : i64, reduction = #dovetail.reduce_kind<sum>} : (tensor<2x5xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x5xf32>
  %1 = dovetail.scatter_elements %arg0, %down, %arg1 {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x5xf32>
  %2 = dovetail.scatter_elements %arg0, %shifted, %arg1 {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<2x5xf32>
  %3 = dovetail.scatter_elements %arg0, %one, %arg2 {axis = 1 : i64} : (tensor<2x5xf32>, tensor<1x2xi64>, tensor<1x2xf32>) -> tensor<2x5xf32>
  return %0, %1, %2, %3 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
}
