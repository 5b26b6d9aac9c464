// RUN: dovetail-opt %s --dovetail-choose-shardings="following=inputs" | FileCheck %s --check-prefixes=CHECK,INPUTS
// RUN: dovetail-opt %s --dovetail-choose-shardings="following=evenly" | FileCheck %s --check-prefixes=CHECK,EVENLY

// To compare with, decisions follow the inputs, one operation after the other. The product has rows as its first operand
// has them, and its sums along what was split then are the transposed one's. What no split reaches is whole, or divided
// where that moves nothing.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>

// CHECK-LABEL: func.func @follow
// CHECK: dovetail.matmul %arg0, %arg1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 8}, {}, {}]>}
// CHECK: dovetail.matmul %arg1, %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 3, 8}]>}
// INPUTS: dovetail.exp %arg1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>}
// EVENLY: dovetail.exp %arg1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{{.*}}"y" : {{.*}}]>}
func.func @follow(%x: !rows, %w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = dovetail.matmul %x, %w : (!rows, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = dovetail.matmul %w, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = dovetail.exp %w : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}
