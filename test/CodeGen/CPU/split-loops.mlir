// RUN: dovetail-opt %s --plan-generate-cpu-kernels | FileCheck %s

// At its borders a pad reads one element again and again; between them neighbours are neighbours.

// CHECK: func.func private @edges.body(
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to
// CHECK: %[[BEGIN:.*]] = arith.muli %[[ROW]], %c100
// CHECK: %[[FIRST:.*]] = plan.load %{{.*}}[%{{.*}}]
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c8
// CHECK-NOT: plan.load
// CHECK: plan.store %[[FIRST]]
// CHECK: scf.for %[[I:.*]] = %c8 to %c108
// CHECK-NEXT: %[[INSIDE:.*]] = arith.addi %[[I]], %c-8
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[BEGIN]], %[[INSIDE]]
// CHECK-NEXT: plan.load %{{.*}}[%[[AT]]]
// CHECK: %[[END:.*]] = arith.addi %[[BEGIN]], %c99
// CHECK-NEXT: %[[LAST:.*]] = plan.load %{{.*}}[%[[END]]]
// CHECK-NEXT: scf.for %{{.*}} = %c108 to %c112
// CHECK-NOT: plan.load
// CHECK: plan.store %[[LAST]]
// CHECK-LABEL: func.func @edges(
plan.kernel @edges(%x: tensor<30x100xf32>) layouts [<[0, 1], [30, 100]>] -> [<[0, 1], [30, 112]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.pad %x {high = array<i64: 0, 4>, low = array<i64: 0, 8>, mode = #dovetail.pad_mode<edge>} : (tensor<30x100xf32>) -> tensor<30x112xf32>
  plan.yield %0 : tensor<30x112xf32>
}

// A mirror image goes backwards.

// CHECK: func.func private @mirror.body(
// CHECK: scf.for %[[I:.*]] = %c0 to %c8
// CHECK: %[[BACK:.*]] = arith.muli %[[I]], %c-1
// CHECK-NEXT: arith.addi %[[BACK]], %c8
// CHECK: scf.for %{{.*}} = %c8{{.*}} to %c108
// CHECK: scf.for %[[I:.*]] = %c108{{.*}} to %c112
// CHECK: %[[BACK:.*]] = arith.muli %[[I]], %c-1
// CHECK-NEXT: arith.addi %[[BACK]], %c206
// CHECK-LABEL: func.func @mirror(
plan.kernel @mirror(%x: tensor<30x100xf32>) layouts [<[0, 1], [30, 100]>] -> [<[0, 1], [30, 112]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.pad %x {high = array<i64: 0, 4>, low = array<i64: 0, 8>, mode = #dovetail.pad_mode<reflect>} : (tensor<30x100xf32>) -> tensor<30x112xf32>
  plan.yield %0 : tensor<30x112xf32>
}

// What ranks compute of the columns is known when they run: each has its part of each loop.

// CHECK: func.func private @zeros.body(%[[X:arg0]]: {{.*}}, %[[VALUE:arg1]]: {{.*}}, %{{.*}}: index, %{{.*}}: index, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK-DAG: %[[END0:.*]] = arith.minsi %[[HI]], %c8
// CHECK-DAG: %[[BEGIN1:.*]] = arith.maxsi %[[LO]], %c8
// CHECK-DAG: %[[END1:.*]] = arith.minsi %[[HI]], %c108
// CHECK-DAG: %[[BEGIN2:.*]] = arith.maxsi %[[LO]], %c108
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[END0]]
// CHECK: plan.load %[[VALUE]]
// CHECK: scf.for %{{.*}} = %[[BEGIN1]] to %[[END1]]
// CHECK: plan.load %[[X]]
// CHECK: scf.for %{{.*}} = %[[BEGIN2]] to %[[HI]]
// CHECK: plan.load %[[VALUE]]
// CHECK-LABEL: func.func @zeros(
plan.kernel @zeros(%x: tensor<30x100xf32>, %value: tensor<f32>) layouts [<[0, 1], [30, 100]>, <[], []>] -> [<[0, 1], [30, 112]>] attributes {static_loops = array<i64>} {
  %0 = dovetail.pad %x, %value {high = array<i64: 0, 4>, low = array<i64: 0, 8>, mode = #dovetail.pad_mode<constant>} : (tensor<30x100xf32>, tensor<f32>) -> tensor<30x112xf32>
  plan.yield %0 : tensor<30x112xf32>
}

// Operands of a concatenation follow each other; what is carried goes through all loops.

// CHECK: func.func private @joined.body(
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %c0 to %c40{{.*}} iter_args(%{{.*}} = %cst
// CHECK-NOT: scf.if
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c40{{.*}} to %c100{{.*}} iter_args(%{{.*}} = %[[PART]])
// CHECK-NOT: scf.if
// CHECK: plan.store %[[SUM]]
// CHECK-LABEL: func.func @joined(
plan.kernel @joined(%a: tensor<30x40xf32>, %b: tensor<30x60xf32>) layouts [<[0, 1], [30, 40]>, <[0, 1], [30, 60]>] -> [<[0], [30]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.concat %a, %b {axis = 1 : i64} : (tensor<30x40xf32>, tensor<30x60xf32>) -> tensor<30x100xf32>
  %1 = dovetail.reduce %0 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<30x100xf32>) -> tensor<30x1xf32>
  %2 = dovetail.reshape %1 : (tensor<30x1xf32>) -> tensor<30xf32>
  plan.yield %2 : tensor<30xf32>
}

// Of windows with a stride, even and odd elements of the result have different taps: two at once have the same every
// time.

// CHECK: func.func private @strides.body(
// CHECK-NOT: scf.if
// CHECK-NOT: arith.floordivsi
// CHECK: scf.for %{{.*}} = %c1{{.*}} to %c50
// CHECK-COUNT-2: plan.load
// CHECK: plan.store
// CHECK: plan.load
// CHECK: plan.store
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @strides(
plan.kernel @strides(%x: tensor<1x4x3x50xf32>) layouts [<[0, 1, 2, 3], [1, 4, 3, 50]>] -> [<[0, 1, 2], [1, 4, 101]>] attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.col2im %x {sizes = array<i64: 101>, strides = array<i64: 2>, dilations = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>} : (tensor<1x4x3x50xf32>) -> tensor<1x4x101xf32>
  plan.yield %0 : tensor<1x4x101xf32>
}
