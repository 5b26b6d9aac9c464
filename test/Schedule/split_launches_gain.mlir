// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-split-launches{cluster=h100 engine=streams})' | FileCheck %s --check-prefixes=CHECK,STREAMS
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(plan-split-launches)' | FileCheck %s --check-prefixes=CHECK,THREADS

// A large value takes longer than the exchange of its halo by streams. Threads copy the halo themselves, so the interior
// would wait for it, too.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>>>
!halo = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>>>

plan.kernel @shift(%x: tensor<64x4096x4096xf32>) layouts [<[0, 1, 2], [64, ?, 4096]>] -> [<[0, 1, 2], [64, ?, 4096]>] {
  %0 = dovetail.pad %x {low = array<i64: 0, -1, 0>, high = array<i64: 0, 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<64x4096x4096xf32>) -> tensor<64x4096x4096xf32>
  plan.yield %0 : tensor<64x4096x4096xf32>
}

// CHECK-LABEL: plan.program @large
plan.program @large mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %y = plan.view %1 : !own
  // CHECK: plan.exchange
  plan.exchange %own -> %halo : !own -> !halo
  // STREAMS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : (0, 2047), (2048, 4096)}>, 4096]
  // STREAMS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : (2047, 2048), (4096, 4096)}>, 4096]
  // THREADS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096]
  // CHECK-NEXT: }
  plan.launch @shift(%halo) -> (%y) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!halo) -> (!own)
}

// -----

// Two launches of a small value take longer than the time between the end of one and the end of the exchange.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 16}, {}]>>>
!halo = !plan.ref<tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 9), (8, 16)}, {}]>>>

plan.kernel @shift(%x: tensor<16x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.pad %x {low = array<i64: -1, 0>, high = array<i64: 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  plan.yield %0 : tensor<16x8xf32>
}

// CHECK-LABEL: plan.program @small
plan.program @small mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 9), (8, 16)}, {}]>> <[0, 1]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 16}, {}]>> <[0, 1]>
  %y = plan.view %1 : !own
  // CHECK: plan.exchange
  plan.exchange %own -> %halo : !own -> !halo
  // CHECK-NEXT: plan.launch @shift{{.*}} loops [16 by <{"y" : 0, 8, 16}>, 8]
  // CHECK-NEXT: }
  plan.launch @shift(%halo) -> (%y) loops [16 by <{"y" : 0, 8, 16}>, 8] : (!halo) -> (!own)
}

// -----

// A second launch comes when the first one has waited for the exchange.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>>>
!halo = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>>>

plan.kernel @shift(%x: tensor<64x4096x4096xf32>) layouts [<[0, 1, 2], [64, ?, 4096]>] -> [<[0, 1, 2], [64, ?, 4096]>] {
  %0 = dovetail.pad %x {low = array<i64: 0, -1, 0>, high = array<i64: 0, 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<64x4096x4096xf32>) -> tensor<64x4096x4096xf32>
  plan.yield %0 : tensor<64x4096x4096xf32>
}

// CHECK-LABEL: plan.program @twice
plan.program @twice mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %y = plan.view %1 : !own
  %2 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %z = plan.view %2 : !own
  plan.exchange %own -> %halo : !own -> !halo
  // STREAMS-COUNT-3: plan.launch @shift
  // THREADS-COUNT-2: plan.launch @shift
  // CHECK-NOT: plan.launch
  plan.launch @shift(%halo) -> (%y) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!halo) -> (!own)
  plan.launch @shift(%halo) -> (%z) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!halo) -> (!own)
}

// -----

// A value that is large is sent before all of it is computed, where who reads it has nothing to do meanwhile: it reads
// what all of it depends on. Where half of it can be computed meanwhile, that hides the exchange already.

dovetail.mesh @mesh = ["y" = 2]
!own = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>>>
!halo = !plan.ref<tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>>>
!row = !plan.ref<tensor<64x2x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}, {}]>>>

