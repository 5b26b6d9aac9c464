// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-split-launches{always})' | FileCheck %s

// Rows next to those of other ranks are boundaries, those at the border of the image are not. A rank with one row has
// no interior, one without rows has nothing at all. The interior reads the rank's own part.

dovetail.mesh @mesh = ["y" = 4]
!own = !plan.ref<tensor<1x1x16x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 6, 7, 7, 16}, {}]>>>
!halo = !plan.ref<tensor<1x1x16x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 7), (5, 8), (0, 0), (6, 16)}, {}]>>>

plan.kernel @blur(%x: tensor<1x1x16x8xf32>) layouts [<[0, 1, 2, 3], [1, 1, ?, 8]>] -> [<[0, 1, 2, 3], [1, 1, ?, 8]>] attributes {static_loops = array<i64: 0, 1, 3>} {
  %0 = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  %1 = dovetail.exp %0 : (tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  plan.yield %1 : tensor<1x1x16x8xf32>
}

// CHECK-LABEL: plan.program @rows
plan.program @rows mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x1x16x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 7), (5, 8), (0, 0), (6, 16)}, {}]>> <[0, 1, 2, 3]>
  // CHECK: %[[OWN:.*]] = plan.view
  // CHECK: %[[HALO:.*]] = plan.view
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<1x1x16x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 6, 7, 7, 16}, {}]>> <[0, 1, 2, 3]>
  // CHECK: %[[Y:.*]] = plan.view
  %y = plan.view %1 : !own
  // CHECK: plan.exchange %[[OWN]] -> %[[HALO]]
  plan.exchange %own -> %halo : !own -> !halo
  // CHECK-NEXT: plan.launch @blur(%[[OWN]]) -> (%[[Y]]) loops [1, 1, 16 by <{"y" : (0, 5), (6, 6), (7, 7), (8, 16)}>, 8] {step_name = "blur (interior)"}
  // CHECK-NEXT: plan.launch @blur(%[[HALO]]) -> (%[[Y]]) loops [1, 1, 16 by <{"y" : (0, 0), (6, 6), (7, 7), (7, 8)}>, 8] {step_name = "blur (boundary)"}
  // CHECK-NEXT: plan.launch @blur(%[[HALO]]) -> (%[[Y]]) loops [1, 1, 16 by <{"y" : (5, 6), (6, 7), (7, 7), (16, 16)}>, 8] {step_name = "blur (boundary)"}
  // CHECK-NEXT: }
  plan.launch @blur(%halo) -> (%y) loops [1, 1, 16 by <{"y" : 0, 6, 7, 7, 16}>, 8] {step_name = "blur"} : (!halo) -> (!own)
}

// -----

// Two dimensions: the boundary of the second one is within the interior of the first.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!own = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {"x" : 0, 4, 8}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (4, 8)}, {"x" : (0, 5), (4, 8)}]>>>

plan.kernel @corner(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, ?]>] -> [<[0, 1], [?, ?]>] {
  %0 = dovetail.pad %x {low = array<i64: -1, -1>, high = array<i64: 1, 1>, mode = #dovetail.pad_mode<constant>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @corners
plan.program @corners mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (4, 8)}, {"x" : (0, 5), (4, 8)}]>> <[0, 1]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {"x" : 0, 4, 8}]>> <[0, 1]>
  %y = plan.view %1 : !own
  plan.exchange %own -> %halo : !own -> !halo
  // CHECK: plan.launch {{.*}} loops [8 by <{"y" : (0, 3), (4, 8)}>, 8 by <{"x" : (0, 3), (4, 8)}>]
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (3, 4), (8, 8)}>, 8 by <{"x" : 0, 4, 8}>]
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (0, 3), (4, 8)}>, 8 by <{"x" : (3, 4), (8, 8)}>]
  // CHECK-NOT: plan.launch
  plan.launch @corner(%halo) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8 by <{"x" : 0, 4, 8}>] : (!halo) -> (!own)
}

// -----

// Not split: what a collective brings, what reads the parts of all ranks, and what somebody has written to since.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!all = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>>

