// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-loops))' | FileCheck %s

// What does not depend on the loop comes before it, what reads its result behind it, and all else between. What is
// computed there is what comes next; else there is a copy of it, as nothing takes a place before all is read.

// CHECK-LABEL: func.func @order
// CHECK-SAME: (%[[BEGINS:.*]]: tensor<i1>, %[[GOES:.*]]: tensor<i1>, %[[A:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[EXP:.*]] = dovetail.exp %[[A]]
// CHECK-NEXT: %[[ON:.*]] = dovetail.carry %[[BEGINS]]
// CHECK-NEXT: %[[X:.*]] = dovetail.carry %[[A]]
// CHECK-NEXT: plan.begin_loop %[[ON]] : tensor<i1>
// CHECK-NEXT: %[[SUM:.*]] = dovetail.add %[[X]], %[[EXP]]
// CHECK-NEXT: %[[NEXTON:.*]] = dovetail.next %[[GOES]], %[[GOES]]
// CHECK-NEXT: plan.end_loop %[[ON]], %[[X]] becomes %[[NEXTON]], %[[SUM]] : tensor<i1>, tensor<4xf32> becomes tensor<i1>, tensor<4xf32>
// CHECK-NEXT: %[[LEFT:.*]] = dovetail.leave %[[X]], %[[X]]
// CHECK-NEXT: %[[NEG:.*]] = dovetail.neg %[[LEFT]]
// CHECK-NEXT: return %[[NEG]]
func.func @order(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.carry %begins {loop = 7 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.carry %a {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.next %x, %1 {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = dovetail.leave %x, %2 {loop = 7 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = dovetail.neg %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = dovetail.next %on, %goes {loop = 7 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  return %4 : tensor<4xf32>
}

// -----

// All that an inner loop carries begins anew in each iteration of the outer one, whatever it begins with.

// CHECK-LABEL: func.func @nested
// CHECK: dovetail.carry {{.*}}loop = 0
// CHECK-NEXT: dovetail.carry {{.*}}loop = 0
// CHECK-NEXT: plan.begin_loop
// CHECK: dovetail.carry {{.*}}loop = 1
// CHECK-NEXT: dovetail.carry {{.*}}loop = 1
// CHECK-NEXT: plan.begin_loop
// CHECK-NEXT: dovetail.mul
// CHECK: plan.end_loop
// CHECK: dovetail.leave {{.*}}loop = 1
// CHECK: plan.end_loop
// CHECK: dovetail.leave {{.*}}loop = 0
func.func @nested(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.carry %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.carry %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %innerOn = dovetail.carry %begins {loop = 1 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %y = dovetail.carry %a {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.mul %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.next %y, %0 {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.next %innerOn, %goes {loop = 1 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %3 = dovetail.leave %y, %1 {loop = 1 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = dovetail.next %x, %3 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = dovetail.next %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %6 = dovetail.leave %x, %4 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// -----

// A loop of whose results nobody reads any is none.

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %on = dovetail.carry %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.carry %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = dovetail.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dovetail.next %x, %0 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = dovetail.next %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %3 = dovetail.leave %x, %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
