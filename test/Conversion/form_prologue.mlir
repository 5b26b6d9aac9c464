// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels,dovetail-form-prologue))' | FileCheck %s

// What depends on constants alone, steps between ranks included, and what depends on nothing at all.

dovetail.mesh @mesh = ["y" = 2]

!split = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>

// CHECK-LABEL: func.func @constants
// CHECK: dovetail.constant
// CHECK-NOT: plan.prologue
// CHECK: dovetail.reshard {{.*}}plan.prologue
// CHECK: plan.group({{.*}}) attributes {{.*}}plan.prologue}
// CHECK-NEXT: dovetail.exp
// CHECK: plan.group() attributes {{.*}}plan.prologue}
// CHECK-NEXT: dovetail.constant
// CHECK-NEXT: dovetail.constant
// CHECK-NEXT: dovetail.div
// CHECK-NOT: plan.prologue
func.func @constants(%x: !split) -> (!split, !split, tensor<4xf32>) {
  %c = dovetail.constant dense_resource<weights> : tensor<8x4xf32>
  %r = dovetail.reshard %c : tensor<8x4xf32> -> !split
  %0 = dovetail.exp %r {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 8}, {}]>} : (!split) -> !split
  %one = dovetail.constant dense<1.0> : tensor<4xf32>
  %three = dovetail.constant dense<3.0> : tensor<4xf32>
  %1 = dovetail.div %one, %three : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.add %x, %c {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 3, 8}, {}]>} : (!split, tensor<8x4xf32>) -> !split
  return %0, %2, %1 : !split, !split, tensor<4xf32>
}

// What takes less memory if it is computed in each run is not in the prologue, and neither is what is computed of it.

// CHECK-LABEL: func.func @each_run
// CHECK: plan.group{{.*}}plan.each_run
// CHECK-NOT: plan.prologue
// CHECK: return
func.func @each_run(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %c = dovetail.constant dense_resource<weights> : tensor<8x6xi8>
  %w = dovetail.cast %c {to = f32, plan.each_run} : (tensor<8x6xi8>) -> tensor<8x6xf32>
  %0 = dovetail.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
