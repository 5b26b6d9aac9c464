// RUN: dovetail-opt %s --plan-place-weights | FileCheck %s

dovetail.mesh @mesh = ["y" = 2]

// Output channels of weights are neighbours, at one tap after the other, in the buffers of all launches of a kernel. Ranks
// hold parts of some.

// CHECK-LABEL: plan.kernel @taps
// CHECK-SAME: layouts [<[0, 2, 3, 1], [1, 16, 9, 8]>, <[2, 3, 1, 0], [?, 16, 3, 3]>]
plan.kernel @taps(%x: tensor<1x16x9x8xf32>, %w: tensor<20x16x3x3xf32>) layouts [<[0, 2, 3, 1], [1, 16, 9, 8]>, <[0, 1, 2, 3], [?, 16, 3, 3]>] -> [<[0, 2, 3, 1], [1, ?, 7, 6]>]
    attributes {static_loops = array<i64: 0, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x16x9x8xf32>, tensor<20x16x3x3xf32>) -> tensor<1x20x7x6xf32>
  plan.yield %0 : tensor<1x20x7x6xf32>
}

// With one tap there is nothing to gain.

// CHECK-LABEL: plan.kernel @tap
// CHECK-SAME: <[0, 1, 2, 3], [20, 16, 1, 1]>
plan.kernel @tap(%x: tensor<1x16x9x8xf32>, %w: tensor<20x16x1x1xf32>) layouts [<[0, 2, 3, 1], [1, 16, 9, 8]>, <[0, 1, 2, 3], [20, 16, 1, 1]>] -> [<[0, 2, 3, 1], [1, 20, 9, 8]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x16x9x8xf32>, tensor<20x16x1x1xf32>) -> tensor<1x20x9x8xf32>
  plan.yield %0 : tensor<1x20x9x8xf32>
}

// Of a transposed convolution, these are the second dimension. The second kernel shares its weights with one that reads
// them as they are.

// CHECK-LABEL: plan.kernel @transposed
// CHECK-SAME: <[2, 3, 0, 1], [16, 20, 2, 2]>
// CHECK-LABEL: plan.kernel @shared
// CHECK-SAME: <[0, 1, 2, 3], [16, 20, 2, 2]>
plan.kernel @transposed(%x: tensor<1x16x9x8xf32>, %w: tensor<16x20x2x2xf32>) layouts [<[0, 2, 3, 1], [1, 16, 9, 8]>, <[0, 1, 2, 3], [16, 20, 2, 2]>] -> [<[0, 2, 3, 1], [1, 20, 18, 16]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x16x9x8xf32>, tensor<16x20x2x2xf32>) -> tensor<1x20x18x16xf32>
  plan.yield %0 : tensor<1x20x18x16xf32>
}
plan.kernel @shared(%x: tensor<1x16x9x8xf32>, %w: tensor<16x20x2x2xf32>) layouts [<[0, 2, 3, 1], [1, 16, 9, 8]>, <[0, 1, 2, 3], [16, 20, 2, 2]>] -> [<[0, 2, 3, 1], [1, 20, 18, 16]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<1x16x9x8xf32>, tensor<16x20x2x2xf32>) -> tensor<1x20x18x16xf32>
  plan.yield %0 : tensor<1x20x18x16xf32>
}
plan.kernel @abs(%w: tensor<16x20x2x2xf32>) layouts [<[0, 1, 2, 3], [16, 20, 2, 2]>] -> [<[0, 1, 2, 3], [16, 20, 2, 2]>] attributes {static_loops = array<i64: 0, 1, 2, 3>} {
  %0 = dovetail.abs %w : (tensor<16x20x2x2xf32>) -> tensor<16x20x2x2xf32>
  plan.yield %0 : tensor<16x20x2x2xf32>
}

// So are weights that the prologue computes, by a kernel that writes them as they are to be read.

// CHECK-LABEL: plan.kernel @scale
// CHECK-SAME: layouts [<[0, 1, 2, 3], [?, 16, 3, 3]>] -> [<[2, 3, 1, 0], [?, 16, 3, 3]>]
plan.kernel @scale(%w: tensor<20x16x3x3xf32>) layouts [<[0, 1, 2, 3], [?, 16, 3, 3]>] -> [<[0, 1, 2, 3], [?, 16, 3, 3]>] attributes {static_loops = array<i64: 1, 2, 3>} {
  %0 = dovetail.abs %w : (tensor<20x16x3x3xf32>) -> tensor<20x16x3x3xf32>
  plan.yield %0 : tensor<20x16x3x3xf32>
}

!image = !plan.ref<tensor<1x16x9x8xf32>>
!part = !plan.ref<tensor<20x16x3x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 9, 20}, {}, {}, {}]>>>
!result = !plan.ref<tensor<1x20x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 9, 20}, {}, {}]>>>
!weights = !plan.ref<tensor<16x20x2x2xf32>>
!large = !plan.ref<tensor<1x20x18x16xf32>>

