// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats{libraries=onednn}))' | FileCheck %s

// Channels last around a convolution, up to the operands and down to what follows, also through a reshard. Constants,
// matrices and what nothing prefers are row-major.

dovetail.mesh @mesh = ["y" = 2]

!own = tensor<1x4x8x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>>
!halo = tensor<1x4x8x8xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 8)}, {}]>>

// CHECK-LABEL: func.func @image
// CHECK-SAME: plan.format = #plan.format<[0, 2, 3, 1]>
// CHECK-SAME: plan.format = #plan.format<[0, 1]>
func.func @image(%x: !own, %a: tensor<8x8xf32>) -> (!own, tensor<8x8xf32>) {
  // CHECK: dovetail.constant {plan.formats = [#plan.format<[0, 1, 2, 3]>]}
  %w = dovetail.constant dense<2.0> : tensor<4x4x3x3xf32>
  // CHECK: dovetail.reshard {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %h = dovetail.reshard %x : !own -> !halo
  // CHECK: dovetail.conv {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %0 = dovetail.conv %h, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}, {}]>} : (!halo, tensor<4x4x3x3xf32>) -> !own
  // CHECK: dovetail.exp {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %1 = dovetail.exp %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 4, 8}, {}]>} : (!own) -> !own
  // CHECK: dovetail.matmul {{.*}}plan.formats = [#plan.format<[0, 1]>]
  %2 = dovetail.matmul %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : !own, tensor<8x8xf32>
}

// -----

// Each result has a format.

// CHECK-LABEL: func.func @top
func.func @top(%x: tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  // CHECK: dovetail.top_k {{.*}}plan.formats = [#plan.format<[0, 1]>, #plan.format<[0, 1]>]
  %0:2 = dovetail.top_k %x {k = 2 : i64, axis = 1 : i64, largest = true} : (tensor<4x9xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi64>
}
