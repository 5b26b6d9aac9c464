// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-merge-rows)' | FileCheck %s

// A batch on which the weights do not depend is rows, those of extent 1 among them; batches that add nothing are not.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @whole
plan.program @whole mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<197x1x6xf32> <[0, 1, 2]>
  %1 = plan.buffer constant tensor<6x3xf32> <[0, 1]> = dense<2.0> : tensor<6x3xf32>
  %2 = plan.buffer arena tensor<197x1x3xf32> <[0, 1, 2]>
  %tokens = plan.view %0 : !plan.ref<tensor<197x1x6xf32>>
  %w = plan.view %1 : !plan.ref<tensor<6x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<197x1x3xf32>>
  // CHECK: plan.matmul {{.*}} loops [197, 1, 3, 6] {{.*}} {row_dims = 2 : i64}
  plan.matmul %tokens, %w -> %y loops [197, 1, 3, 6] reads [(d0, d1, d3), (d3, d2)]
    : !plan.ref<tensor<197x1x6xf32>>, !plan.ref<tensor<6x3xf32>> -> !plan.ref<tensor<197x1x3xf32>>

  %3 = plan.buffer arena tensor<1x4x5x6xf32> <[0, 1, 2, 3]>
  %4 = plan.buffer constant tensor<1x1x6x3xf32> <[0, 1, 2, 3]> = dense<2.0> : tensor<1x1x6x3xf32>
  %5 = plan.buffer arena tensor<1x4x5x3xf32> <[0, 1, 2, 3]>
  %a = plan.view %3 : !plan.ref<tensor<1x4x5x6xf32>>
  %v = plan.view %4 : !plan.ref<tensor<1x1x6x3xf32>>
  %z = plan.view %5 : !plan.ref<tensor<1x4x5x3xf32>>
  // CHECK: plan.matmul {{.*}} loops [1, 4, 5, 3, 6] {{.*}} {row_dims = 2 : i64}
  plan.matmul %a, %v -> %z loops [1, 4, 5, 3, 6] reads [(d0, d1, d2, d4), (d0, 0, d4, d3)]
    : !plan.ref<tensor<1x4x5x6xf32>>, !plan.ref<tensor<1x1x6x3xf32>> -> !plan.ref<tensor<1x4x5x3xf32>>
}

// -----

// The second operand depends on the outer batch dimension.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @heads
plan.program @heads mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<2x4x5x6xf32> <[0, 1, 2, 3]>
  %1 = plan.buffer arena tensor<2x1x6x3xf32> <[0, 1, 2, 3]>
  %2 = plan.buffer arena tensor<2x4x5x3xf32> <[0, 1, 2, 3]>
  %3 = plan.buffer arena tensor<2x4x6x3xf32> <[0, 1, 2, 3]>
  %a = plan.view %0 : !plan.ref<tensor<2x4x5x6xf32>>
  %b = plan.view %1 : !plan.ref<tensor<2x1x6x3xf32>>
  %y = plan.view %2 : !plan.ref<tensor<2x4x5x3xf32>>
  %c = plan.view %3 : !plan.ref<tensor<2x4x6x3xf32>>
  // CHECK: plan.matmul {{.*}} {row_dims = 2 : i64}
  plan.matmul %a, %b -> %y loops [2, 4, 5, 3, 6] reads [(d0, d1, d2, d4), (d0, 0, d4, d3)]
    : !plan.ref<tensor<2x4x5x6xf32>>, !plan.ref<tensor<2x1x6x3xf32>> -> !plan.ref<tensor<2x4x5x3xf32>>
  // CHECK-NOT: row_dims
  plan.matmul %a, %c -> %y loops [2, 4, 5, 3, 6] reads [(d0, d1, d2, d4), (d0, d1, d4, d3)]
    : !plan.ref<tensor<2x4x5x6xf32>>, !plan.ref<tensor<2x4x6x3xf32>> -> !plan.ref<tensor<2x4x5x3xf32>>
}

// -----

// Rows of extent 4, 0 and 3 each, all of which ranks hold: the batch continues them.

dovetail.mesh @mesh = ["y" = 3]
!a = !plan.ref<tensor<4x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 4, 7}, {}]>>>
!y = !plan.ref<tensor<4x7x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 4, 7}, {}]>>>

// CHECK-LABEL: plan.program @uneven
plan.program @uneven mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 4, 7}, {}]>> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<4x7x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 4, 4, 7}, {}]>> <[0, 1, 2]>
  %a = plan.view %0 : !a
  %w = plan.view %1 : !plan.ref<tensor<6x3xf32>>
  %y = plan.view %2 : !y
  // CHECK: plan.matmul {{.*}} {row_dims = 2 : i64}
  plan.matmul %a, %w -> %y loops [4, 7 by <{"y" : 0, 4, 4, 7}>, 3, 6] reads [(d0, d1, d3), (d3, d2)] : !a, !plan.ref<tensor<6x3xf32>> -> !y
}

// -----

// A halo of rows lies between one batch and the next. One of the batch does not: the elements of a rank are together.

dovetail.mesh @mesh = ["y" = 2]
!rows = !plan.ref<tensor<2x4x7x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}]>>>
!row_sums = !plan.ref<tensor<2x4x7x3xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}]>>>
!batch = !plan.ref<tensor<2x4x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 4}, {}, {}]>>>
!batch_sums = !plan.ref<tensor<2x4x7x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 4}, {}, {}]>>>

