// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-decompose-composites))' --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-NOT: dovetail.softmax
// CHECK: dovetail.reduce {{.*}}reduce_kind<max>
// CHECK: dovetail.sub
// CHECK: dovetail.exp
// CHECK: dovetail.reduce {{.*}}reduce_kind<sum>
// CHECK: dovetail.div
// CHECK: return
func.func @softmax(%a: tensor<40x8xf32>) -> tensor<40x8xf32> {
  %0 = dovetail.softmax %a {axis = 1} : (tensor<40x8xf32>) -> tensor<40x8xf32>
  return %0 : tensor<40x8xf32>
}

// -----

dovetail.mesh @mesh = ["y" = 2]

// The parts of an operation whose loops are split compute what their users need, whatever more ranks hold.
// CHECK-LABEL: func.func @wider
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.reduce %arg0 {{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}, {}]>{{.*}} -> tensor<40x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
// CHECK: dovetail.sub %arg0, {{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>
// CHECK-NOT: dovetail.reshard
// CHECK: return {{.*}} : tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
func.func @wider(%a: tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>>)
    -> tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>> {
  %0 = dovetail.softmax %a {axis = 1, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>}
      : (tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>>)
      -> tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
  return %0 : tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
}

// -----

dovetail.mesh @mesh = ["y" = 2]
!window = tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>>

// So do those of one whose windows overlap.
// CHECK-LABEL: func.func @windows
// CHECK: dovetail.reduce %arg0 {{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 12), (8, 40)}, {}, {}]>
// CHECK: dovetail.div {{.*}}dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>
// CHECK-NEXT: return
func.func @windows(%a: !window) -> !window {
  %0 = dovetail.softmax %a {axis = 1, dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>} : (!window) -> !window
  return %0 : !window
}

// -----

// CHECK-LABEL: func.func private @declared
func.func private @declared(%a: tensor<4xf32>) -> tensor<4xf32>
