// RUN: dovetail-opt %s --split-input-file --dovetail-lower-graph | FileCheck %s

// What is computed of what it takes the place of is written over that; what changes places is copied when all of it is
// there. What was there before a loop is never written over in it.

dovetail.mesh @mesh = ["y" = 1]

// CHECK: plan.kernel @[[SUM:.*]](%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>) {{.*}}in_place = 0
// CHECK-LABEL: plan.program @order
// CHECK: plan.launch {{.*}} -> (%[[ON:.*]]) loops [] {{.*}}: (!{{.*}}) -> (!{{.*}})
// CHECK-NEXT: plan.launch {{.*}} -> (%[[X:.*]]) loops [8]
// CHECK-NEXT: plan.launch {{.*}} -> (%[[Y:.*]]) loops [8]
// CHECK-NEXT: plan.launch {{.*}} -> (%[[Z:.*]]) loops [8]
// CHECK-NEXT: plan.repeat %[[ON]]
// CHECK-NEXT: plan.launch @[[SUM]](%[[Z]], %{{.*}}) -> (%{{.*}})
// CHECK-NEXT: plan.launch {{.*}}(%[[Y]]) -> (%[[NEXTX:.*]]) loops [8]
// CHECK-NEXT: plan.launch {{.*}}(%[[X]]) -> (%[[NEXTY:.*]]) loops [8]
// CHECK-NEXT: plan.launch {{.*}} -> (%[[NEXTON:.*]]) loops []
// CHECK-NEXT: plan.reorder %[[NEXTON]] -> %[[ON]]
// CHECK-NEXT: plan.reorder %[[NEXTX]] -> %[[X]]
// CHECK-NEXT: plan.reorder %[[NEXTY]] -> %[[Y]]
// CHECK-NEXT: plan.end
// CHECK-NEXT: plan.launch {{.*}}(%[[X]]) ->
// CHECK-NEXT: plan.launch {{.*}}(%[[Y]]) ->
// CHECK-NEXT: plan.launch {{.*}}(%[[Z]]) ->
func.func @order(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %on = dovetail.iter_arg %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %y = dovetail.iter_arg %b {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %z = dovetail.iter_arg %c {loop = 0 : i64, slot = 3 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = dovetail.add %z, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = dovetail.yield %x, %y {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = dovetail.yield %y, %x {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = dovetail.yield %z, %0 {loop = 0 : i64, slot = 3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = dovetail.yield %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %5 = dovetail.loop_result %x, %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = dovetail.loop_result %y, %2 {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %7 = dovetail.loop_result %z, %3 {loop = 0 : i64, slot = 3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %5, %6, %7 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// What comes from before the loop is read again in the next iteration, and is not computed again in each; what is still
// to be read in an iteration stays until its end.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-NOT: in_place
// CHECK-LABEL: plan.program @again
// CHECK: plan.launch {{.*}}(%{{.*}}) -> (%[[EXP:.*]]) loops [8]
// CHECK: plan.repeat
// CHECK-NEXT: plan.launch {{.*}}(%[[EXP]], %[[X:.*]]) -> (%[[NEXTX:.*]]) loops [8]
// CHECK-NEXT: plan.launch {{.*}}(%[[X]]) -> (%[[NEXTY:.*]]) loops [8]
// CHECK: plan.reorder %[[NEXTX]] -> %[[X]]
// CHECK-NEXT: plan.reorder %[[NEXTY]] -> %{{.*}}
// CHECK-NEXT: plan.end
func.func @again(%begins: tensor<i1>, %goes: tensor<i1>, %a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %on = dovetail.iter_arg %begins {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>) -> tensor<i1>
  %x = dovetail.iter_arg %a {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %y = dovetail.iter_arg %a {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = dovetail.exp %a : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dovetail.add %0, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = dovetail.yield %x, %1 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = dovetail.yield %y, %x {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = dovetail.yield %on, %goes {loop = 0 : i64, slot = 0 : i64} : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %5 = dovetail.loop_result %x, %2 {loop = 0 : i64, slot = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = dovetail.loop_result %y, %3 {loop = 0 : i64, slot = 2 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %5, %6 : tensor<8xf32>, tensor<8xf32>
}
