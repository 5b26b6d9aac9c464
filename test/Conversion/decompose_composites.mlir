// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-decompose-composites))' | FileCheck %s

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
