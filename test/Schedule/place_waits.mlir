// RUN: dovetail-opt %s --split-input-file --plan-place-waits | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --plan-place-waits --plan-place-waits | FileCheck %s

// A halo: who reads what ranks receive waits for it, just before. The memory of x is given to another value when it has
// been read for the last time, so others must have read their halos by then. At the end nothing is under way.

dovetail.mesh @mesh = ["y" = 2]

!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @halo
plan.program @halo mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %3 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %x = plan.view %0 "x" : !cut
  %wideX = plan.view %0 : !halo
  %y = plan.view %1 "y" : !cut
  %wideY = plan.view %1 : !halo
  %z = plan.view %2 "z" : !cut
  %other = plan.view %3 "other" : !cut
  plan.input "x" %x : !cut
  // CHECK: %[[FIRST:.*]] = plan.exchange {{.*}} {step_name = "first"}
  plan.exchange %x -> %wideX {step_name = "first"} : !cut -> !halo
  // A rank's own part is there before, during and after the exchange.
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "own"}
  plan.launch @neg(%x) -> (%other) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "own"} : (!cut) -> (!cut)
  // CHECK-NEXT: plan.wait complete(%[[FIRST]]) {step_name = "first"}
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "wide"}
  plan.launch @neg(%wideX) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "wide"} : (!halo) -> (!cut)
  // No memory is given away here.
  // CHECK-NEXT: %[[SECOND:.*]] = plan.exchange {{.*}} {step_name = "second"}
  plan.exchange %y -> %wideY {step_name = "second"} : !cut -> !halo
  // CHECK-NEXT: plan.wait complete(%[[SECOND]]) read(%[[FIRST]]) {step_name = "second"}
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "last"}
  plan.launch @neg(%wideY) -> (%z) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "last"} : (!halo) -> (!cut)
  plan.output "z" %z : !cut
  plan.output "other" %other : !cut
  // CHECK: plan.wait read(%[[SECOND]]) {step_name = "second"}
  // CHECK-NEXT: }
}

// -----

// What a step writes over is complete, and read: sources and targets alike. A part of a collective is not left alone by
// it, so whoever reads it waits. Exchanges wait for exchanges, too. The prologue has waits of its own.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x8xf32>>
!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @writes
plan.program @writes mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %2 = plan.buffer persistent tensor<8x8xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %4 = plan.buffer constant tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]> = dense<1.0> : tensor<8x8xf32>
  %5 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %part = plan.view %0 "part" : !cut
  %all = plan.view %0 "all" : !all
  %more = plan.view %1 "more" : !all
  %kept = plan.view %2 "kept" : !all
  %temporary = plan.view %3 "temporary" : !cut
  %one = plan.view %4 "one" : !cut
  %out = plan.view %5 "out" : !cut
  // CHECK: plan.prologue
  plan.prologue {
    // CHECK-NEXT: plan.launch
    plan.launch @neg(%one) -> (%temporary) loops [8 by <{"y" : 0, 4, 8}>, 8] : (!cut) -> (!cut)
    // CHECK-NEXT: %[[KEPT:.*]] = plan.exchange
    plan.exchange %temporary -> %kept by all_gather : !cut -> !all
    // CHECK-NEXT: plan.wait complete(%[[KEPT]]) read(%[[KEPT]])
    // CHECK-NEXT: }
  }
  plan.input "part" %part : !cut
  // CHECK: %[[GATHER:.*]] = plan.exchange
  plan.exchange %part -> %all by all_gather : !cut -> !all
  // CHECK-NEXT: plan.wait complete(%[[GATHER]])
  // CHECK-NEXT: %[[NEXT:.*]] = plan.exchange
  plan.exchange %part -> %more by all_gather : !cut -> !all
  // CHECK-NEXT: plan.wait complete(%[[NEXT]]) read(%[[GATHER]], %[[NEXT]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "over"}
  plan.launch @neg(%kept) -> (%all) loops [8, 8] {step_name = "over"} : (!all) -> (!all)
  // CHECK-NEXT: plan.launch
  // CHECK-NOT: plan.wait
  plan.launch @neg(%all) -> (%more) loops [8, 8] : (!all) -> (!all)
  plan.output "more" %more : !all
}

