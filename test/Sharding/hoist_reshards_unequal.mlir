// RUN: dovetail-opt %s --pass-pipeline='builtin.module(dovetail-hoist-reshards{cluster=%S/Inputs/slow.json},dovetail-verify-partition)' | FileCheck %s
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(dovetail-hoist-reshards{cluster=%S/Inputs/slow.json objective=bytes},dovetail-verify-partition)' | FileCheck %s --check-prefix=BYTES
// RUN: dovetail-opt %s --dovetail-hoist-reshards --dovetail-verify-partition | FileCheck %s --check-prefix=BYTES

// The second rank is a thousand times as slow, and has no part of the addition. To gather rows first would make it add
// all of them, for longer than the exchange saves.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<8x1xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 8}, {}]>>
!sums = tensor<8x64xf32, #dovetail.sharding<@mesh, [{"y" : 0, 8, 8}, {}]>>
!whole = tensor<8x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>
!product = tensor<64x64xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @add
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %arg0, %arg1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 8, 8}, {}]>}
// CHECK-NEXT: dovetail.reshard %[[SUM]]
// BYTES-LABEL: func.func @add
// BYTES-NEXT: %[[ROWS:.*]] = dovetail.reshard %arg0
// BYTES-NEXT: dovetail.add %[[ROWS]], %arg1
func.func @add(%x: !rows, %v: tensor<1x64xf32>, %w: tensor<64x8xf32>) -> !product {
  %0 = dovetail.add %x, %v {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 8, 8}, {}]>} : (!rows, tensor<1x64xf32>) -> !sums
  %1 = dovetail.reshard %0 : !sums -> !whole
  %2 = dovetail.matmul %w, %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {}]>} : (tensor<64x8xf32>, !whole) -> !product
  return %2 : !product
}
