// RUN: dovetail-opt %s --plan-end-at-counts | FileCheck %s

// Rows behind what is needed are not computed: two convolutions of 3 rows, tails of whose operands are cleared, and a
// pool of two rows. Calls end at multiples of steps, and kernels where calls behind them need no more.

!x = !plan.ref<tensor<1x4x32x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!y = !plan.ref<tensor<1x4x16x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>
!w = !plan.ref<tensor<4x4x3x3xf32>>
!count = !plan.ref<tensor<i64, #dovetail.sharding<@mesh, []>>>
!rows = !plan.ref<tensor<1x1x32x1xi64>>
!mask = !plan.ref<tensor<1x1x32x1xi1, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>>>

dovetail.mesh @mesh = ["rank" = 1]

plan.kernel @mask(%rows: tensor<1x1x32x1xi64>, %n: tensor<i64>) layouts [<[0, 1, 2, 3], [1, 1, 32, 1]>, <[], []>]
    -> [<[0, 2, 3, 1], [1, 1, 32, 1]>] attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.less %rows, %n : (tensor<1x1x32x1xi64>, tensor<i64>) -> tensor<1x1x32x1xi1>
  plan.yield %0 : tensor<1x1x32x1xi1>
}
// CHECK: plan.kernel @clear
// CHECK-SAME: static_loops = array<i64: 0, 1, 3>
plan.kernel @clear(%m: tensor<1x1x32x1xi1>, %x: tensor<1x4x32x24xf32>)
    layouts [<[0, 2, 3, 1], [1, 1, 32, 1]>, <[0, 2, 3, 1], [1, 4, 32, 24]>] -> [<[0, 2, 3, 1], [1, 4, 32, 24]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.constant dense<0.0> : tensor<f32>
  %1 = dovetail.select %m, %x, %0 : (tensor<1x1x32x1xi1>, tensor<1x4x32x24xf32>, tensor<f32>) -> tensor<1x4x32x24xf32>
  plan.yield %1 : tensor<1x4x32x24xf32>
}
plan.kernel @half(%n: tensor<i64>) layouts [<[], []>] -> [<[], []>] attributes {static_loops = array<i64>} {
  %0 = dovetail.constant dense<2> : tensor<i64>
  %1 = dovetail.div %n, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  plan.yield %1 : tensor<i64>
}

// CHECK: plan.program @rows
plan.program @rows mesh @mesh target "cpu" model "m" {
  %0 = plan.buffer arena tensor<1x4x32x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %x = plan.view %0 : !x
  %1 = plan.buffer arena tensor<i64, #dovetail.sharding<@mesh, []>> <[]>
  %n = plan.view %1 : !count
  %2 = plan.buffer constant tensor<1x1x32x1xi64> <[0, 1, 2, 3]> = dense<[[[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14], [15], [16], [17], [18], [19], [20], [21], [22], [23], [24], [25], [26], [27], [28], [29], [30], [31]]]]> : tensor<1x1x32x1xi64>
  %rows = plan.view %2 : !rows
  %3 = plan.buffer arena tensor<1x1x32x1xi1, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %mask = plan.view %3 : !mask
  %4 = plan.buffer constant tensor<4x4x3x3xf32> <[0, 1, 2, 3]> = dense<1.0> : tensor<4x4x3x3xf32>
  %w = plan.view %4 : !w
  %5 = plan.buffer arena tensor<1x4x32x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %a = plan.view %5 : !x
  %6 = plan.buffer arena tensor<1x4x32x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %b = plan.view %6 : !x
  %7 = plan.buffer arena tensor<1x4x32x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %c = plan.view %7 : !x
  %8 = plan.buffer arena tensor<1x4x16x24xf32, #dovetail.sharding<@mesh, [{}, {}, {}, {}]>> <[0, 2, 3, 1]>
  %y = plan.view %8 : !y
  %9 = plan.buffer arena tensor<i64, #dovetail.sharding<@mesh, []>> <[]>
  %half = plan.view %9 : !count
  plan.input "x" %x {dovetail.counts = array<i64: -1, -1, 0, -1>} : !x
  plan.input "N" %n {dovetail.count} : !count
  plan.output "y" %y {dovetail.counts = array<i64: -1, -1, 1, -1>} : !y
  plan.output "y:2" %half {dovetail.count} : !count
  plan.launch @mask(%rows, %n) -> (%mask) loops [1, 1, 32, 1] : (!rows, !count) -> (!mask)
  // What follows reads no rows behind a length.
  // CHECK: plan.convolution
  // CHECK-SAME: loops [1, 4, 32 until <[1], 0, 1, 0, 4, 0>, 24, 4, 3, 3]
  plan.convolution %x, %w -> %a loops [1, 4, 32, 24, 4, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !w -> !x
  // CHECK: plan.launch @clear
  // CHECK-SAME: loops [1, 4, 32 until <[1], 0, 1, 0, 8, 1>, 24]
  plan.launch @clear(%mask, %a) -> (%b) loops [1, 4, 32, 24] : (!mask, !x) -> (!x)
  // The pool reads twice as many rows as it makes, and the convolution a row more.
  // CHECK: plan.convolution
  // CHECK-SAME: loops [1, 4, 32 until <[1], 0, 1, 0, 8, 0>, 24, 4, 3, 3]
  plan.convolution %b, %w -> %c loops [1, 4, 32, 24, 4, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] : !x, !w -> !x
  // CHECK: plan.pool
  // CHECK-SAME: loops [1, 4, 16 until <[1], 0, 2, 0, 4, 0>, 24, 2, 1]
  plan.pool <max> %c -> %y loops [1, 4, 16, 24, 2, 1] reads [(d0, d1, 2*d2 + d4, d3 + d5)] : !x -> !y
  plan.launch @half(%n) -> (%half) loops [] : (!count) -> (!count)
}
