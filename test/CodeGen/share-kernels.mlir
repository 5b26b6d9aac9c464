// RUN: dovetail-opt %s --plan-share-kernels | FileCheck %s

dovetail.mesh @mesh = ["y" = 1]

// CHECK: plan.kernel @first
plan.kernel @first(%x: tensor<4xf32>, %y: tensor<4xf32>) layouts [<[0], [4]>, <[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.sub %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
// CHECK-NOT: plan.kernel @same
plan.kernel @same(%a: tensor<4xf32>, %b: tensor<4xf32>) layouts [<[0], [4]>, <[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
// Equal operations, connected in another way.
// CHECK: plan.kernel @swapped
plan.kernel @swapped(%x: tensor<4xf32>, %y: tensor<4xf32>) layouts [<[0], [4]>, <[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.sub %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
// CHECK: plan.kernel @dynamic
plan.kernel @dynamic(%x: tensor<4xf32>, %y: tensor<4xf32>) layouts [<[0], [4]>, <[0], [?]>] -> [<[0], [4]>] {
  %0 = dovetail.sub %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
// CHECK: plan.kernel @leaky
plan.kernel @leaky(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.leaky_relu %x {alpha = 0.1 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}
// CHECK: plan.kernel @leakier
plan.kernel @leakier(%x: tensor<4xf32>) layouts [<[0], [4]>] -> [<[0], [4]>] {
  %0 = dovetail.leaky_relu %x {alpha = 0.2 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.yield %0 : tensor<4xf32>
}

!ref = !plan.ref<tensor<4xf32>>
plan.program @main mesh @mesh target "cpu" {
  %a = plan.buffer arena tensor<4xf32> <[0]>
  %b = plan.buffer arena tensor<4xf32> <[0]>
  %x = plan.view %a : !ref
  %y = plan.view %b : !ref
  %c = plan.buffer arena tensor<4xf32> <[0]>
  %z = plan.view %c : !ref
  // CHECK: plan.launch @first
  plan.launch @first(%x, %x) -> (%y) loops [4] : (!ref, !ref) -> (!ref)
  // CHECK-NEXT: plan.launch @first
  plan.launch @same(%x, %x) -> (%z) loops [4] : (!ref, !ref) -> (!ref)
  // CHECK-NEXT: plan.launch @swapped
  plan.launch @swapped(%x, %x) -> (%y) loops [4] : (!ref, !ref) -> (!ref)
}
