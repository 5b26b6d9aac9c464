// RUN: dovetail-opt %s --dovetail-generalize | FileCheck %s

// A convolution is a sum of products. Pads leave terms out.
// CHECK-LABEL: func.func @conv
// CHECK: dovetail.generic
// CHECK-NEXT: loops [d0 = 1, d1 = 4, d2 = 5, d3 = 4, d4 = 8 reduction(sum), d5 = 3 tap, d6 = 3 tap]
// CHECK-NEXT: reads [0 : (d0, d4, 2*d2 + d5 - 1, d3 + d6), 1 : (d1, d4, d5, d6)]
// CHECK-NEXT: combine sum body {
// CHECK-NEXT: %[[X:.*]] = dovetail.read 0 : f16
// CHECK-NEXT: %[[A:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK-NEXT: %[[W:.*]] = dovetail.read 1 : f16
// CHECK-NEXT: %[[B:.*]] = arith.extf %[[W]] : f16 to f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: dovetail.return %[[P]] : f32
func.func @conv(%x: tensor<1x8x9x6xf16>, %w: tensor<4x8x3x3xf16>) -> tensor<1x4x5x4xf16> {
  %0 = dovetail.conv %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>,
                             pads_high = array<i64: 1, 0>, groups = 1 : i64}
      : (tensor<1x8x9x6xf16>, tensor<4x8x3x3xf16>) -> tensor<1x4x5x4xf16>
  return %0 : tensor<1x4x5x4xf16>
}

// The attributes of an operation stay, and so do its shardings. A kind that exchanges know is named.
// CHECK-LABEL: func.func @reduce
// CHECK: dovetail.generic(%{{.*}}) : (tensor<4x6xi32>) -> tensor<4x1xi32> attributes {note = "n"}
// CHECK-NEXT: loops [d0 = 4, d1 = 1 whole, d2 = 6 reduction(max)]
// CHECK-NEXT: reads [0 : (d0, d2)]
// CHECK-NEXT: combine max body {
func.func @reduce(%x: tensor<4x6xi32>) -> tensor<4x1xi32> {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>, note = "n"}
      : (tensor<4x6xi32>) -> tensor<4x1xi32>
  return %0 : tensor<4x1xi32>
}

// The body asks whether there is an element.
// CHECK-LABEL: func.func @pad
// CHECK: reads [0 : (d0 - 1)]
// CHECK: %[[IN:.*]] = dovetail.inside 0
// CHECK: scf.if %[[IN]] -> (f32) {
// CHECK-NEXT: dovetail.read 0 : f32
func.func @pad(%x: tensor<4xf32>) -> tensor<6xf32> {
  %0 = dovetail.pad %x {low = array<i64: 1>, high = array<i64: 1>, mode = #dovetail.pad_mode<constant>}
      : (tensor<4xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Passes, and values that only the operation combines.
// CHECK-LABEL: func.func @sum_exp
// CHECK: loops [d0 = 4, d1 = 1 whole, d2 = 6 reduction(none)]
// CHECK-NEXT: reads [0 : (d0, d2)]
// CHECK-NEXT: passes [max : f32, sum : f32]
// CHECK-NEXT: init {
// CHECK: } combine(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32) {
// CHECK-NOT: finish
// CHECK: } pass(%[[MOST:.*]]: f32) {
// CHECK-NEXT: %[[E:.*]] = dovetail.read 0 : f32
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[E]], %[[MOST]] : f32
// CHECK-NEXT: math.exp %[[D]] : f32
func.func @sum_exp(%x: tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %0, %1 = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  return %0, %1 : tensor<4x1xf32>, tensor<4x1xf32>
}

// A lookup is at the iteration that an index names.
// CHECK-LABEL: func.func @gather
// CHECK: loops [d0 = 3, d1 = 4, d2 = 9 reduction(owner) by 1]
// CHECK-NEXT: reads [0 : (d2, d1), 1 : (d0)]
// CHECK: %[[OWN:.*]], %[[ROW:.*]] = dovetail.look_up d2
// CHECK: dovetail.read 0 at [d2 = %[[ROW]]] : f32
func.func @gather(%x: tensor<9x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %0 = dovetail.gather %x, %i {axis = 0 : i64} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// Scans and writes.
// CHECK-LABEL: func.func @lines
// CHECK: scan d0 restarts [0, 2, 5] exclusive
// CHECK-NEXT: combine sum body {
// CHECK: writes (u0) by 2
// CHECK-NEXT: combine(%{{.*}}: f32, %[[NEW:.*]]: f32) {
// CHECK-NEXT: dovetail.return %[[NEW]] : f32
// CHECK: writes (u0) by 2
// CHECK-NEXT: combine max body {
func.func @lines(%x: tensor<5xf32>, %u: tensor<3xf32>, %i: tensor<3xi64>) -> tensor<5xf32> {
  %0 = dovetail.scan %x {kind = #dovetail.reduce_kind<sum>, axis = 0 : i64, exclusive, restarts = array<i64: 2>}
      : (tensor<5xf32>) -> tensor<5xf32>
  %1 = dovetail.scatter_elements %0, %i, %u {axis = 0 : i64}
      : (tensor<5xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<5xf32>
  %2 = dovetail.scatter_elements %1, %i, %u {axis = 0 : i64, reduction = #dovetail.reduce_kind<max>}
      : (tensor<5xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}

// Programs for whole lines, and control flow, stay.
// CHECK-LABEL: func.func @left
// CHECK: dovetail.top_k
// CHECK: dovetail.if
func.func @left(%x: tensor<5xf32>, %c: tensor<i1>) -> (tensor<2xf32>, tensor<5xf32>) {
  %0, %1 = dovetail.top_k %x {axis = 0 : i64, k = 2 : i64, largest = true} : (tensor<5xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %2 = dovetail.if %c, %x, %x {choice = 0 : i64} : (tensor<i1>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %0, %2 : tensor<2xf32>, tensor<5xf32>
}
