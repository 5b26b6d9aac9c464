// RUN: dovetail-opt %s --dovetail-simplify-arithmetic | FileCheck %s

// CHECK-LABEL: func @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %ones = dovetail.constant dense<[1.0, 1.0, 1.0]> : tensor<3xf32>
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %minus_zero = dovetail.constant dense<-0.0> : tensor<f32>
  %0 = dovetail.mul %arg0, %ones : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.div %0, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.sub %1, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.add %minus_zero, %2 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.pow %3, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %5 = dovetail.neg %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = dovetail.neg %5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %6 : tensor<2x3xf32>
}

// -0 + 0 is 0, so a sum with zero stays, unless it follows what cannot be -0, or is of integers.
// CHECK-LABEL: func @zeros
// CHECK: %[[SUM:.*]] = dovetail.add %arg0, %{{.*}} : (tensor<2x2xf32>
// CHECK: %[[PRODUCT:.*]] = dovetail.matmul
// CHECK: return %[[SUM]], %[[PRODUCT]], %arg1
func.func @zeros(%arg0: tensor<2x2xf32>, %arg1: tensor<2xi32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xi32>) {
  %zero = dovetail.constant dense<0.0> : tensor<f32>
  %integer = dovetail.constant dense<0> : tensor<i32>
  %0 = dovetail.add %arg0, %zero : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %1 = dovetail.matmul %arg0, %arg0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = dovetail.add %1, %zero : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %3 = dovetail.add %arg1, %integer : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  return %0, %2, %3 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xi32>
}

// The ones give the result its shape.
// CHECK-LABEL: func @enlarging
// CHECK: dovetail.mul
func.func @enlarging(%arg0: tensor<3xf32>) -> tensor<2x3xf32> {
  %ones = dovetail.constant dense<1.0> : tensor<2x3xf32>
  %0 = dovetail.mul %arg0, %ones : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @rewritten
// CHECK: %[[N:.*]] = dovetail.neg %{{.*}} : (tensor<3xf32>)
// CHECK: %[[S:.*]] = dovetail.add %arg0, %[[N]]
// CHECK: %[[M:.*]] = dovetail.mul %[[S]], %{{.*}} : (tensor<2x3xf32>, tensor<f32>)
// CHECK: %[[Q:.*]] = dovetail.mul %[[M]], %[[M]]
// CHECK: %[[C:.*]] = dovetail.mul %[[Q]], %[[M]]
// CHECK: %[[D:.*]] = dovetail.div %[[C]]
// CHECK: return %[[D]]
func.func @rewritten(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = dovetail.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %eight = dovetail.constant dense<8.0> : tensor<f32>
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %0 = dovetail.sub %arg0, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.div %0, %eight : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = dovetail.pow %1, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.div %2, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// CHECK-LABEL: func @bounds
// CHECK-DAG: %[[LOW:.*]] = dovetail.constant dense<1.000000e+00>
// CHECK-DAG: %[[HIGH:.*]] = dovetail.constant dense<2.000000e+00>
// CHECK: %[[MAX:.*]] = dovetail.max %arg0, %[[LOW]]
// CHECK: %[[MIN:.*]] = dovetail.min %[[MAX]], %[[HIGH]]
// CHECK: return %[[MIN]]
func.func @bounds(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %m1 = dovetail.constant dense<-1.0> : tensor<f32>
  %one = dovetail.constant dense<1.0> : tensor<f32>
  %two = dovetail.constant dense<2.0> : tensor<f32>
  %three = dovetail.constant dense<3.0> : tensor<f32>
  %0 = dovetail.relu %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.max %1, %m1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = dovetail.max %one, %2 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = dovetail.min %3, %three : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %5 = dovetail.min %4, %two : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// CHECK-LABEL: func @casts
// CHECK: %[[I:.*]] = dovetail.cast %arg0 {to = i32} : (tensor<3xf32>) -> tensor<3xi32>
// CHECK: %[[F:.*]] = dovetail.cast %arg0 {to = f16}
// CHECK: %[[W:.*]] = dovetail.cast %[[F]] {to = f32}
// CHECK: return %arg0, %[[I]], %[[W]]
func.func @casts(%arg0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>, tensor<3xf32>) {
  %0 = dovetail.cast %arg0 {to = f64} : (tensor<3xf32>) -> tensor<3xf64>
  %1 = dovetail.cast %0 {to = f32} : (tensor<3xf64>) -> tensor<3xf32>
  %2 = dovetail.cast %0 {to = i32} : (tensor<3xf64>) -> tensor<3xi32>
  %3 = dovetail.cast %arg0 {to = f16} : (tensor<3xf32>) -> tensor<3xf16>
  %4 = dovetail.cast %3 {to = f32} : (tensor<3xf16>) -> tensor<3xf32>
  return %1, %2, %4 : tensor<3xf32>, tensor<3xi32>, tensor<3xf32>
}

// Where a float may be beyond the last type, the detour matters: ui32 wraps, and a float does not.
// CHECK-LABEL: func @cast_by_float
// CHECK-COUNT-2: dovetail.cast
func.func @cast_by_float(%arg0: tensor<3xui32>) -> tensor<3xi8> {
  %0 = dovetail.cast %arg0 {to = f64} : (tensor<3xui32>) -> tensor<3xf64>
  %1 = dovetail.cast %0 {to = i8} : (tensor<3xf64>) -> tensor<3xi8>
  return %1 : tensor<3xi8>
}

// CHECK-LABEL: func @implied_broadcasts
// CHECK: %[[SUM:.*]] = dovetail.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<1x3xf32>)
// CHECK: %[[C:.*]] = dovetail.constant dense<2.500000e+00> : tensor<f32>
// CHECK: dovetail.mul %[[SUM]], %[[C]] : (tensor<2x3xf32>, tensor<f32>)
func.func @implied_broadcasts(%arg0: tensor<2x3xf32>, %arg1: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %c = dovetail.constant dense<2.5> : tensor<2x3xf32>
  %0 = dovetail.broadcast %arg1 : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.add %arg0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = dovetail.mul %1, %c : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// Of two broadcasts one must stay.
// CHECK-LABEL: func @needed_broadcast
// CHECK: dovetail.broadcast
// CHECK: dovetail.add
func.func @needed_broadcast(%arg0: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %0 = dovetail.broadcast %arg0 : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = dovetail.add %0, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
