// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-convert-formats{libraries=onednn}))' | FileCheck %s

// Matrices are read row-major, and calls share copies; a tensor that is added lies as the result does anyway. What a
// window reads lies as its result.

#last = #plan.format<[0, 2, 3, 1]>

// CHECK-LABEL: func.func @copies
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8x8xf32>
// CHECK: %[[COPY:.*]] = plan.convert_format %[[X]] {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : tensor<1x4x8x8xf32>
// CHECK-NEXT: %[[A:.*]] = plan.group(%{{.*}} = %[[COPY]], %{{.*}} = %[[COPY]])
// CHECK-NOT: plan.convert_format
// CHECK: plan.group(%{{.*}} = %[[A]], %{{.*}} = %[[A]], %{{.*}} = %[[COPY]])
// CHECK: %[[BACK:.*]] = plan.convert_format %[[A]] {plan.formats = [#plan.format<[0, 2, 3, 1]>]} : tensor<1x4x8x8xf32>
// CHECK-NEXT: plan.group(%{{.*}} = %[[BACK]])
// CHECK-NOT: plan.convert_format
// CHECK: plan.group(%{{.*}} = %[[X]])
func.func @copies(%x: tensor<1x4x8x8xf32> {plan.format = #last}) -> (tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>, tensor<1x4x8x8xf32>) {
  %0 = plan.group(%a = %x, %b = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
    %p = dovetail.matmul %a, %b : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    plan.yield %p : tensor<1x4x8x8xf32>
  }
  %1 = plan.group(%a = %0, %b = %0, %c = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
    %p = dovetail.matmul %b, %c : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %s = dovetail.add %p, %a : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    plan.yield %s : tensor<1x4x8x8xf32>
  }
  %2 = plan.group(%a = %0) by "onednn" attributes {plan.formats = [#last]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
    %p = dovetail.pool %a {kind = #dovetail.pool_kind<max>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    plan.yield %p : tensor<1x4x4x4xf32>
  }
  // Kernels read whatever lies there.
  %3 = plan.group(%a = %x) attributes {plan.formats = [#plan.format<[0, 1, 2, 3]>]} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
    %p = dovetail.exp %a : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    plan.yield %p : tensor<1x4x8x8xf32>
  }
  return %1, %2, %3 : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>, tensor<1x4x8x8xf32>
}

// The second factor of a product may lie by columns, the first one not.

// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8x8xf32>
// CHECK: %[[COPY:.*]] = plan.convert_format %[[A]] {plan.formats = [#plan.format<[0, 1]>]}
// CHECK-NEXT: plan.group(%{{.*}} = %[[COPY]], %{{.*}} = %[[A]])
func.func @columns(%x: tensor<8x8xf32> {plan.format = #plan.format<[1, 0]>}) -> tensor<8x8xf32> {
  %0 = plan.group(%a = %x, %b = %x) by "onednn" attributes {plan.formats = [#plan.format<[0, 1]>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
    %p = dovetail.matmul %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    plan.yield %p : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}
