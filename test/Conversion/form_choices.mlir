// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-choices))' | FileCheck %s
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-choices{least-work=85}))' | FileCheck %s --check-prefix=MUCH
// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-form-choices{least-work=86}))' | FileCheck %s --check-prefix=LITTLE

// What one side alone depends on is done only where that is needed; what both do, or others, comes before.

// The larger side is 32 elements and 16 iterations of `exp`, and 48 and 64 of a product: 85 in all.

// MUCH-LABEL: func.func @sides
// MUCH: plan.begin_choice
// LITTLE-LABEL: func.func @sides
// LITTLE-NOT: plan.begin_choice
// LITTLE: return

// CHECK-LABEL: func.func @sides
// CHECK-SAME: (%[[C:.*]]: tensor<i1>, %[[A:.*]]: tensor<4x4xf32>)
// CHECK-NEXT: %[[BOTH:.*]] = dovetail.neg %[[A]]
// CHECK-NEXT: plan.begin_choice %[[C]] : tensor<i1>
// CHECK-NEXT: %[[EXP:.*]] = dovetail.exp %[[BOTH]]
// CHECK-NEXT: %[[PRODUCT:.*]] = dovetail.matmul %[[EXP]], %[[A]]
// CHECK-NEXT: plan.end_choice
// CHECK-NEXT: plan.begin_choice not %[[C]] : tensor<i1>
// CHECK-NEXT: %[[OTHER:.*]] = dovetail.matmul %[[BOTH]], %[[A]]
// CHECK-NEXT: plan.end_choice
// CHECK-NEXT: %[[FIRST:.*]] = dovetail.if %[[C]], %[[PRODUCT]], %[[OTHER]]
// CHECK-NEXT: %[[LATER:.*]] = dovetail.sqrt %[[FIRST]]
// CHECK-NEXT: %[[SECOND:.*]] = dovetail.if %[[C]], %[[BOTH]], %[[OTHER]]
// CHECK-NEXT: return %[[LATER]], %[[SECOND]]
func.func @sides(%c: tensor<i1>, %a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %both = dovetail.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = dovetail.exp %both : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.matmul %0, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dovetail.matmul %both, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = dovetail.if %c, %1, %2 {choice = 0 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = dovetail.sqrt %3 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = dovetail.if %c, %both, %2 {choice = 0 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4, %5 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A choice in one side of another.

// CHECK-LABEL: func.func @nested
// CHECK: plan.begin_choice %arg0
// CHECK-NEXT: plan.begin_choice %arg1
// CHECK-NEXT: dovetail.matmul
// CHECK-NEXT: plan.end_choice
// CHECK-NEXT: dovetail.if {{.*}}choice = 0
// CHECK-NEXT: plan.end_choice
// CHECK-NEXT: dovetail.if {{.*}}choice = 1
func.func @nested(%c: tensor<i1>, %d: tensor<i1>, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dovetail.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.if %d, %0, %a {choice = 0 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dovetail.if %c, %1, %a {choice = 1 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// What is cheap is part of the kernel that chooses; and what an iteration chooses, nobody computes before all of them.

// CHECK-LABEL: func.func @cheap
// CHECK-NOT: plan.begin_choice
func.func @cheap(%c: tensor<i1>, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dovetail.neg %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.if %c, %0, %a {choice = 0 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @repeated
// CHECK: dovetail.matmul
// CHECK-NEXT: dovetail.iter_arg
// CHECK-NEXT: dovetail.iter_arg
// CHECK-NEXT: plan.begin_loop
// CHECK-NEXT: plan.begin_choice
// CHECK-NEXT: dovetail.matmul
// CHECK-NEXT: plan.end_choice
// CHECK-NEXT: dovetail.if
// CHECK: plan.end_loop
func.func @repeated(%c: tensor<i1>, %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dovetail.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %on = dovetail.iter_arg %c {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  plan.begin_loop %on : tensor<i1>
  %1 = dovetail.matmul %x, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dovetail.if %c, %1, %0 {choice = 0 : i64} : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  plan.end_loop %on, %x becomes %c, %2 : tensor<i1>, tensor<4x4xf32> becomes tensor<i1>, tensor<4x4xf32>
  %3 = dovetail.loop_result %x, %x {loop = 0 : i64, slot = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}
