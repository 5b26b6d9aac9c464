// RUN: dovetail-opt %s --dovetail-choose-shardings --split-input-file | FileCheck %s
// RUN: dovetail-opt %s --dovetail-choose-shardings=explain --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LIMITED

// Three axes may split the four loops of this product in 5 * 5 * 5 ways, of which at most 64 are looked at: among them
// those that follow what is stated, and not the ones that come first, with "z" on rows or columns. What moves is the sum
// of two terms for the 4 * 4 * 2 elements that each of eight ranks then has.

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

// -----

// Five axes may split three dimensions in 4^5 ways, of which those are made in which what axes split changes once from one
// axis to the next; but what is stated is followed however it changes, with the axis that is left on what is left.

dovetail.mesh @mesh = ["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2]
!x = tensor<4x4x4096xf32, #dovetail.sharding<@mesh, [{"a"+"c" : 0, 1, 2, 3, 4}, {"b"+"d" : 0, 1, 2, 3, 4}, {}]>>

// CHECK-LABEL: func.func @stated_in_turns
// CHECK: dovetail.exp %arg0
// CHECK-SAME: [{"a"+"c" : 0, 1, 2, 3, 4}, {"b"+"d" : 0, 1, 2, 3, 4}, {"e" : 0, 2048, 4096}]
func.func @stated_in_turns(%a: !x) -> tensor<4x4x4096xf32> {
  %0 = dovetail.exp %a : (!x) -> tensor<4x4x4096xf32>
  return %0 : tensor<4x4x4096xf32>
}

// -----

// Nothing is stated: all of 32 ranks are of use, along two loops.

dovetail.mesh @mesh = ["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2]

// CHECK-LABEL: func.func @many_axes
// CHECK-SAME: dovetail.expected = {bytes = 0 : i64
// CHECK: dovetail.exp %arg0
// CHECK-SAME: dovetail.loops = #dovetail.loop_shardings<@mesh, [{"{{.*}}}, {"{{.*}}}, {}]>
// LIMITED: remark: the mesh has many axes, so the search did not try all ways to split 1 of its 1 operations
func.func @many_axes(%a: tensor<16x4x3xf32>) -> tensor<16x4x3xf32> {
  %0 = dovetail.exp %a : (tensor<16x4x3xf32>) -> tensor<16x4x3xf32>
  return %0 : tensor<16x4x3xf32>
}