plan.kernel @neg(%x: tensor<64x4096x4096xf32>) layouts [<[0, 1, 2], [64, ?, 4096]>] -> [<[0, 1, 2], [64, ?, 4096]>] {
  %0 = dovetail.neg %x : (tensor<64x4096x4096xf32>) -> tensor<64x4096x4096xf32>
  plan.yield %0 : tensor<64x4096x4096xf32>
}
plan.kernel @shift(%x: tensor<64x4096x4096xf32>) layouts [<[0, 1, 2], [64, ?, 4096]>] -> [<[0, 1, 2], [64, ?, 4096]>] {
  %0 = dovetail.pad %x {low = array<i64: 0, -1, 0>, high = array<i64: 0, 1, 0>, mode = #dovetail.pad_mode<constant>} : (tensor<64x4096x4096xf32>) -> tensor<64x4096x4096xf32>
  plan.yield %0 : tensor<64x4096x4096xf32>
}
plan.kernel @last(%x: tensor<64x4096x4096xf32>) layouts [<[0, 1, 2], [64, ?, 4096]>] -> [<[0, 1, 2], [64, ?, 4096]>] {
  %0 = dovetail.slice %x {starts = array<i64: 0, 2048, 0>, sizes = array<i64: 64, 2, 4096>, steps = array<i64: 1, 2047, 1>} : (tensor<64x4096x4096xf32>) -> tensor<64x2x4096xf32>
  plan.yield %0 : tensor<64x2x4096xf32>
}

// CHECK-LABEL: plan.program @writer
plan.program @writer mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %x = plan.view %0 : !own
  %1 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %own = plan.view %1 : !own
  %halo = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<64x2x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 2}, {}]>> <[0, 1, 2]>
  %y = plan.view %2 : !row
  plan.input "x" %x : !own
  // STREAMS: plan.launch @neg{{.*}} loops [64, 4096 by <{"y" : (0, 0), (2048, 2049)}>, 4096]
  // STREAMS-NEXT: plan.exchange
  // STREAMS-NEXT: plan.launch @neg{{.*}} loops [64, 4096 by <{"y" : (0, 2048), (2049, 4096)}>, 4096]
  // STREAMS-NEXT: plan.launch @last{{.*}} loops [64, 2 by <{"y" : 0, 1, 2}>, 4096]
  // THREADS: plan.launch @neg{{.*}} loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096]
  // THREADS-NEXT: plan.exchange
  plan.launch @neg(%x) -> (%own) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @last(%halo) -> (%y) loops [64, 2 by <{"y" : 0, 1, 2}>, 4096] : (!halo) -> (!row)
}

// CHECK-LABEL: plan.program @reader
plan.program @reader mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %x = plan.view %0 : !own
  %1 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %own = plan.view %1 : !own
  %halo = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 2048, 4096}, {}]>> <[0, 1, 2]>
  %y = plan.view %2 : !own
  plan.input "x" %x : !own
  // CHECK: plan.launch @neg{{.*}} loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096]
  // CHECK-NEXT: plan.exchange
  // STREAMS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : (0, 2047), (2048, 4096)}>, 4096]
  // STREAMS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : (2047, 2048), (4096, 4096)}>, 4096]
  // THREADS-NEXT: plan.launch @shift{{.*}} loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096]
  plan.launch @neg(%x) -> (%own) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!own) -> (!own)
  plan.exchange %own -> %halo : !own -> !halo
  plan.launch @shift(%halo) -> (%y) loops [64, 4096 by <{"y" : 0, 2048, 4096}>, 4096] : (!halo) -> (!own)
}

// What an exchange or a repeat comes before takes no time to compute.
// CHECK-LABEL: plan.program @exchanges
plan.program @exchanges mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %own = plan.view %0 : !own
  %halo = plan.view %0 : !halo
  %1 = plan.buffer arena tensor<64x4096x4096xf32, #dovetail.sharding<@mesh, [{}, {"y" : (0, 2049), (2048, 4096)}, {}]>> <[0, 1, 2]>
  %other = plan.view %1 : !own
  %wide = plan.view %1 : !halo
  %2 = plan.buffer arena tensor<i1> <[]>
  %on = plan.view %2 : !plan.ref<tensor<i1>>
  plan.input "own" %own : !own
  plan.input "other" %other : !own
  plan.input "on" %on : !plan.ref<tensor<i1>>
  // CHECK: plan.exchange
  // CHECK-NEXT: plan.exchange
  // CHECK-NEXT: plan.repeat
  // CHECK-NEXT: plan.exchange
  // CHECK-NEXT: plan.end
  plan.exchange %own -> %halo : !own -> !halo
  plan.exchange %other -> %wide : !own -> !halo
  plan.repeat %on : !plan.ref<tensor<i1>>
  plan.exchange %own -> %halo : !own -> !halo
  plan.end
}