// CHECK-LABEL: plan.program @halos
plan.program @halos mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<2x4x7x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 7)}, {}]>> <[0, 1, 2, 3]>
  %1 = plan.buffer arena tensor<2x4x7x3xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 7}, {}]>> <[0, 1, 2, 3]>
  %2 = plan.buffer arena tensor<2x4x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 4}, {}, {}]>> <[0, 1, 2, 3]>
  %3 = plan.buffer arena tensor<2x4x7x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2), (1, 4)}, {}, {}]>> <[0, 1, 2, 3]>
  %4 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %a = plan.view %0 : !rows
  %y = plan.view %1 : !row_sums
  %b = plan.view %2 : !batch
  %z = plan.view %3 : !batch_sums
  %w = plan.view %4 : !plan.ref<tensor<6x3xf32>>
  // CHECK: plan.matmul
  // CHECK-NOT: row_dims
  // CHECK-SAME: : !
  plan.matmul %a, %w -> %y loops [2, 4, 7 by <{"y" : 0, 4, 7}>, 3, 6] reads [(d0, d1, d2, d4), (d4, d3)] : !rows, !plan.ref<tensor<6x3xf32>> -> !row_sums
  // The first rank has one of two batches that it holds, which lie far apart for the next dimension only.
  // CHECK: plan.matmul {{.*}} {row_dims = 2 : i64}
  plan.matmul %b, %w -> %z loops [2, 4 by <{"y" : 0, 1, 4}>, 7, 3, 6] reads [(d0, d1, d2, d4), (d4, d3)] : !batch, !plan.ref<tensor<6x3xf32>> -> !batch_sums
}

// -----

// One row on each rank: batches lie at one distance, whatever else is held. But a rank with two rows decides for all.

dovetail.mesh @mesh = ["y" = 2]
!a = !plan.ref<tensor<4x3x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 1), (2, 3)}, {}]>>>
!y = !plan.ref<tensor<4x3x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>>>

// CHECK-LABEL: plan.program @single_rows
plan.program @single_rows mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4x3x6xf32> <[0, 1, 2]>
  %1 = plan.buffer arena tensor<4x3x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %a = plan.view %0 : !plan.ref<tensor<4x3x6xf32>>
  %y = plan.view %1 : !y
  %w = plan.view %2 : !plan.ref<tensor<6x3xf32>>
  // CHECK: plan.matmul {{.*}} {row_dims = 2 : i64}
  plan.matmul %a, %w -> %y loops [4, 3 by <{"y" : (0, 1), (2, 3)}>, 3, 6] reads [(d0, d1, d3), (d3, d2)] : !plan.ref<tensor<4x3x6xf32>>, !plan.ref<tensor<6x3xf32>> -> !y
  // CHECK: plan.matmul
  // CHECK-NOT: row_dims
  // CHECK-SAME: : !
  plan.matmul %a, %w -> %y loops [4, 3 by <{"y" : 0, 1, 3}>, 3, 6] reads [(d0, d1, d3), (d3, d2)] : !plan.ref<tensor<4x3x6xf32>>, !plan.ref<tensor<6x3xf32>> -> !y
}

// -----

// Part of a constant has the strides of the whole, where it is read from the artifact.

dovetail.mesh @mesh = ["y" = 2]
!a = !plan.ref<tensor<4x3x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>>>
!y = !plan.ref<tensor<4x3x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>>>

// CHECK-LABEL: plan.program @constant
plan.program @constant mesh @mesh target "cpu" {
  %0 = plan.buffer constant tensor<4x3x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>> <[0, 1, 2]> = dense<1.0> : tensor<4x3x6xf32>
  %1 = plan.buffer arena tensor<4x3x3xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 3}, {}]>> <[0, 1, 2]>
  %2 = plan.buffer arena tensor<6x3xf32> <[0, 1]>
  %a = plan.view %0 : !a
  %y = plan.view %1 : !y
  %w = plan.view %2 : !plan.ref<tensor<6x3xf32>>
  // CHECK: plan.matmul
  // CHECK-NOT: row_dims
  // CHECK-SAME: : !
  plan.matmul %a, %w -> %y loops [4, 3 by <{"y" : 0, 1, 3}>, 3, 6] reads [(d0, d1, d3), (d3, d2)] : !a, !plan.ref<tensor<6x3xf32>> -> !y
}

// -----

// Where rows are not outer dimensions in memory, they are no continuation of each other.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @formats
plan.program @formats mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<4x5x6xf32> <[1, 0, 2]>
  %1 = plan.buffer arena tensor<6x16xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<4x5x16xf32> <[0, 1, 2]>
  %3 = plan.buffer arena tensor<4x6x5xf32> <[0, 1, 2]>
  %a = plan.view %0 : !plan.ref<tensor<4x5x6xf32>>
  %w = plan.view %1 : !plan.ref<tensor<6x16xf32>>
  %y = plan.view %2 : !plan.ref<tensor<4x5x16xf32>>
  %columns = plan.view %3 : !plan.ref<tensor<4x6x5xf32>>
  // CHECK-NOT: row_dims
  plan.matmul %a, %w -> %y loops [4, 5, 16, 6] reads [(d0, d1, d3), (d3, d2)] : !plan.ref<tensor<4x5x6xf32>>, !plan.ref<tensor<6x16xf32>> -> !plan.ref<tensor<4x5x16xf32>>
  plan.matmul %columns, %w -> %y loops [4, 5, 16, 6] reads [(d0, d3, d1), (d3, d2)] : !plan.ref<tensor<4x6x5xf32>>, !plan.ref<tensor<6x16xf32>> -> !plan.ref<tensor<4x5x16xf32>>
}
