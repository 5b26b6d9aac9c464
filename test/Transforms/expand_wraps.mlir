// RUN: dovetail-opt %s --dovetail-expand-wraps | FileCheck %s

// One dimension after the other; what is cut off goes first, and the tensor's name stays with the whole.

// CHECK-LABEL: func.func @both
func.func @both(%x: tensor<2x6x8xf32>) -> tensor<2x9x9xf32> {
  // CHECK: %[[CROPPED:.*]] = dovetail.pad %arg0 {high = array<i64: 0, 0, -2>, low = array<i64: 0, 0, 0>, mode = #dovetail.pad_mode<wrap>} : (tensor<2x6x8xf32>) -> tensor<2x6x6xf32>
  // CHECK-NEXT: %[[END:.*]] = dovetail.slice %[[CROPPED]] {sizes = array<i64: 2, 1, 6>, starts = array<i64: 0, 5, 0>
  // CHECK-NEXT: %[[BEGIN:.*]] = dovetail.slice %[[CROPPED]] {sizes = array<i64: 2, 2, 6>, starts = array<i64: 0, 0, 0>
  // CHECK-NEXT: %[[ROWS:.*]] = dovetail.concat %[[END]], %[[CROPPED]], %[[BEGIN]] {axis = 1 : i64}
  // CHECK-NEXT: %[[LAST:.*]] = dovetail.slice %[[ROWS]] {sizes = array<i64: 2, 9, 3>, starts = array<i64: 0, 0, 3>
  // CHECK-NEXT: %[[ALL:.*]] = dovetail.concat %[[LAST]], %[[ROWS]] {axis = 2 : i64}
  // CHECK-NEXT: return %[[ALL]]
  %0 = dovetail.pad %x {low = array<i64: 0, 1, 3>, high = array<i64: 0, 2, -2>, mode = #dovetail.pad_mode<wrap>} : (tensor<2x6x8xf32>) -> tensor<2x9x9xf32>
  return %0 : tensor<2x9x9xf32>
}

// Wider than the tensor: whole images of it, and a part.

// CHECK-LABEL: func.func @wide
func.func @wide(%x: tensor<3xf32>) -> tensor<14xf32> {
  // CHECK: %[[END:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1>, starts = array<i64: 2>
  // CHECK-NEXT: %[[BEGIN:.*]] = dovetail.slice %arg0 {sizes = array<i64: 1>, starts = array<i64: 0>
  // CHECK-NEXT: dovetail.concat %[[END]], %arg0, %arg0, %arg0, %arg0, %[[BEGIN]] {axis = 0 : i64}
  %0 = dovetail.pad %x {low = array<i64: 4>, high = array<i64: 7>, mode = #dovetail.pad_mode<wrap>} : (tensor<3xf32>) -> tensor<14xf32>
  return %0 : tensor<14xf32>
}

// More images than eight, and other modes, stay.

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<3xf32>) -> (tensor<30xf32>, tensor<5xf32>) {
  // CHECK: dovetail.pad %arg0 {high = array<i64: 27>
  // CHECK: dovetail.pad %arg0 {{.*}} mode = #dovetail.pad_mode<reflect>
  // CHECK-NOT: dovetail.concat
  %0 = dovetail.pad %x {low = array<i64: 0>, high = array<i64: 27>, mode = #dovetail.pad_mode<wrap>} : (tensor<3xf32>) -> tensor<30xf32>
  %1 = dovetail.pad %x {low = array<i64: 1>, high = array<i64: 1>, mode = #dovetail.pad_mode<reflect>} : (tensor<3xf32>) -> tensor<5xf32>
  return %0, %1 : tensor<30xf32>, tensor<5xf32>
}
