// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels,dovetail-form-prologue,dovetail-place-gathers))' | FileCheck %s
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels,dovetail-form-prologue,dovetail-place-gathers{ahead}))' | FileCheck %s --check-prefix=AHEAD
// RUN: dovetail-opt %s --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels,dovetail-form-prologue,dovetail-place-gathers),dovetail-share-storage)' | FileCheck %s --check-prefix=STORAGE

// What ranks store of a weight is there from the beginning; it is gathered for the step that reads it, once more for one
// that reads it later, once for two that follow each other. A layer ahead is before the last step that reads weights,
// gathered or not, or the first step.

dovetail.mesh @mesh = ["y" = 2]

!rows = tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
!pieces = tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>>
!whole = tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>>

// CHECK-LABEL: func.func @layers
// CHECK: %[[W:.*]] = dovetail.constant
// CHECK-NEXT: %[[PIECES:.*]] = dovetail.reshard %[[W]] {{.*}}plan.prologue
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.exp
// CHECK: %[[FIRST:.*]] = dovetail.reshard %[[PIECES]]
// CHECK-NOT: plan.prologue
// CHECK-SAME: : tensor
// CHECK-NEXT: plan.group({{.*}}%[[FIRST]]
// CHECK: dovetail.matmul
// CHECK-NOT: dovetail.reshard
// CHECK: plan.group({{.*}}%[[FIRST]]
// CHECK: dovetail.matmul
// CHECK-NOT: dovetail.reshard
// CHECK: dovetail.matmul
// CHECK: %[[SECOND:.*]] = dovetail.reshard %[[PIECES]]
// CHECK-NEXT: plan.group({{.*}}%[[SECOND]]
// CHECK: dovetail.matmul
// CHECK-NOT: dovetail.reshard
// CHECK: return

// AHEAD-LABEL: func.func @layers
// AHEAD: dovetail.reshard {{.*}}plan.prologue
// AHEAD: %[[FIRST:.*]] = dovetail.reshard
// AHEAD-NEXT: plan.group
// AHEAD: dovetail.exp
// AHEAD: plan.group({{.*}}%[[FIRST]]
// AHEAD: plan.group({{.*}}%[[FIRST]]
// AHEAD: %[[SECOND:.*]] = dovetail.reshard
// AHEAD-NEXT: plan.group({{.*}}tensor<8x8xf32>) ->
// AHEAD-NOT: dovetail.reshard
// AHEAD: plan.group({{.*}}%[[SECOND]]

// Of the constant ranks have pieces; what is gathered lies elsewhere.

// STORAGE-LABEL: func.func @layers
// STORAGE: plan.storage constant tensor<8x8xf32, #dovetail.sharding<@mesh, [{"y" : 0, 3, 8}, {}]>> {{.*}} of %[[W:[a-z0-9_]+]], %[[PIECES:[a-z0-9_]+]] :
// STORAGE-COUNT-2: plan.storage arena tensor<8x8xf32, #dovetail.sharding<@mesh, [{}, {}]>> {{.*}} of %{{[a-z0-9_]+}} :

#all = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}, {}]>
func.func @layers(%x: !rows) -> !rows {
  %w = dovetail.constant dense_resource<w> : tensor<8x8xf32>
  %held = dovetail.constant dense_resource<held> : tensor<8x8xf32>
  %0 = dovetail.exp %x {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}]>} : (!rows) -> !rows
  %pieces = dovetail.reshard %w : tensor<8x8xf32> -> !pieces
  %gathered = dovetail.reshard %pieces : !pieces -> !whole
  %1 = dovetail.matmul %0, %gathered {dovetail.loops = #all} : (!rows, !whole) -> !rows
  %2 = dovetail.matmul %1, %gathered {dovetail.loops = #all} : (!rows, !whole) -> !rows
  %3 = dovetail.matmul %2, %held {dovetail.loops = #all} : (!rows, tensor<8x8xf32>) -> !rows
  %4 = dovetail.matmul %3, %gathered {dovetail.loops = #all} : (!rows, !whole) -> !rows
  return %4 : !rows
}
