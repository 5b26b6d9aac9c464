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

// Ranks hold more of the operand than they need, and the parts take what they need.
// CHECK-LABEL: func.func @wider
// CHECK: %[[R:.*]] = dovetail.reshard {{.*}} -> tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
// CHECK: dovetail.reduce %[[R]] {{.*}} -> tensor<40x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
// CHECK: dovetail.sub %[[R]]
// CHECK: return {{.*}} : tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
func.func @wider(%a: tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>>)
    -> tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>> {
  %0 = dovetail.softmax %a {axis = 1}
      : (tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : (0, 12), (8, 40)}, {}]>>)
      -> tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
  return %0 : tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>
}

// -----

// CHECK-LABEL: func.func private @declared
func.func private @declared(%a: tensor<4xf32>) -> tensor<4xf32>
