// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-loops))' | FileCheck %s

// What does not depend on the loop comes before it, what reads its result behind it, and all else between. What is
// computed there is what comes next; else there is a copy of it, as nothing takes a place before all is read.

// CHECK-LABEL: func.func @order
// CHECK-SAME: (%[[BEGINS:.*]]: tensor<i1>, %[[GOES:.*]]: tensor<i1>, %[[A:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[EXP:.*]] = dovetail.exp %[[A]]
// CHECK-NEXT: %[[ON:.*]] = dovetail.iter_arg %[[BEGINS]]
// CHECK-NEXT: %[[X:.*]] = dovetail.iter_arg %[[A]]
// CHECK-NEXT: plan.begin_loop %[[ON]] : tensor<i1>
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[X]], %[[EXP]]
// CHECK-NEXT: %[[NEXTON:.*]] = dovetail.yield %[[GOES]], %[[GOES]]
// CHECK-NEXT: plan.end_loop %[[ON]], %[[X]] becomes %[[NEXTON]], %[[SUM]] : tensor<i1>, tensor<4xf32> becomes tensor<i1>, tensor<4xf32>
// CHECK-NEXT: %[[LEFT:.*]] = dovetail.loop_result %[[X]], %[[X]]
// CHECK-NEXT: %[[NEG:.*]] = dovetail.neg %[[LEFT]]
// CHECK-NEXT: return %[[NEG]]
func.func @order(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.iter_arg %begins {loop = 7 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.yield %x, %1 {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = dovetail.loop_result %x, %2 {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = dovetail.neg %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = dovetail.yield %on, %goes {loop = 7 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  return %4 : tensor<4xf32>
}

// -----

// All that an inner loop carries begins anew in each iteration of the outer one, whatever it begins with.

// CHECK-LABEL: func.func @nested
// CHECK: dovetail.iter_arg {{.*}}loop = 0
// CHECK-NEXT: dovetail.iter_arg {{.*}}loop = 0
// CHECK-NEXT: plan.begin_loop
// CHECK: dovetail.iter_arg {{.*}}loop = 1
// CHECK-NEXT: dovetail.iter_arg {{.*}}loop = 1
// CHECK-NEXT: plan.begin_loop
// CHECK-NEXT: dovetail.mul
// CHECK: plan.end_loop
// CHECK: dovetail.loop_result {{.*}}loop = 1
// CHECK: plan.end_loop
// CHECK: dovetail.loop_result {{.*}}loop = 0
func.func @nested(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.iter_arg %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %innerOn = dovetail.iter_arg %begins {loop = 1 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %y = dovetail.iter_arg %a {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.mul %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.yield %y, %0 {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.yield %innerOn, %goes {loop = 1 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %3 = dovetail.loop_result %y, %1 {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = dovetail.yield %x, %3 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = dovetail.yield %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %6 = dovetail.loop_result %x, %4 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// -----

// A loop of whose results nobody reads any is none.

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.iter_arg %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.yield %x, %0 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.yield %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %3 = dovetail.loop_result %x, %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