// -----

// A library call has memory of its own, which may be that of a value that is not needed any more.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x8xf32>>
!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

// CHECK-LABEL: plan.program @scratch
plan.program @scratch mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %part = plan.view %0 : !cut
  %all = plan.view %1 : !all
  %a = plan.view %2 : !all
  %b = plan.view %3 : !all
  plan.input "part" %part : !cut
  plan.input "a" %a : !all
  plan.input "b" %b : !all
  // CHECK: %[[GATHER:.*]] = plan.exchange
  plan.exchange %part -> %all : !cut -> !all
  // A copy needs no memory, and that of b is its own.
  // CHECK-NEXT: plan.reorder
  plan.reorder %a -> %b : !all -> !all
  // CHECK-NEXT: plan.wait complete(%[[GATHER]]) read(%[[GATHER]])
  // CHECK-NEXT: plan.matmul
  plan.matmul %a, %a -> %b loops [8, 8, 8] reads [(d0, d2), (d2, d1)] : !all, !all -> !all
  plan.output "all" %all : !all
  plan.output "b" %b : !all
}

// -----

// What lies inside of a rank's own part is left alone by a halo, too. One row beyond it is not.

dovetail.mesh @mesh = ["y" = 2]

!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!inside = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 2), (5, 8)}, {}]>>>
!beyond = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 4), (3, 8)}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @inside
plan.program @inside mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 2), (5, 8)}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 4), (3, 8)}, {}]>> <[0, 1]>
  %x = plan.view %0 "x" : !cut
  %wide = plan.view %0 : !halo
  %some = plan.view %0 : !inside
  %more = plan.view %0 : !beyond
  %a = plan.view %1 "a" : !inside
  %b = plan.view %2 "b" : !beyond
  plan.input "x" %x : !cut
  // CHECK: %[[HALO:.*]] = plan.exchange
  plan.exchange %x -> %wide : !cut -> !halo
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "inside"}
  plan.launch @neg(%some) -> (%a) loops [8 by <{"y" : (0, 2), (5, 8)}>, 8] {step_name = "inside"} : (!inside) -> (!inside)
  // CHECK-NEXT: plan.wait complete(%[[HALO]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "beyond"}
  plan.launch @neg(%more) -> (%b) loops [8 by <{"y" : (0, 4), (3, 8)}>, 8] {step_name = "beyond"} : (!beyond) -> (!beyond)
  plan.output "x" %x : !cut
  plan.output "a" %a : !inside
  plan.output "b" %b : !beyond
  // CHECK: plan.wait read(%[[HALO]])
}

// -----

// What is received is needed by nobody, so a new value may lie there: it comes when the exchange is complete. The
// source is an output, whose memory is not given away.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x8xf32>>
!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @gone
plan.program @gone mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %2 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %x = plan.view %0 "x" : !cut
  %all = plan.view %1 "all" : !all
  %y = plan.view %2 "y" : !cut
  plan.input "x" %x : !cut
  // CHECK: %[[GATHER:.*]] = plan.exchange
  plan.exchange %x -> %all : !cut -> !all
  // CHECK-NEXT: plan.wait complete(%[[GATHER]])
  // CHECK-NEXT: plan.launch
  plan.launch @neg(%x) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] : (!cut) -> (!cut)
  plan.output "x" %x : !cut
  plan.output "y" %y : !cut
  // CHECK: plan.wait read(%[[GATHER]])
}

// -----

// Each move of an exchange counts: the second one leaves the rank's own part alone, brings the halo, and has a source
// that others read.

dovetail.mesh @mesh = ["y" = 2]

