// RUN: dovetail-opt %s | dovetail-opt | FileCheck %s
// RUN: dovetail-opt %s --cse --dovetail-fold-constants | FileCheck %s

// Whatever constants they read, and however alike they are, what a loop carries is neither folded nor merged.

// CHECK-LABEL: func.func @carried
// CHECK: %[[ON:.*]] = dovetail.iter_arg %{{.*}} {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
// CHECK: %[[X:.*]] = dovetail.iter_arg %{{.*}} {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[SUM:.*]] = dovetail.add %[[X]], %[[X]]
// CHECK: %[[NEXT:.*]] = dovetail.yield %[[X]], %[[SUM]] {loop = 0 : i64, slot = 1 : i64}
// CHECK: dovetail.yield %[[ON]], %{{.*}} {loop = 0 : i64, slot = 0 : i64}
// CHECK: %[[LEFT:.*]] = dovetail.loop_result %[[X]], %[[NEXT]] {loop = 0 : i64, slot = 1 : i64}
// CHECK: return %[[LEFT]]
func.func @carried() -> tensor<4xf32> {
  %true = dovetail.constant dense<true> : tensor<i1>
  %false = dovetail.constant dense<false> : tensor<i1>
  %one = dovetail.constant dense<1.0> : tensor<4xf32>
  %on = dovetail.iter_arg %true {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %one {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.yield %x, %0 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.yield %on, %false {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %3 = dovetail.loop_result %x, %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
