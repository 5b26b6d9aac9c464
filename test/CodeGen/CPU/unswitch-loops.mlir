// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// Which operand has the row is known before the loop over its elements: each has a loop without a condition.

// CHECK: func.func private @rows.body(
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: plan.load
// CHECK: } else {
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: plan.load
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: plan.load
// CHECK-LABEL: func.func @rows(
plan.kernel @rows(%a: tensor<2x512xf32>, %b: tensor<256x512xf32>, %c: tensor<3x512xf32>) layouts [<[0, 1], [2, 512]>, <[0, 1], [256, 512]>, <[0, 1], [3, 512]>] -> [<[0, 1], [261, 512]>] attributes {static_loops = array<i64: 1>} {
  %0 = dovetail.concat %a, %b, %c {axis = 0 : i64} : (tensor<2x512xf32>, tensor<256x512xf32>, tensor<3x512xf32>) -> tensor<261x512xf32>
  plan.yield %0 : tensor<261x512xf32>
}
