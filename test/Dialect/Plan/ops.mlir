// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: plan.kernel @scale(
// CHECK-SAME: tensor<1x8x10x10xf32>, {{.*}}: tensor<8x1x1xf32>)
// CHECK-SAME: layouts [<[0, 2, 3, 1], [1, 8, ?, 10]>, <[0, 1, 2], [8, 1, 1]>] -> [<[0, 2, 3, 1], [1, 8, ?, 10]>]
// CHECK-SAME: attributes {static_loops = array<i64: 0, 1, 3>}
plan.kernel @scale(%x: tensor<1x8x10x10xf32>, %s: tensor<8x1x1xf32>)
    layouts [<[0, 2, 3, 1], [1, 8, ?, 10]>, <[0, 1, 2], [8, 1, 1]>] -> [<[0, 2, 3, 1], [1, 8, ?, 10]>]
    attributes {static_loops = array<i64: 0, 1, 3>} {
  // CHECK: dovetail.mul
  %0 = dovetail.mul %x, %s : (tensor<1x8x10x10xf32>, tensor<8x1x1xf32>) -> tensor<1x8x10x10xf32>
  // CHECK: plan.yield %{{.*}} : tensor<1x8x10x10xf32>
  plan.yield %0 : tensor<1x8x10x10xf32>
}

// A sum over channels and a maximum: loops 4 (channels of the first) and 5, 6 (rows and columns of the second).
// CHECK-LABEL: plan.kernel @sums(
plan.kernel @sums(%x: tensor<1x8x10x10xf32>) layouts [<[0, 1, 2, 3], [1, 8, 10, 10]>]
    -> [<[0, 1, 2, 3], [1, 1, 1, 1]>] attributes {static_loops = array<i64: 4, 5, 6, 7>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x8x10x10xf32>) -> tensor<1x1x10x10xf32>
  %1 = dovetail.reduce %0 {axes = array<i64: 1, 2, 3>, kind = #dovetail.reduce_kind<max>} : (tensor<1x1x10x10xf32>) -> tensor<1x1x1x1xf32>
  plan.yield %1 : tensor<1x1x1x1xf32>
}

// CHECK-LABEL: plan.kernel @parts(
plan.kernel @parts(%x: tensor<4x9000xf16>) layouts [<[0, 1], [4, 9000]>] -> [<[1, 0], [4, 16]>] {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x9000xf16>) -> tensor<4x1xf16>
  // CHECK: plan.parts %{{.*}} {dim = 1 : i64} : tensor<4x1xf16> -> tensor<4x16xf32>
  %1 = plan.parts %0 {dim = 1} : tensor<4x1xf16> -> tensor<4x16xf32>
  plan.yield %1 : tensor<4x16xf32>
}

// CHECK-LABEL: plan.kernel @numbers() layouts [] -> [<[0], [8]>]
plan.kernel @numbers() layouts [] -> [<[0], [8]>] {
  %0 = dovetail.range 0.0 : f32 step 1.0 : f32 : tensor<8xf32>
  plan.yield %0 : tensor<8xf32>
}

!held = !plan.ref<tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}]>>>
!extended = !plan.ref<tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 10)}, {}]>>>
!partial = !plan.ref<tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>>

