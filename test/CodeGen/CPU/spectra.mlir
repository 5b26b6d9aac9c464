// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// Lines of the transform follow each other, so that eight of them are read and written in squares, transposed in
// registers: a block of four complex numbers of each. The last lines, fewer than eight, take single elements.

// CHECK: func.func private @rows.body(
// CHECK: scf.if
// CHECK-COUNT-8: vector.from_elements {{.*}} : vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK: } else {
// CHECK-NOT: vector.shuffle
// CHECK: scf.if
// CHECK-COUNT-8: vector.shuffle
// CHECK-COUNT-64: plan.store
// CHECK-LABEL: func.func @rows(
plan.kernel @rows(%x: tensor<40x16x2xf32>, %roots: tensor<24xf32>) layouts [<[0, 1, 2], [40, 16, 2]>, <[0], [24]>] -> [<[0, 1, 2], [40, 16, 2]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.dft %x, %roots {axis = 1 : i64, length = 16 : i64} : (tensor<40x16x2xf32>, tensor<24xf32>) -> tensor<40x16x2xf32>
  plan.yield %0 : tensor<40x16x2xf32>
}

// Along columns, lines are neighbours already.

// CHECK: func.func private @columns.body(
// CHECK-NOT: vector.shuffle
// CHECK-LABEL: func.func @columns(
plan.kernel @columns(%x: tensor<16x40x2xf32>, %roots: tensor<24xf32>) layouts [<[0, 1, 2], [16, 40, 2]>, <[0], [24]>] -> [<[0, 1, 2], [16, 40, 2]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.dft %x, %roots {axis = 0 : i64, length = 16 : i64} : (tensor<16x40x2xf32>, tensor<24xf32>) -> tensor<16x40x2xf32>
  plan.yield %0 : tensor<16x40x2xf32>
}
