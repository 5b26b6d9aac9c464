// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-to-plan{target=cuda memory=device math=tf32})' | FileCheck %s

// What the graph says is emitted: a later pass may have changed it. Here the reshard has memory of its own, the sum is
// not an epilogue, and what depends on constants alone is computed in each run.

dovetail.mesh @mesh = ["y" = 2]

!own = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 5, 8}, {}]>>
!part = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>

// CHECK: plan.kernel @kernel0(%[[A:.*]]: tensor<4x4xf32>) layouts [<[1, 0], [4, 4]>] -> [<[0, 1], [4, 4]>] attributes {static_loops = array<i64: 0, 1>}
// CHECK-NEXT: %[[E:.*]] = dovetail.exp %[[A]] : (tensor<4x4xf32>)
// CHECK-NEXT: plan.yield %[[E]]
// CHECK: plan.kernel @kernel1(%{{.*}}: tensor<8x4xf32>) layouts [<[0, 1], [?, 4]>] -> [<[0, 1], [?, 4]>] attributes {static_loops = array<i64: 1>}
// CHECK-NEXT: %[[C:.*]] = dovetail.constant dense<1.0
// CHECK-NEXT: dovetail.add %{{.*}}, %[[C]] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
// CHECK: plan.program @graph mesh @mesh target "cuda" on device math tf32
// CHECK: plan.prologue {
// CHECK-NEXT: plan.reorder
// CHECK-NEXT: }
// CHECK: plan.input "x" %[[X:.*]] :
// CHECK: plan.output "output0" %[[Y:.*]] :
// CHECK: plan.launch @kernel0(%{{.*}}) -> (%[[W:.*]]) loops [4, 4]
// CHECK: plan.exchange %[[X]] -> %[[PART:.*]] :
// CHECK: plan.matmul %[[PART]], %[[W]] -> %[[PRODUCT:.*]] loops [8 by <{"y" : 0, 4, 8}>, 4, 4] reads [(d0, d2), (d2, d1)] {post_ops = [#plan.post_op<relu>]}
// CHECK: plan.launch @kernel1(%[[PRODUCT]]) -> (%[[Y]]) loops [8 by <{"y" : 0, 4, 8}>, 4]
func.func @graph(%x: !own {dovetail.name = "x"}) -> !part {
  %w = dovetail.constant dense_resource<weights> : tensor<4x4xf32>
  %copy = plan.convert_format %w {plan.prologue} : tensor<4x4xf32>
  %e = plan.group(%a = %copy) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = dovetail.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %0 : tensor<4x4xf32>
  }
  %part = dovetail.reshard %x : !own -> !part
  %p = plan.group(%a = %part, %b = %e) by "any" : (!part, tensor<4x4xf32>) -> !part {
    %0 = dovetail.matmul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}, {}]>} : (!part, tensor<4x4xf32>) -> !part
    %1 = dovetail.relu %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}]>} : (!part) -> !part
    plan.yield %1 : !part
  }
  %y = plan.group(%a = %p) : (!part) -> !part {
    %one = dovetail.constant dense<1.0> : tensor<f32>
    %0 = dovetail.add %a, %one {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}]>} : (!part, tensor<f32>) -> !part
    plan.yield %0 : !part
  }
  plan.storage arena !own <[0, 1]> of %x : !own
  plan.storage constant tensor<4x4xf32> <[0, 1]> of %w : tensor<4x4xf32>
  plan.storage persistent tensor<4x4xf32> <[1, 0]> of %copy : tensor<4x4xf32>
  plan.storage arena tensor<4x4xf32> <[0, 1]> of %e : tensor<4x4xf32>
  plan.storage arena !part <[0, 1]> of %part : !part
  plan.storage arena !part <[0, 1]> of %p : !part
  plan.storage arena !part <[0, 1]> of %y : !part
  return %y : !part
}