// CHECK-LABEL: plan.program @main mesh @mesh target "cpu" model "example" {
plan.program @main mesh @mesh target "cpu" model "example" {
  // CHECK: plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 10)}, {}]>> <[0, 2, 3, 1]>
  %a = plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 10)}, {}]>> <[0, 2, 3, 1]>
  %b = plan.buffer arena tensor<1x8x10x10xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 10}, {}]>> <[0, 2, 3, 1]>
  // CHECK: plan.buffer constant tensor<8x1x1xf32> <[0, 1, 2]> = dense<2.000000e+00> : tensor<8x1x1xf32>
  %c = plan.buffer constant tensor<8x1x1xf32> <[0, 1, 2]> = dense<2.0> : tensor<8x1x1xf32>
  %d = plan.buffer constant tensor<8x8x3x3xf32> <[0, 1, 2, 3]> = dense_resource<weights> : tensor<8x8x3x3xf32>
  // CHECK: plan.buffer persistent tensor<8x8x3x3xf32> <[0, 1, 2, 3]>
  %e = plan.buffer persistent tensor<8x8x3x3xf32> <[0, 1, 2, 3]>
  %f = plan.buffer arena tensor<8x8xf32> <[0, 1]>
  %g = plan.buffer arena tensor<8xf32> <[0]>

  %h = plan.buffer arena tensor<4x64x1xf32> <[0, 1, 2]>
  %i = plan.buffer arena tensor<4x33x2xf32> <[0, 1, 2]>
  %lines = plan.view %h : !plan.ref<tensor<4x64x1xf32>>
  %spectra = plan.view %i : !plan.ref<tensor<4x33x2xf32>>
  // CHECK: plan.view %{{.*}} "x" : ![[HELD:.*]]
  %x = plan.view %a "x" : !held
  %wide = plan.view %a : !extended
  %y = plan.view %b : !held
  %scale = plan.view %c : !plan.ref<tensor<8x1x1xf32>>
  %weights = plan.view %d : !plan.ref<tensor<8x8x3x3xf32>>
  %packed = plan.view %e : !plan.ref<tensor<8x8x3x3xf32>>
  %parts = plan.view %f : !partial
  %sum = plan.view %f : !plan.ref<tensor<8x8xf32>>
  %line = plan.view %g : !plan.ref<tensor<8xf32>>
  // CHECK: plan.input "image" %{{.*}} : ![[HELD]]
  plan.input "image" %x : !held
  // CHECK: plan.output "mask" %{{.*}} : ![[HELD]]
  plan.output "mask" %y : !held

  // CHECK: plan.prologue {
  plan.prologue {
    // CHECK-NEXT: plan.reorder
    plan.reorder %weights -> %packed : !plan.ref<tensor<8x8x3x3xf32>> -> !plan.ref<tensor<8x8x3x3xf32>>
  }
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} {step_name = "halo"}
  plan.exchange %x -> %wide {step_name = "halo"} : !held -> !extended
  // CHECK: plan.convolution %{{.*}}, %{{.*}} -> %{{.*}} loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10, 8, 3, 3]
  // CHECK-SAME: reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] post(%{{.*}}) {
  // CHECK-SAME: post_ops = [#plan.post_op<add_tensor>, #plan.post_op<clip, alpha = 0.000000e+00 : f32, beta = 6.000000e+00 : f32>]
  plan.convolution %wide, %packed -> %y loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10, 8, 3, 3]
    reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] post(%scale : !plan.ref<tensor<8x1x1xf32>>) {
    post_ops = [#plan.post_op<add_tensor>, #plan.post_op<clip, alpha = 0.0 : f32, beta = 6.0 : f32>]
  } : !extended, !plan.ref<tensor<8x8x3x3xf32>> -> !held
  // CHECK: plan.launch @scale(%{{.*}}, %{{.*}}) -> (%{{.*}}) loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10]
  plan.launch @scale(%y, %scale) -> (%x) loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10]
    : (!held, !plan.ref<tensor<8x1x1xf32>>) -> (!held)
  // A kernel may read nothing.
  // CHECK: plan.launch @numbers() -> (%{{.*}}) loops [8] : () -> (!{{.*}})
  plan.launch @numbers() -> (%line) loops [8] : () -> (!plan.ref<tensor<8xf32>>)
  // CHECK: plan.matmul %{{.*}}, %{{.*}} -> %{{.*}} loops [8, 8, 8 by <{"y" : 0, 3, 8}>] reads [(d0, d2), (d1, d2)] :
  plan.matmul %sum, %sum -> %parts loops [8, 8, 8 by <{"y" : 0, 3, 8}>] reads [(d0, d2), (d1, d2)] : !plan.ref<tensor<8x8xf32>>, !plan.ref<tensor<8x8xf32>> -> !partial
  // CHECK: plan.pool <max> %{{.*}} -> %{{.*}} loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10, 1, 3] reads [(d0, d1, d2 + d4, d3 + 2*d5 - 2)] :
  plan.pool <max> %x -> %y loops [1, 8, 10 by <{"y" : 0, 4, 10}>, 10, 1, 3] reads [(d0, d1, d2 + d4, d3 + 2*d5 - 2)]
    : !held -> !held
  // CHECK: plan.transform %{{.*}} -> %{{.*}} loops [4 by <{"y" : 0, 1, 4}>, 33, 2, 64, 1] reads [(d0, d3, d4)] :
  plan.transform %lines -> %spectra loops [4 by <{"y" : 0, 1, 4}>, 33, 2, 64, 1] reads [(d0, d3, d4)] : !plan.ref<tensor<4x64x1xf32>> -> !plan.ref<tensor<4x33x2xf32>>
  // CHECK: plan.transform inverse %{{.*}} -> %{{.*}} loops [4, 64, 1, 33, 2] reads [(d0, d3, d4)] :
  plan.transform inverse %spectra -> %lines loops [4, 64, 1, 33, 2] reads [(d0, d3, d4)] : !plan.ref<tensor<4x33x2xf32>> -> !plan.ref<tensor<4x64x1xf32>>
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} by all_reduce in [1, 0] : !{{.*}} -> !{{.*}}
  plan.exchange %parts -> %sum by all_reduce in [1, 0] : !partial -> !plan.ref<tensor<8x8xf32>>
  // Messages are the default.
  // CHECK: plan.exchange %{{.*}} -> %{{.*}} : !{{.*}} -> !{{.*}}
  plan.exchange %parts -> %sum by messages : !partial -> !plan.ref<tensor<8x8xf32>>
  // Several moves at once.
  // CHECK: %[[EVENT:.*]] = plan.exchange %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} in [1, 0], [0, 1, 2, 3] : !{{.*}}, !{{.*}} -> !{{.*}}, !{{.*}}
  %event = plan.exchange %parts, %x -> %sum, %wide in [1, 0], [0, 1, 2, 3] : !partial, !held -> !plan.ref<tensor<8x8xf32>>, !extended
  // CHECK: plan.wait complete(%[[EVENT]])
  plan.wait complete(%event)
  // CHECK: plan.wait complete(%[[EVENT]], %[[EVENT]]) read(%[[EVENT]]) {step_name = "all"}
  plan.wait complete(%event, %event) read(%event) {step_name = "all"}
  // CHECK: plan.wait read(%[[EVENT]])
  plan.wait read(%event)
}

// The default is not printed.
// CHECK: plan.program @rounded mesh @mesh target "cuda" on device math tf32 {
plan.program @rounded mesh @mesh target "cuda" on device math tf32 {
}
// CHECK: plan.program @exact mesh @mesh target "cuda" on device {
plan.program @exact mesh @mesh target "cuda" on device math f32 {
}

{-#
  dialect_resources: { builtin: { weights: "0x0400000000000000" } }
#-}
