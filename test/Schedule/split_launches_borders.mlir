// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-split-launches{always})' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-split-launches{always},plan-place-waits)' | FileCheck %s --check-prefix=WAITS

// What other ranks need comes first, then the exchange, then the rest. A rank with one row sends all of it, and one
// without rows nothing; at the border of the image nothing is sent. Nobody waits for the exchange but who reads a halo.

dovetail.mesh @mesh = ["y" = 4]
!own = !plan.ref<tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 7, 7, 16}, {}]>>>
!halo = !plan.ref<tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 7), (5, 8), (0, 0), (6, 16)}, {}]>>>

plan.kernel @neg(%x: tensor<16x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<16x8xf32>) -> tensor<16x8xf32>
  plan.yield %0 : tensor<16x8xf32>
}
plan.kernel @sum(%x: tensor<16x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.pad %x {low = array<i64: -1, 0>, high = array<i64: 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %1 = dovetail.pad %x {low = array<i64: 1, 0>, high = array<i64: -1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %2 = dovetail.add %0, %1 : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  plan.yield %2 : tensor<16x8xf32>
}

// CHECK-LABEL: plan.program @rows
// WAITS-LABEL: plan.program @rows
plan.program @rows mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 7, 7, 16}, {}]>> <[0, 1]>
  %x = plan.view %0 : !own
  %1 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 7), (5, 8), (0, 0), (6, 16)}, {}]>> <[0, 1]>
  // CHECK: %[[X:.*]] = plan.view
  // CHECK: %[[OWN:.*]] = plan.view
  // CHECK: %[[HALO:.*]] = plan.view
  %own = plan.view %1 : !own
  %halo = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 6, 7, 7, 16}, {}]>> <[0, 1]>
  %y = plan.view %2 : !own
  plan.input "x" %x : !own
  // CHECK: plan.launch @neg(%[[X]]) -> (%[[OWN]]) loops [16 by <{"y" : (0, 0), (6, 7), (7, 7), (7, 8)}>, 8] {step_name = "neg (border)"}
  // CHECK-NEXT: plan.launch @neg(%[[X]]) -> (%[[OWN]]) loops [16 by <{"y" : (5, 6), (7, 7), (7, 7), (16, 16)}>, 8] {step_name = "neg (border)"}
  // CHECK-NEXT: plan.exchange %[[OWN]] -> %[[HALO]]
  // CHECK-NEXT: plan.launch @neg(%[[X]]) -> (%[[OWN]]) loops [16 by <{"y" : (0, 5), (7, 7), (7, 7), (8, 16)}>, 8] {step_name = "neg (interior)"}
  // CHECK-NEXT: plan.launch @sum(%[[OWN]]) {{.*}} {step_name = "sum (interior)"}
  // CHECK-NEXT: plan.launch @sum(%[[HALO]]) {{.*}} {step_name = "sum (boundary)"}
  // CHECK-NEXT: plan.launch @sum(%[[HALO]]) {{.*}} {step_name = "sum (boundary)"}
  // CHECK-NOT: plan.launch
  // WAITS: %[[EVENT:.*]] = plan.exchange
  // WAITS-NEXT: plan.launch {{.*}} {step_name = "neg (interior)"}
  // WAITS-NEXT: plan.launch {{.*}} {step_name = "sum (interior)"}
  // WAITS-NEXT: plan.wait complete(%[[EVENT]])
  // WAITS-NEXT: plan.launch {{.*}} {step_name = "sum (boundary)"}
  // WAITS-NEXT: plan.launch {{.*}} {step_name = "sum (boundary)"}
  // WAITS: plan.wait read(%[[EVENT]])
  plan.launch @neg(%x) -> (%own) loops [16 by <{"y" : 0, 6, 7, 7, 16}>, 8] {step_name = "neg"} : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @sum(%halo) -> (%y) loops [16 by <{"y" : 0, 6, 7, 7, 16}>, 8] {step_name = "sum"} : (!halo) -> (!own)
  plan.output "y" %y : !own
}

// -----

// Two dimensions: what is sent to a rank beside is a column of the rows that are not sent; corners are in the rows.

dovetail.mesh @mesh = ["y" = 2, "x" = 2]
!own = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {"x" : 0, 3, 8}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {"x" : (0, 4), (2, 8)}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, ?]>] -> [<[0, 1], [?, ?]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @corners
plan.program @corners mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {"x" : 0, 3, 8}]>> <[0, 1]>
  %x = plan.view %0 : !own
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {"x" : (0, 4), (2, 8)}]>> <[0, 1]>
  %own = plan.view %1 : !own
  %halo = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {"x" : (0, 4), (2, 8)}]>> <[0, 1]>
  %y = plan.view %2 : !halo
  // CHECK: plan.launch {{.*}} loops [8 by <{"y" : (0, 0), (4, 5)}>, 8 by <{"x" : 0, 3, 8}>]
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (3, 4), (8, 8)}>, 8 by <{"x" : 0, 3, 8}>]
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (0, 3), (5, 8)}>, 8 by <{"x" : (0, 0), (3, 4)}>]
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (0, 3), (5, 8)}>, 8 by <{"x" : (2, 3), (8, 8)}>]
  // CHECK-NEXT: plan.exchange
  // CHECK-NEXT: plan.launch {{.*}} loops [8 by <{"y" : (0, 3), (5, 8)}>, 8 by <{"x" : (0, 2), (4, 8)}>]
  plan.launch @neg(%x) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8 by <{"x" : 0, 3, 8}>] : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @neg(%halo) -> (%y) loops [8 by <{"y" : (0, 5), (3, 8)}>, 8 by <{"x" : (0, 4), (2, 8)}>] : (!halo) -> (!halo)
}

