// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-choose-formats,dovetail-fuse-kernels,dovetail-form-prologue),dovetail-share-storage)' | FileCheck %s

// A value and its halo share memory, which is their hull; a part of a value is a view. A value that goes to other ranks
// has memory of its own, as does a sum.

dovetail.mesh @mesh = ["y" = 2]

!own = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>
!halo = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : (0, 5), (3, 8)}, {}]>>
!columns = tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 1, 4}]>>
!part = tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["y"]>>

// CHECK-LABEL: func.func @reshards
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor{{.*}}, %[[P:[a-z0-9]+]]: tensor
// CHECK: %[[HALO:.*]] = dovetail.reshard %[[X]] {plan.formats = [#plan.format<[0, 1]>]}
// CHECK: %[[VIEW:.*]] = dovetail.reshard %[[HALO]] {plan.formats = [#plan.format<[0, 1]>], plan.view}
// CHECK: %[[COLUMNS:.*]] = dovetail.reshard %[[X]] {plan.formats = [#plan.format<[0, 1]>]}
// CHECK: %[[SUM:.*]] = dovetail.reshard %[[P]] {plan.formats = [#plan.format<[0, 1]>]}
// CHECK: plan.storage arena tensor<8x4xf32, {{.*}}{"y" : (0, 5), (3, 8)}{{.*}}> <[0, 1]> of %[[X]], %[[HALO]], %[[VIEW]] :
// CHECK-NEXT: plan.storage arena tensor<8x4xf32, #dovetail.sharding<@mesh, [{}, {}]>> <[0, 1]> of %[[P]] :
// CHECK-NEXT: plan.storage arena tensor<8x4xf32, {{.*}}{"y" : 0, 1, 4}{{.*}}> <[0, 1]> of %[[COLUMNS]] :
// CHECK-NEXT: plan.storage arena tensor<8x4xf32> <[0, 1]> of %[[SUM]] :
// CHECK-NEXT: return
func.func @reshards(%x: !own, %p: !part) -> (!halo, !own, !columns, tensor<8x4xf32>) {
  %halo = dovetail.reshard %x : !own -> !halo
  %view = dovetail.reshard %halo : !halo -> !own
  %columns = dovetail.reshard %x : !own -> !columns
  %sum = dovetail.reshard %p : !part -> tensor<8x4xf32>
  return %halo, %view, %columns, %sum : !halo, !own, !columns, tensor<8x4xf32>
}

// -----

// Of a constant ranks hold what is read of it, unless it is read as a whole, too. Uniform constants, which are part of
// kernels, are nowhere in memory. What the prologue computes is kept.

dovetail.mesh @mesh = ["y" = 2]

!own = tensor<8x4xf32, #dovetail.sharding<@mesh, [{"y" : 0, 4, 8}, {}]>>

// CHECK-LABEL: func.func @constants
// CHECK: %[[A:.*]] = dovetail.constant {{.*}}<a>
// CHECK: %[[B:.*]] = dovetail.constant {{.*}}<b>
// CHECK: %[[RA:.*]] = dovetail.reshard %[[A]] {plan.formats = [#plan.format<[0, 1]>], plan.prologue, plan.view}
// CHECK: %[[RB:.*]] = dovetail.reshard %[[B]] {plan.formats = [#plan.format<[0, 1]>], plan.prologue, plan.view}
// CHECK: %[[S:.*]] = plan.group(
// CHECK-NEXT: dovetail.constant dense<2.0
// CHECK: plan.storage constant tensor<8x4xf32, {{.*}}{"y" : 0, 4, 8}{{.*}}> <[0, 1]> of %[[A]], %[[RA]] :
// CHECK-NEXT: plan.storage constant tensor<8x4xf32> <[0, 1]> of %[[B]], %[[RB]] :
// CHECK-NEXT: plan.storage persistent tensor<8x4xf32{{.*}}> <[0, 1]> of %[[S]] :
// CHECK-NEXT: return
func.func @constants() -> (!own, !own, tensor<8x4xf32>) {
  %a = dovetail.constant dense_resource<a> : tensor<8x4xf32>
  %b = dovetail.constant dense_resource<b> : tensor<8x4xf32>
  %two = dovetail.constant dense<2.0> : tensor<8x4xf32>
  %ra = dovetail.reshard %a : tensor<8x4xf32> -> !own
  %rb = dovetail.reshard %b : tensor<8x4xf32> -> !own
  %0 = dovetail.mul %ra, %two {dovetail.loops = #dovetail.loop_shardings<@mesh, [{"y" : 0, 4, 8}, {}]>} : (!own, tensor<8x4xf32>) -> !own
  return %0, %rb, %b : !own, !own, tensor<8x4xf32>
}

// -----

// What is scattered into is written over where nobody else reads it; what the user gave is not, nor what is read as
// updates.

dovetail.mesh @mesh = ["y" = 1]

// CHECK-LABEL: func.func @scatter
// CHECK: %[[N:.*]] = plan.group
// CHECK-NEXT: dovetail.neg
// CHECK: %[[S:.*]] = plan.group(%{{.*}} = %[[N]], {{.*}}) attributes {in_place = 0 : i64,
// CHECK: plan.group({{.*}}) attributes {plan.formats
// CHECK-NEXT: dovetail.scatter_nd
// CHECK: %[[E:.*]] = plan.group
// CHECK-NEXT: dovetail.exp
// CHECK: plan.group(%{{.*}} = %[[E]], {{.*}}) attributes {plan.formats
// CHECK: plan.storage arena {{.*}} of %[[N]], %[[S]] :
func.func @scatter(%x: tensor<4x4xf32>, %i: tensor<4x1xi64>, %u: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %n = dovetail.neg %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = dovetail.scatter_nd %n, %i, %u : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dovetail.scatter_nd %x, %i, %u : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = dovetail.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dovetail.scatter_nd %e, %i, %e : (tensor<4x4xf32>, tensor<4x1xi64>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
