// RUN: dovetail-opt %s --plan-place-waits --plan-split-reductions --plan-place-waits | FileCheck %s

// Parts of a reduction are a value of their own. When they are added, the memory of what was exchanged may be somebody
// else's already: that of the result, here.

dovetail.mesh @mesh = ["y" = 2]

!cut = !plan.ref<tensor<6x20000xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 6}, {}]>>>
!halo = !plan.ref<tensor<6x20000xf32, #dovetail.sharding<@mesh, [{"y" : (0, 4), (2, 6)}, {}]>>>
!sums = !plan.ref<tensor<6x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 6}, {}]>>>

plan.kernel @sum(%x: tensor<6x20000xf32>) layouts [<[0, 1], [?, 20000]>] -> [<[0, 1], [?, 1]>] attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x20000xf32>) -> tensor<6x1xf32>
  plan.yield %0 : tensor<6x1xf32>
}

plan.program @main mesh @mesh target "cuda" on device {
  %0 = plan.buffer arena tensor<6x20000xf32, #dovetail.sharding<@mesh, [{"y" : (0, 4), (2, 6)}, {}]>> <[0, 1]>
  %1 = plan.buffer arena tensor<6x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 6}, {}]>> <[0, 1]>
  %x = plan.view %0 : !cut
  %wide = plan.view %0 : !halo
  %y = plan.view %1 : !sums
  plan.input "x" %x : !cut
  // CHECK: %[[EVENT:.*]] = plan.exchange
  plan.exchange %x -> %wide : !cut -> !halo
  // CHECK-NEXT: plan.wait complete(%[[EVENT]])
  // CHECK-NEXT: plan.launch @sum_parts(
  // CHECK-NEXT: plan.wait read(%[[EVENT]])
  // CHECK-NEXT: plan.launch @sum(
  plan.launch @sum(%wide) -> (%y) loops [6 by <{"y" : 0, 3, 6}>, 1, 20000] : (!halo) -> (!sums)
  plan.output "y" %y : !sums
}