!all = !plan.ref<tensor<8x8xf32>>
!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @moves
plan.program @moves mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %2 = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %3 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %4 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>> <[0, 1]>
  %x = plan.view %0 "x" : !cut
  %wide = plan.view %0 : !halo
  %part = plan.view %1 "part" : !cut
  %all = plan.view %2 "all" : !all
  %y = plan.view %3 "y" : !cut
  %z = plan.view %4 "z" : !cut
  plan.input "x" %x : !cut
  plan.input "part" %part : !cut
  // CHECK: %[[BOTH:.*]] = plan.exchange
  plan.exchange %part, %x -> %all, %wide : !cut, !cut -> !all, !halo
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "own"}
  plan.launch @neg(%x) -> (%y) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "own"} : (!cut) -> (!cut)
  // CHECK-NEXT: plan.wait complete(%[[BOTH]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "wide"}
  plan.launch @neg(%wide) -> (%z) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "wide"} : (!halo) -> (!cut)
  // CHECK-NEXT: plan.wait read(%[[BOTH]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "over"}
  plan.launch @neg(%part) -> (%x) loops [8 by <{"y" : 0, 4, 8}>, 8] {step_name = "over"} : (!cut) -> (!cut)
  plan.output "x" %x : !cut
  plan.output "y" %y : !cut
  plan.output "z" %z : !cut
  plan.output "part" %part : !cut
  plan.output "all" %all : !all
  // CHECK-NOT: plan.wait
}

// -----

// What is not sent may be written while the exchange is under way, as the loops say, or as little as the value is. One
// row more, on one rank, has to wait; so does what lies in the halo.

dovetail.mesh @mesh = ["y" = 2]

!cut = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>>
!halo = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>>
!inside = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 3), (5, 8)}, {}]>>>
!outside = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (4, 5), (3, 4)}, {}]>>>

plan.kernel @neg(%x: tensor<8x8xf32>) layouts [<[0, 1], [?, 8]>] -> [<[0, 1], [?, 8]>] {
  %0 = dovetail.neg %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  plan.yield %0 : tensor<8x8xf32>
}

// CHECK-LABEL: plan.program @written
plan.program @written mesh @mesh target "cpu" {
  %0 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>> <[0, 1]>
  %x = plan.view %0 "x" : !cut
  %wide = plan.view %0 : !halo
  %some = plan.view %0 : !inside
  %beyond = plan.view %0 : !outside
  %y = plan.view %1 "y" : !cut
  %inY = plan.view %1 : !inside
  %beyondY = plan.view %1 : !outside
  plan.input "x" %x : !cut
  plan.input "y" %y : !cut
  // CHECK: %[[FIRST:.*]] = plan.exchange {{.*}} {step_name = "first"}
  plan.exchange %x -> %wide {step_name = "first"} : !cut -> !halo
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "value"}
  plan.launch @neg(%inY) -> (%some) loops [8 by <{"y" : (0, 3), (5, 8)}>, 8] {step_name = "value"} : (!inside) -> (!inside)
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "loops"}
  plan.launch @neg(%y) -> (%x) loops [8 by <{"y" : (0, 3), (5, 8)}>, 8] {step_name = "loops"} : (!cut) -> (!cut)
  // CHECK-NEXT: plan.wait complete(%[[FIRST]]) read(%[[FIRST]])
  // CHECK-NEXT: plan.reorder
  plan.reorder %y -> %x : !cut -> !cut
  // CHECK-NEXT: %[[SECOND:.*]] = plan.exchange {{.*}} {step_name = "second"}
  plan.exchange %x -> %wide {step_name = "second"} : !cut -> !halo
  // CHECK-NEXT: plan.wait complete(%[[SECOND]]) read(%[[SECOND]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "sent"}
  plan.launch @neg(%y) -> (%x) loops [8 by <{"y" : (0, 3), (4, 8)}>, 8] {step_name = "sent"} : (!cut) -> (!cut)
  // CHECK-NEXT: %[[THIRD:.*]] = plan.exchange {{.*}} {step_name = "third"}
  plan.exchange %x -> %wide {step_name = "third"} : !cut -> !halo
  // CHECK-NEXT: plan.wait complete(%[[THIRD]]) read(%[[THIRD]])
  // CHECK-NEXT: plan.launch {{.*}} {step_name = "brought"}
  plan.launch @neg(%beyondY) -> (%beyond) loops [8 by <{"y" : (4, 5), (3, 4)}>, 8] {step_name = "brought"} : (!outside) -> (!outside)
  plan.output "x" %x : !cut
  // CHECK-NOT: plan.wait
}
