// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats{libraries=onednn},dovetail-form-calls{libraries=onednn}))' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-form-calls))' | FileCheck %s --check-prefix=NONE

// NONE-NOT: plan.group

// Bounds go into the group, where they are parameters; what is added is an operand. The call stands where its last
// operation stood, behind the second convolution. An operation that no library does stays.

// CHECK-LABEL: func.func @epilogue
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8x8xf32>
// CHECK-DAG: %[[W:.*]] = dovetail.constant {{.*}} : tensor<4x4x3x3xf32>
// CHECK: %[[SHORT:.*]] = plan.group(%{{.*}} = %[[X]], %{{.*}} = %[[W]]) by "onednn" attributes {plan.formats = [#plan.format<[0, 2, 3, 1]>]}
// CHECK-NEXT: dovetail.conv
// CHECK-NEXT: plan.yield
// CHECK: %[[Y:.*]] = plan.group(%[[TENSOR:.*]] = %[[SHORT]], %[[IN:.*]] = %[[X]], %[[WEIGHTS:.*]] = %[[W]]) by "onednn" attributes {plan.formats = [#plan.format<[0, 2, 3, 1]>]}
// CHECK-NEXT: %[[SUM:.*]] = dovetail.conv %[[IN]], %[[WEIGHTS]] {dilations
// CHECK-NEXT: %[[ADDED:.*]] = dovetail.add %[[SUM]], %[[TENSOR]] :
// CHECK-NEXT: %[[LOW:.*]] = dovetail.relu %[[ADDED]] :
// CHECK-NEXT: %[[SIX:.*]] = dovetail.constant dense<6.000000e+00>
// CHECK-NEXT: %[[HIGH:.*]] = dovetail.min %[[LOW]], %[[SIX]] :
// CHECK-NEXT: plan.yield %[[HIGH]]
// CHECK: %[[E:.*]] = dovetail.exp %[[Y]] {plan.formats
// CHECK: return %[[E]]
func.func @epilogue(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = dovetail.constant dense<2.0> : tensor<4x4x3x3xf32>
  %six = dovetail.constant dense<6.0> : tensor<f32>
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  %1 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  %2 = dovetail.add %0, %1 : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = dovetail.relu %2 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %4 = dovetail.min %3, %six : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  %5 = dovetail.exp %4 : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %5 : tensor<1x4x8x8xf32>
}

// -----

// What the call reads and adds is one value at two places, each an operand: they may need different formats.

// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x4xf32>
// CHECK: plan.group(%[[A:.*]] = %[[X]], %[[B:.*]] = %[[X]], %[[C:.*]] = %[[X]]) by "onednn"
// CHECK-NEXT: %[[SUM:.*]] = dovetail.matmul %[[B]], %[[C]]
// CHECK-NEXT: dovetail.add %[[SUM]], %[[A]]
func.func @residual(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dovetail.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.add %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// No epilogue where the product is used twice, or is not complete.

dovetail.mesh @mesh = ["y" = 2]

!part = tensor<4x4xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>

// CHECK-LABEL: func.func @without
// CHECK: plan.group
// CHECK-NEXT: dovetail.matmul
// CHECK-NEXT: plan.yield
// CHECK: dovetail.relu
// CHECK: plan.group
// CHECK-NEXT: dovetail.matmul
// CHECK-NEXT: plan.yield
// CHECK: dovetail.mul
func.func @without(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, !part) {
  %0 = dovetail.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.relu %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dovetail.matmul %x, %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 1, 4}]>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> !part
  %3 = dovetail.mul %2, %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}]>} : (!part, tensor<4x4xf32>) -> !part
  return %0, %1, %3 : tensor<4x4xf32>, tensor<4x4xf32>, !part
}

// -----

// Sums of nothing, over empty rows or padding alone, are no calls.

// CHECK-LABEL: func.func @nothing_to_read
// CHECK-NOT: plan.group
// CHECK: return
func.func @nothing_to_read(%a: tensor<4x0xf32>, %b: tensor<0x4xf32>, %x: tensor<1x2x0x4xf32>) -> (tensor<4x4xf32>, tensor<1x2x2x4xf32>) {
  %0 = dovetail.matmul %a, %b : (tensor<4x0xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.pool %x {kind = #dovetail.pool_kind<average_include_pad>, kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 2, 1>, pads_high = array<i64: 2, 1>} : (tensor<1x2x0x4xf32>) -> tensor<1x2x2x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<1x2x2x4xf32>
}

// -----

// Products of more dimensions than libraries have, and convolutions whose padding would be enormous, are left to kernels.

// CHECK-LABEL: func.func @large
// CHECK: plan.group{{.*}} by "onednn"
// CHECK-NEXT: dovetail.matmul
// CHECK-NOT: plan.group
func.func @large(%a: tensor<2x1x1x1x1x1x1x1x1x1x3x4xf32>, %b: tensor<2x1x1x1x1x1x1x1x1x1x1x3x4xf32>, %w: tensor<4x5xf32>,
                 %x: tensor<1x1x3x3x3xf32>, %v: tensor<1x1x2x2x2xf32>)
    -> (tensor<2x1x1x1x1x1x1x1x1x1x3x5xf32>, tensor<2x1x1x1x1x1x1x1x1x1x1x3x5xf32>, tensor<1x1x2x2x2xf32>) {
  %0 = dovetail.matmul %a, %w : (tensor<2x1x1x1x1x1x1x1x1x1x3x4xf32>, tensor<4x5xf32>) -> tensor<2x1x1x1x1x1x1x1x1x1x3x5xf32>
  %1 = dovetail.matmul %b, %w : (tensor<2x1x1x1x1x1x1x1x1x1x1x3x4xf32>, tensor<4x5xf32>) -> tensor<2x1x1x1x1x1x1x1x1x1x1x3x5xf32>
  %2 = dovetail.conv %x, %v {strides = array<i64: 200000, 200000, 200000>, dilations = array<i64: 200000, 200000, 200000>, pads_low = array<i64: 200000, 200000, 200000>, pads_high = array<i64: 200000, 200000, 200000>} : (tensor<1x1x3x3x3xf32>, tensor<1x1x2x2x2xf32>) -> tensor<1x1x2x2x2xf32>
  return %0, %1, %2 : tensor<2x1x1x1x1x1x1x1x1x1x3x5xf32>, tensor<2x1x1x1x1x1x1x1x1x1x1x3x5xf32>, tensor<1x1x2x2x2xf32>
}

// -----

// What is to be a kernel is none of the library's.

// CHECK-LABEL: func.func @generated
// CHECK-NOT: plan.group
// CHECK: return
func.func @generated(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = dovetail.matmul %x, %w {plan.generated} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
