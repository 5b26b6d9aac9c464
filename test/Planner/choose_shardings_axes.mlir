// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s

// Three axes may split the four loops of this product in 5 * 5 * 5 ways, of which at most 64 are looked at: those that
// divide it most evenly, which is into eight parts, and not the ones that come first, with "z" on rows or columns. What
// moves is the sum of two terms for the 4 * 4 * 2 elements that each of eight ranks then has.

dovetail.mesh @mesh = ["x" = 2, "y" = 2, "z" = 2]
!a = tensor<8x8x8xf32, #dovetail.sharding<@mesh, [{"x" : 0, 4, 8}, {"y" : 0, 4, 8}, {"z" : 0, 4, 8}]>>
!b = tensor<8x8x2xf32, #dovetail.sharding<@mesh, [{"x" : 0, 4, 8}, {"z" : 0, 4, 8}, {}]>>

// CHECK-LABEL: func.func @many_ways
// CHECK-SAME: dovetail.expected = {bytes = 1024 : i64
// CHECK: dovetail.matmul
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"x" : 0, 4, 8}, {"y" : 0, 4, 8}, {}, {"z" : 0, 4, 8}]>
func.func @many_ways(%a: !a, %b: !b) -> tensor<8x8x2xf32> {
  %0 = dovetail.matmul %a, %b : (!a, !b) -> tensor<8x8x2xf32>
  return %0 : tensor<8x8x2xf32>
}

// -----

// Two axes split one dimension together in the order in which they are stated to. An axis of one rank splits nothing.

dovetail.mesh @mesh = ["x" = 2, "y" = 2, "unit" = 1]
!a = tensor<8x3xf32, #dovetail.sharding<@mesh, [{"y"+"x" : 0, 1, 3, 6, 8}, {}]>>

// CHECK-LABEL: func.func @order
// CHECK: dovetail.exp %arg0
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y"+"x" : 0, 1, 3, 6, 8}, {}]>
func.func @order(%a: !a) -> tensor<8x3xf32> {
  %0 = dovetail.exp %a : (!a) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}