plan.kernel @copy(%x: tensor<8x8xf32>) layouts [<[0, 1], [8, 8]>] -> [<[0, 1], [?, 8]>] attributes {static_loops = array<i64: 1>} {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}
plan.kernel @sum(%x: tensor<8x8xf32>) layouts [<[0, 1], [8, 8]>] -> [<[0, 1], [?, 8]>] attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %1 = dovetail.sub %x, %0 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  plan.yield %1 : tensor<8x8xf32>
}
plan.kernel @write(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [8, 8]>] attributes {static_loops = array<i64: 1>} {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @whole
// CHECK-COUNT-4: plan.launch
// CHECK-NOT: plan.launch
plan.program @whole mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %all = plan.view %0 : !all
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %y = plan.view %1 : !own
  plan.exchange %own -> %all by all_gather : !own -> !all
  plan.launch @copy(%all) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] : (!all) -> (!own)
  plan.exchange %own -> %all : !own -> !all
  plan.launch @sum(%all) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8, 8] : (!all) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @write(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] : (!own) -> (!own)
  plan.launch @copy(%halo) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] : (!halo) -> (!own)
}

// -----

// A library call is split alike; its epilogue stays with each part. What reads the rank's own part alone stays whole.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>>>
!halo = !plan.ref<tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {}]>>>
!out = !plan.ref<tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>>>

// CHECK-LABEL: plan.program @convolution
plan.program @convolution mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {}]>> <[0, 1, 2, 3]>
  // CHECK: %[[OWN:.*]] = plan.view
  // CHECK: %[[HALO:.*]] = plan.view
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer constant tensor<8x4x3x3xf32> <[0, 1, 2, 3]> = dense<1.0> : tensor<8x4x3x3xf32>
  %w = plan.view %1 : !plan.ref<tensor<8x4x3x3xf32>>
  %2 = plan.buffer constant tensor<8x4x1x1xf32> <[0, 1, 2, 3]> = dense<1.0> : tensor<8x4x1x1xf32>
  %point = plan.view %2 : !plan.ref<tensor<8x4x1x1xf32>>
  %3 = plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>> <[0, 1, 2, 3]>
  %y = plan.view %3 : !out
  %4 = plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>> <[0, 1, 2, 3]>
  %z = plan.view %4 : !out
  // CHECK: plan.exchange
  plan.exchange %own -> %halo : !own -> !halo
  // CHECK-NEXT: plan.convolution %[[OWN]], %{{.*}} -> %[[Y:[0-9]+]] loops [1, 8, 10 by <{"y" : (0, 4), (6, 10)}>, 10, 4, 3, 3] {{.*}}post_ops = [#plan.post_op<relu>], step_name = "conv (interior)"
  // CHECK-NEXT: plan.convolution %[[HALO]], %{{.*}} -> %[[Y]] loops [1, 8, 10 by <{"y" : (0, 0), (5, 6)}>, 10, 4, 3, 3] {{.*}}post_ops = [#plan.post_op<relu>], step_name = "conv (boundary)"
  // CHECK-NEXT: plan.convolution %[[HALO]], %{{.*}} -> %[[Y]] loops [1, 8, 10 by <{"y" : (4, 5), (10, 10)}>, 10, 4, 3, 3] {{.*}}post_ops = [#plan.post_op<relu>], step_name = "conv (boundary)"
  plan.convolution %halo, %w -> %y loops [1, 8, 10 by <{"y" : 0, 5, 10}>, 10, 4, 3, 3]
      reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] {post_ops = [#plan.post_op<relu>], step_name = "conv"}
      : !halo, !plan.ref<tensor<8x4x3x3xf32>> -> !out
  // CHECK-NEXT: plan.convolution %[[HALO]], %{{.*}} -> %{{.*}} loops [1, 8, 10 by <{"y" : 0, 5, 10}>, 10, 4, 1, 1] {{.*}}step_name = "point"
  // CHECK-NOT: plan.convolution
  plan.convolution %halo, %point -> %z loops [1, 8, 10 by <{"y" : 0, 5, 10}>, 10, 4, 1, 1]
      reads [(d0, d4, d2 + d5, d3 + d6), (d1, d4, d5, d6)] {step_name = "point"}
      : !halo, !plan.ref<tensor<8x4x1x1xf32>> -> !out
}
