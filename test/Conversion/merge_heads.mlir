// RUN: dovetail-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dovetail-merge-heads{libraries=kernels}),dovetail-verify-partition)' | FileCheck %s

// Queries are moved apart, keys and values are parts of one tensor, of which others are read, too. What ranks compute of
// the merged result stays the same.

dovetail.mesh @mesh = ["y" = 2]
!result = tensor<2x7x12xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 7}, {}]>>
!moved = tensor<2x7x3x4xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 3, 7}, {}, {}]>>
!heads = tensor<2x3x7x4xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 3, 7}, {}]>>

// CHECK-LABEL: func.func @heads
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor{{.*}}, %[[KV:[a-z0-9]+]]: tensor
// CHECK-NEXT: %[[Y:.*]] = dovetail.attention %[[Q]], %[[KV]], %[[KV]] {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 7}, {}, {}]>,
// CHECK-SAME: heads = array<i64: 3, 3, 4, 4>, offsets = array<i64: 0, 12, 24>
// CHECK-NEXT: return %[[Y]]
func.func @heads(%q: !result, %kv: tensor<2x9x40xf32>) -> !result {
  %0 = dovetail.reshape %q {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 7}, {}, {}]>} : (!result) -> !moved
  %1 = dovetail.transpose %0 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 3, 7}, {}]>, permutation = array<i64: 0, 2, 1, 3>} : (!moved) -> !heads
  %2 = dovetail.slice %kv {starts = array<i64: 0, 0, 12>, sizes = array<i64: 2, 9, 12>, steps = array<i64: 1, 1, 1>} : (tensor<2x9x40xf32>) -> tensor<2x9x12xf32>
  %3 = dovetail.reshape %2 : (tensor<2x9x12xf32>) -> tensor<2x9x3x4xf32>
  %4 = dovetail.transpose %3 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x9x3x4xf32>) -> tensor<2x3x9x4xf32>
  %5 = dovetail.slice %kv {starts = array<i64: 0, 0, 24>, sizes = array<i64: 2, 9, 12>, steps = array<i64: 1, 1, 1>} : (tensor<2x9x40xf32>) -> tensor<2x9x12xf32>
  %6 = dovetail.reshape %5 : (tensor<2x9x12xf32>) -> tensor<2x9x3x4xf32>
  %7 = dovetail.transpose %6 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x9x3x4xf32>) -> tensor<2x3x9x4xf32>
  %8 = dovetail.attention %1, %4, %7 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {}, {"y" : 0, 3, 7}, {}, {}]>, scale = 0.5 : f32} : (!heads, tensor<2x3x9x4xf32>, tensor<2x3x9x4xf32>) -> !heads
  %9 = dovetail.transpose %8 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 7}, {}, {}]>, permutation = array<i64: 0, 2, 1, 3>} : (!heads) -> !moved
  %10 = dovetail.reshape %9 {dovetail.loops = #dovetail.loop_shardings<@mesh, [{}, {"y" : 0, 3, 7}, {}]>} : (!moved) -> !result
  return %10 : !result
}

// -----

// Keys are computed as heads, one for all, and read where they are. Every other column of values cannot be read in place.

// CHECK-LABEL: func.func @mixed
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor{{.*}}, %[[K:[a-z0-9]+]]: tensor{{.*}}, %[[V:[a-z0-9]+]]: tensor
// CHECK: %[[PART:.*]] = dovetail.slice %[[V]]
// CHECK: dovetail.attention %[[Q]], %[[K]], %[[PART]]
// CHECK-SAME: heads = array<i64: 3, 1, 4, 5>, offsets = array<i64: 0, -1, -1>
// CHECK-SAME: -> tensor<7x15xf32>
func.func @mixed(%q: tensor<7x12xf32>, %k: tensor<1x9x4xf32>, %v: tensor<1x9x10xf32>) -> tensor<7x15xf32> {
  %0 = dovetail.reshape %q : (tensor<7x12xf32>) -> tensor<7x3x4xf32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<7x3x4xf32>) -> tensor<3x7x4xf32>
  %2 = dovetail.slice %v {starts = array<i64: 0, 0, 0>, sizes = array<i64: 1, 9, 5>, steps = array<i64: 1, 1, 2>} : (tensor<1x9x10xf32>) -> tensor<1x9x5xf32>
  %3 = dovetail.attention %1, %k, %2 {scale = 0.5 : f32} : (tensor<3x7x4xf32>, tensor<1x9x4xf32>, tensor<1x9x5xf32>) -> tensor<3x7x5xf32>
  %4 = dovetail.transpose %3 {permutation = array<i64: 1, 0, 2>} : (tensor<3x7x5xf32>) -> tensor<7x3x5xf32>
  %5 = dovetail.reshape %4 : (tensor<7x3x5xf32>) -> tensor<7x15xf32>
  return %5 : tensor<7x15xf32>
}

// -----

// Heads that somebody else wants stay apart, as do those that are merged otherwise.

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: dovetail.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {scale
func.func @apart(%q: tensor<3x7x4xf32>) -> (tensor<7x12xf32>, tensor<3x7x4xf32>, tensor<12x7xf32>) {
  %0 = dovetail.attention %q, %q, %q {scale = 0.5 : f32} : (tensor<3x7x4xf32>, tensor<3x7x4xf32>, tensor<3x7x4xf32>) -> tensor<3x7x4xf32>
  %1 = dovetail.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<3x7x4xf32>) -> tensor<7x3x4xf32>
  %2 = dovetail.reshape %1 : (tensor<7x3x4xf32>) -> tensor<7x12xf32>
  %3 = dovetail.attention %q, %q, %q {scale = 1.5 : f32} : (tensor<3x7x4xf32>, tensor<3x7x4xf32>, tensor<3x7x4xf32>) -> tensor<3x7x4xf32>
  %4 = dovetail.transpose %3 {permutation = array<i64: 0, 2, 1>} : (tensor<3x7x4xf32>) -> tensor<3x4x7xf32>
  %5 = dovetail.reshape %4 : (tensor<3x4x7xf32>) -> tensor<12x7xf32>
  return %2, %0, %5 : tensor<7x12xf32>, tensor<3x7x4xf32>, tensor<12x7xf32>
}