// CHECK: plan.program
// CHECK: plan.buffer constant tensor<20x16x3x3xf32, {{.*}}> <[2, 3, 1, 0]> = dense<1.0
// CHECK: plan.buffer constant tensor<20x16x3x3xf32, {{.*}}> <[0, 1, 2, 3]> = dense<2.0
// CHECK: plan.buffer persistent tensor<20x16x3x3xf32, {{.*}}> <[2, 3, 1, 0]>
// CHECK: plan.buffer constant tensor<20x16x1x1xf32> <[0, 1, 2, 3]>
// CHECK: plan.buffer constant tensor<16x20x2x2xf32> <[2, 3, 0, 1]> = dense<4.0
// CHECK: plan.buffer constant tensor<16x20x2x2xf32> <[0, 1, 2, 3]> = dense<5.0
plan.program @main mesh @mesh target "emulated" on device {
  %0 = plan.buffer arena tensor<1x16x9x8xf32> <[0, 2, 3, 1]>
  %1 = plan.buffer arena tensor<1x20x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 9, 20}, {}, {}]>> <[0, 2, 3, 1]>
  %2 = plan.buffer arena tensor<1x20x9x8xf32> <[0, 2, 3, 1]>
  %3 = plan.buffer arena tensor<1x20x18x16xf32> <[0, 2, 3, 1]>
  %4 = plan.buffer arena tensor<16x20x2x2xf32> <[0, 1, 2, 3]>
  %w1 = plan.buffer constant tensor<20x16x3x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 9, 20}, {}, {}, {}]>> <[0, 1, 2, 3]> = dense<1.0> : tensor<20x16x3x3xf32>
  %w2 = plan.buffer constant tensor<20x16x3x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 9, 20}, {}, {}, {}]>> <[0, 1, 2, 3]> = dense<2.0> : tensor<20x16x3x3xf32>
  %p = plan.buffer persistent tensor<20x16x3x3xf32, #dovetail.sharding<@mesh, [{"y" : 0, 9, 20}, {}, {}, {}]>> <[0, 1, 2, 3]>
  %w3 = plan.buffer constant tensor<20x16x1x1xf32> <[0, 1, 2, 3]> = dense<3.0> : tensor<20x16x1x1xf32>
  %w4 = plan.buffer constant tensor<16x20x2x2xf32> <[0, 1, 2, 3]> = dense<4.0> : tensor<16x20x2x2xf32>
  %w5 = plan.buffer constant tensor<16x20x2x2xf32> <[0, 1, 2, 3]> = dense<5.0> : tensor<16x20x2x2xf32>
  %5 = plan.buffer arena tensor<1x20x7x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 9, 20}, {}, {}]>> <[0, 2, 3, 1]>
  %6 = plan.buffer arena tensor<1x20x18x16xf32> <[0, 2, 3, 1]>
  %x = plan.view %0 : !image
  %y2 = plan.view %5 : !result
  %l2 = plan.view %6 : !large
  %y = plan.view %1 : !result
  %z = plan.view %2 : !plan.ref<tensor<1x20x9x8xf32>>
  %l = plan.view %3 : !large
  %a = plan.view %4 : !weights
  %v1 = plan.view %w1 : !part
  %v2 = plan.view %w2 : !part
  %vp = plan.view %p : !part
  %v3 = plan.view %w3 : !plan.ref<tensor<20x16x1x1xf32>>
  %v4 = plan.view %w4 : !weights
  %v5 = plan.view %w5 : !weights
  plan.prologue {
    plan.launch @scale(%v2) -> (%vp) loops [20 by <{"y" : 0, 9, 20}>, 16, 3, 3] : (!part) -> (!part)
  }
  plan.launch @taps(%x, %v1) -> (%y) loops [1, 20 by <{"y" : 0, 9, 20}>, 7, 6, 16] : (!image, !part) -> (!result)
  plan.launch @taps(%x, %vp) -> (%y2) loops [1, 20 by <{"y" : 0, 9, 20}>, 7, 6, 16] : (!image, !part) -> (!result)
  plan.launch @tap(%x, %v3) -> (%z) loops [1, 20, 9, 8, 16] : (!image, !plan.ref<tensor<20x16x1x1xf32>>) -> (!plan.ref<tensor<1x20x9x8xf32>>)
  plan.launch @transposed(%x, %v4) -> (%l) loops [1, 20, 18, 16, 16] : (!image, !weights) -> (!large)
  plan.launch @shared(%x, %v5) -> (%l2) loops [1, 20, 18, 16, 16] : (!image, !weights) -> (!large)
  plan.launch @abs(%v5) -> (%a) loops [16, 20, 2, 2] : (!weights) -> (!weights)
}
