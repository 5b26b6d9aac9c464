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

// -----

// A product takes its second factor by columns, too, so what a transpose makes of it stays in the order in which it is
// read; of the first factor the library reads rows only.

// CHECK-LABEL: func.func @heads
// CHECK-SAME: plan.format = #plan.format<[0, 1, 2]>
func.func @heads(%x: tensor<1x128x512xf32>) -> tensor<1x8x128x128xf32> {
  // CHECK: dovetail.reshape {{.*}}plan.formats = [#plan.format<[0, 1, 2, 3]>]
  %0 = dovetail.reshape %x : (tensor<1x128x512xf32>) -> tensor<1x128x8x64xf32>
  // CHECK: dovetail.transpose {{.*}}permutation = array<i64: 0, 2, 1, 3>, plan.formats = [#plan.format<[0, 1, 2, 3]>]
  %q = dovetail.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x128x8x64xf32>) -> tensor<1x8x128x64xf32>
  // CHECK: dovetail.transpose {{.*}}permutation = array<i64: 0, 2, 3, 1>, plan.formats = [#plan.format<[0, 1, 3, 2]>]
  %k = dovetail.transpose %0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x128x8x64xf32>) -> tensor<1x8x64x128xf32>
  // CHECK: dovetail.matmul {{.*}}plan.formats = [#plan.format<[0, 1, 2, 3]>]
  %1 = dovetail.matmul %q, %k : (tensor<1x8x128x64xf32>, tensor<1x8x64x128xf32>) -> tensor<1x8x128x128xf32>
  return %1 : tensor<1x8x128x128xf32>
}

// -----

// What is by columns for a product is read so by a kernel between them, too.

// CHECK-LABEL: func.func @chain
func.func @chain(%a: tensor<64x64xf32>, %x: tensor<64x64xf32>, %s: tensor<1x1xf32>) -> tensor<64x64xf32> {
  // CHECK: dovetail.transpose {{.*}}plan.formats = [#plan.format<[1, 0]>]
  %0 = dovetail.transpose %x {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: dovetail.mul {{.*}}plan.formats = [#plan.format<[1, 0]>]
  %1 = dovetail.mul %0, %s : (tensor<64x64xf32>, tensor<1x1xf32>) -> tensor<64x64xf32>
  // CHECK: dovetail.matmul {{.*}}plan.formats = [#plan.format<[0, 1]>]
  %2 = dovetail.matmul %a, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// A sum of what lies in two formats reads one of them with gaps. Users get its result row-major, so it is that; where a
// convolution reads it, it is channels last.

// CHECK-LABEL: func.func @sums
// CHECK-SAME: plan.format = #plan.format<[0, 2, 3, 1]>
// CHECK-SAME: plan.format = #plan.format<[0, 1]>
func.func @sums(%x: tensor<1x4x8x8xf32>, %m: tensor<8x32xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = dovetail.constant dense<2.0> : tensor<4x4x3x3xf32>
  // CHECK: dovetail.conv {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  // CHECK: dovetail.reshape {{.*}}plan.formats = [#plan.format<[0, 1, 2, 3]>]
  %1 = dovetail.reshape %m : (tensor<8x32xf32>) -> tensor<1x4x8x8xf32>
  // CHECK: dovetail.add {{.*}}plan.formats = [#plan.format<[0, 1, 2, 3]>]
  %2 = dovetail.add %0, %1 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  // CHECK: dovetail.sub {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %3 = dovetail.sub %0, %1 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = dovetail.conv %3, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %2, %4 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// -----

// What an epilogue can do stays in the format of the call, though users get a copy in another one.

// CHECK-LABEL: func.func @epilogue
func.func @epilogue(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = dovetail.constant dense<2.0> : tensor<4x4x3x3xf32>
  // CHECK: dovetail.conv {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  // CHECK: dovetail.relu {{.*}}plan.formats = [#plan.format<[0, 2, 3, 1]>]
  %1 = dovetail.relu %0 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %1 : tensor<1x4x8x8xf32>
}

// -----

// A recurrence goes through all of its weights in each step: they lie in the order in which it does, though it says
// which of them it reads, and the states are fewer.

// CHECK-LABEL: func.func @recurrence
func.func @recurrence(%x: tensor<6x3x1x32xf32>, %h: tensor<3x32xf32>) -> tensor<6x3x32xf32> {
  // CHECK: dovetail.constant {{.*}}plan.formats = [#plan.format<[0, 1, 2]>]
  %r = dovetail.constant dense<2.0> : tensor<1x32x32xf32>
  // CHECK: dovetail.transpose {{.*}}plan.formats = [#plan.format<[0, 1, 2]>]
  %w = dovetail.transpose %r {permutation = array<i64: 0, 2, 1>} : (tensor<1x32x32xf32>) -> tensor<1x32x32xf32>
  // CHECK: dovetail.rnn {{.*}}plan.formats = [#plan.format<[0, 1, 2]>]
  %0 = dovetail.rnn %x, %w, %h {functions = ["tanh"], alphas = array<f32: 0.0>, betas = array<f32: 0.0>, clip = 0.0 : f32, reverse = false} : (tensor<6x3x1x32xf32>, tensor<1x32x32xf32>, tensor<3x32xf32>) -> tensor<6x3x32xf32>
  return %0 : tensor<6x3x32xf32>
}