// -----

// A library call is split alike. What reads a halo itself has been split already, and stays as it is.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>>>
!halo = !plan.ref<tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {}]>>>

// CHECK-LABEL: plan.program @convolutions
plan.program @convolutions mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>> <[0, 1, 2, 3]>
  %x = plan.view %0 : !own
  %1 = plan.buffer arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {}]>> <[0, 1, 2, 3]>
  %own = plan.view %1 : !own
  %halo = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 6), (4, 10)}, {}]>> <[0, 1, 2, 3]>
  %nextOwn = plan.view %2 : !own
  %nextHalo = plan.view %2 : !halo
  %3 = plan.buffer arena tensor<1x4x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 10}, {}]>> <[0, 1, 2, 3]>
  %y = plan.view %3 : !own
  %4 = plan.buffer constant tensor<4x4x1x1xf32> <[0, 1, 2, 3]> = dense<1.0> : tensor<4x4x1x1xf32>
  %point = plan.view %4 : !plan.ref<tensor<4x4x1x1xf32>>
  %5 = plan.buffer constant tensor<4x4x3x3xf32> <[0, 1, 2, 3]> = dense<1.0> : tensor<4x4x3x3xf32>
  %w = plan.view %5 : !plan.ref<tensor<4x4x3x3xf32>>
  // CHECK: plan.convolution {{.*}} loops [1, 4, 10 by <{"y" : (0, 0), (5, 6)}>, 10, 4, 1, 1] {{.*}}step_name = "point (border)"
  // CHECK-NEXT: plan.convolution {{.*}} loops [1, 4, 10 by <{"y" : (4, 5), (10, 10)}>, 10, 4, 1, 1] {{.*}}step_name = "point (border)"
  // CHECK-NEXT: plan.exchange
  // CHECK-NEXT: plan.convolution {{.*}} loops [1, 4, 10 by <{"y" : (0, 4), (6, 10)}>, 10, 4, 1, 1] {{.*}}step_name = "point (interior)"
  // CHECK-NEXT: plan.convolution {{.*}}step_name = "first (interior)"
  // CHECK-NEXT: plan.convolution {{.*}}step_name = "first (boundary)"
  // CHECK-NEXT: plan.convolution {{.*}}step_name = "first (boundary)"
  // CHECK-NEXT: plan.exchange
  // CHECK-NEXT: plan.convolution {{.*}}step_name = "second (interior)"
  plan.convolution %x, %point -> %own loops [1, 4, 10 by <{"y" : 0, 5, 10}>, 10, 4, 1, 1]
      reads [(d0, d4, d2 + d5, d3 + d6), (d1, d4, d5, d6)] {step_name = "point"}
      : !own, !plan.ref<tensor<4x4x1x1xf32>> -> !own
  plan.exchange %own -> %halo : !own -> !halo
  plan.convolution %halo, %w -> %nextOwn loops [1, 4, 10 by <{"y" : 0, 5, 10}>, 10, 4, 3, 3]
      reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] {step_name = "first"}
      : !halo, !plan.ref<tensor<4x4x3x3xf32>> -> !own
  plan.exchange %nextOwn -> %nextHalo : !own -> !halo
  plan.convolution %nextHalo, %w -> %y loops [1, 4, 10 by <{"y" : 0, 5, 10}>, 10, 4, 3, 3]
      reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] {step_name = "second"}
      : !halo, !plan.ref<tensor<4x4x3x3xf32>> -> !own
}

// -----

// Stay whole: what a collective sends, what another step reads before the exchange, what two exchanges send, what is
// sent into another buffer, and what reads what the exchange brings.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!all = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>>

plan.kernel @copy(%x: tensor<8x8xf32>) layouts [<[0, 1], [8, 8]>] -> [<[0, 1], [8, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @whole
// CHECK-NOT: (border)
plan.program @whole mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %all = plan.view %0 : !all
  %1 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %y = plan.view %1 : !own
  %wide = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %z = plan.view %2 : !own
  %other = plan.view %2 : !halo
  plan.launch @copy(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "a"} : (!own) -> (!own)
  plan.exchange %own -> %all by all_gather : !own -> !all
  plan.launch @copy(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "b"} : (!own) -> (!own)
  plan.launch @copy(%own) -> (%z) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "c"} : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @copy(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "d"} : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.exchange %own -> %other : !own -> !halo
  plan.launch @copy(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "e"} : (!own) -> (!own)
  plan.exchange %own -> %other : !own -> !halo
  plan.launch @copy(%wide) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "f"} : (!halo) -> (!own)
  plan.exchange %own, %y -> %halo, %wide : !own, !own -> !halo, !halo
  plan.launch @copy(%halo) -> (%z) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "g"} : (!halo) -> (!own)
}

// -----

// Where nothing comes before an exchange in its iteration, nothing is split; nor is what reports indices, or what is
// written over what it is made of.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!on = !plan.ref<tensor<i1>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [8, 8]>] -> [<[0, 1], [8, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @iterations
// CHECK-NOT: (border)
plan.program @iterations mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %y = plan.view %1 : !own
  %2 = plan.buffer arena tensor<i1> <[]>
  %on = plan.view %2 : !on
  plan.input "y" %y : !own
  plan.input "on" %on : !on
  plan.launch @neg(%y) -> (%own) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "before"} : (!own) -> (!own)
  plan.repeat %on : !on
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @neg(%halo) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "in"} : (!halo) -> (!own)
  plan.end
}
