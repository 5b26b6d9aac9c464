// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(dovetail-partition,dovetail-lower-graph{libraries=onednn})' | FileCheck %s

// A convolution takes its bias and activation along; its input is allocated with the halo, so that the exchange
// moves strips only; formats are channels-last.

dovetail.mesh @mesh = ["y" = 2]
!x = tensor<1x4x32x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}]>>
!y = tensor<1x8x32x20xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}]>>

// CHECK-LABEL: plan.program @convolution
// CHECK: %[[INPUT:.*]] = plan.buffer arena tensor<1x4x32x20xf32, {{.*}}{"y" : (0, 17), (15, 32)}{{.*}} <[0, 2, 3, 1]>
// CHECK: %[[OWN:.*]] = plan.view %[[INPUT]]
// CHECK: %[[HALO:.*]] = plan.view %[[INPUT]]
// CHECK: plan.exchange %[[OWN]] -> %[[HALO]]
// CHECK: plan.convolution %[[HALO]], %{{.*}} loops [1, 8, 32 by <{"y" : 0, 16, 32}>, 20, 4, 3, 3] reads [(d0, d4, d2 + d5 - 1, d3 + d6 - 1), (d1, d4, d5, d6)] post({{.*}}) {{.*}}post_ops = [#plan.post_op<add_tensor>, #plan.post_op<relu>]
// CHECK-NOT: plan.launch
func.func @convolution(%x: !x) -> !y {
  %w = dovetail.constant dense<2.0> : tensor<8x4x3x3xf32>
  %b = dovetail.constant dense<1.0> : tensor<8x1x1xf32>
  %0 = dovetail.conv %x, %w {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}, {}]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>} : (!x, tensor<8x4x3x3xf32>) -> !y
  %1 = dovetail.add %0, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}]>} : (!y, tensor<8x1x1xf32>) -> !y
  %2 = dovetail.relu %1 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 16, 32}, {}]>} : (!y) -> !y
  return %2 : !y
}

// -----

// An elementwise chain is one kernel; it is generated once, with a run-time range for the split loop.

dovetail.mesh @mesh = ["y" = 2]
!rows = tensor<40x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 10, 40}, {}]>>

// CHECK: plan.kernel @kernel0(%{{.*}}: tensor<40x8xf32>, %{{.*}}: tensor<8xf32>) layouts [<[0, 1], [?, 8]>, <[0], [8]>]
// CHECK-SAME: static_loops = array<i64: 1>
// CHECK-NEXT: mul
// CHECK-NEXT: exp
// CHECK-NOT: plan.kernel @
// CHECK: plan.launch @kernel0{{.*}} loops [40 by <{"y" : 0, 10, 40}>, 8]
func.func @chain(%a: !rows, %b: tensor<8xf32>) -> !rows {
  %0 = dovetail.mul %a, %b {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} : (!rows, tensor<8xf32>) -> !rows
  %1 = dovetail.exp %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 10, 40}, {}]>} : (!rows) -> !rows
  return %1 : !rows
}

// -----

// What depends on constants alone runs once.

dovetail.mesh @mesh = ["y" = 2]

// CHECK-LABEL: plan.program @prologue
// CHECK: plan.buffer persistent tensor<8x4xf32
// CHECK: plan.prologue
// CHECK-NEXT: plan.launch
// CHECK: plan.matmul
func.func @prologue(%a: tensor<40x8xf32>) -> tensor<40x4xf32> {
  %c = dovetail.constant dense_resource<weights> : tensor<8x4xf32>
  %0 = dovetail.exp %c : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dovetail.matmul %a, %0 : (tensor<40x8xf32>, tensor<8x4xf32>) -> tensor<40x4xf32>
  return %1 : tensor<40x4xf32>
}

// -----

// A scan by doubling reads each sum twice, at two places. In one kernel the first would be computed 64 times for each
// result: every third one is stored.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: plan.program @scan
// CHECK-COUNT-2: plan.launch
// CHECK-NOT: plan.launch
func.func @scan(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %p0 = dovetail.pad %x {low = array<i64: 1>, high = array<i64: -1>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s0 = dovetail.add %x, %p0 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %p1 = dovetail.pad %s0 {low = array<i64: 2>, high = array<i64: -2>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s1 = dovetail.add %s0, %p1 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %p2 = dovetail.pad %s1 {low = array<i64: 4>, high = array<i64: -4>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s2 = dovetail.add %s1, %p2 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %p3 = dovetail.pad %s2 {low = array<i64: 8>, high = array<i64: -8>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s3 = dovetail.add %s2, %p3 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %p4 = dovetail.pad %s3 {low = array<i64: 16>, high = array<i64: -16>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s4 = dovetail.add %s3, %p4 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %p5 = dovetail.pad %s4 {low = array<i64: 32>, high = array<i64: -32>, mode = #dovetail.pad_mode<constant>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %s5 = dovetail.add %s4, %p5 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %s5 : tensor<1024xf32>
}
