// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// Each thread computes four neighbours along the innermost dimension, which all ranks hold whole: its vectors are aligned.
// The range of rows (loop 2) comes at run time.

// CHECK-LABEL: plan.kernel @elementwise
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 2, 3, 1], steps = [1, 1, 1, 4], tiles = 256, shared = 0>
plan.kernel @elementwise(%x: tensor<1x8x20x10xf32>, %s: tensor<8x1x1xf32>)
    layouts [<[0, 2, 3, 1], [1, 8, ?, 10]>, <[0, 1, 2], [8, 1, 1]>] -> [<[0, 2, 3, 1], [1, 8, ?, 10]>]
    attributes {static_loops = array<i64: 0, 1, 3>} {
  %0 = dovetail.mul %x, %s : (tensor<1x8x20x10xf32>, tensor<8x1x1xf32>) -> tensor<1x8x20x10xf32>
  plan.yield %0 : tensor<1x8x20x10xf32>
}

// A split innermost dimension may begin anywhere, and five elements are no vectors.

// CHECK-LABEL: plan.kernel @unaligned
// CHECK-SAME: loops = [0, 1], steps = [1, 1]
plan.kernel @unaligned(%x: tensor<6x8xf32>) layouts [<[0, 1], [6, ?]>] -> [<[0, 1], [6, ?]>] attributes {static_loops = array<i64: 0>} {
  %0 = dovetail.neg %x : (tensor<6x8xf32>) -> tensor<6x8xf32>
  plan.yield %0 : tensor<6x8xf32>
}

// CHECK-LABEL: plan.kernel @odd
// CHECK-SAME: loops = [0, 1], steps = [1, 1]
plan.kernel @odd(%x: tensor<6x5xf32>) layouts [<[0, 1], [6, 5]>] -> [<[0, 1], [6, 5]>] attributes {static_loops = array<i64: 0, 1>} {
  %0 = dovetail.neg %x : (tensor<6x5xf32>) -> tensor<6x5xf32>
  plan.yield %0 : tensor<6x5xf32>
}

// A warp computes what a row shares, then divides the row.

// CHECK-LABEL: plan.kernel @softmax
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0], steps = [1], tiles = 8, shared = 0>
plan.kernel @softmax(%x: tensor<6x50xf32>) layouts [<[0, 1], [?, 50]>] -> [<[0, 1], [?, 50]>]
    attributes {static_loops = array<i64: 1, 2, 3>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<max>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %1 = dovetail.sub %x, %0 : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  %2 = dovetail.exp %1 : (tensor<6x50xf32>) -> tensor<6x50xf32>
  %3 = dovetail.reduce %2 {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x50xf32>) -> tensor<6x1xf32>
  %4 = dovetail.div %2, %3 : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
  plan.yield %4 : tensor<6x50xf32>
}

// A block adds up a long row; its warps meet in shared memory.

// CHECK-LABEL: plan.kernel @long_sum
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1], steps = [1, 1], tiles = 1, shared = 64>
plan.kernel @long_sum(%x: tensor<20x5000xf64>) layouts [<[0, 1], [?, 5000]>] -> [<[0, 1], [?, 1]>]
    attributes {static_loops = array<i64: 2>} {
  %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<20x5000xf64>) -> tensor<20x1xf64>
  plan.yield %0 : tensor<20x1xf64>
}

// The three moments of an element are computed together, and stored by one thread of the group.

// CHECK-LABEL: plan.kernel @moments
// CHECK-SAME: loops = [0, 1], steps = [1, 1], tiles = 8
plan.kernel @moments(%x: tensor<4x100xf32>) layouts [<[0, 1], [4, 100]>] -> [<[0, 1], [4, 1]>, <[0, 1], [4, 1]>, <[0, 1], [4, 1]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0:3 = dovetail.moments %x {axes = array<i64: 1>} : (tensor<4x100xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  plan.yield %0#0, %0#1, %0#2 : tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: gpu.module @block_kernels

// After the tensors there is a pointer to counts.
// CHECK: gpu.func @elementwise(%[[X:arg0]]: !llvm.ptr {llvm.noalias}, %[[S:arg1]]: !llvm.ptr {llvm.noalias}, %[[Y:arg2]]: !llvm.ptr {llvm.noalias}, %arg3: !llvm.ptr, %arg4: i64,
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 256, 1, 1>}
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32
// CHECK: plan.load %[[X]][%[[FIRST:.*]]] {alignment = 16 : i64} : !llvm.ptr -> f32
// CHECK: plan.load %[[S]][%{{.*}}] {alignment = 16 : i64}
// CHECK-COUNT-3: plan.load %[[X]][%{{.*}}] : !llvm.ptr -> f32
// CHECK: plan.store %{{.*}}, %[[Y]][%[[FIRST]]] {alignment = 16 : i64}
// CHECK-COUNT-3: plan.store %{{.*}}, %[[Y]][%{{[0-9]+}}] : f32

// CHECK: gpu.func @unaligned(
// CHECK-NOT: alignment
// CHECK: gpu.func @softmax(
// CHECK: scf.for %{{.*}} step %{{.*}} : i32 {
// CHECK: %[[MAX:.*]] = scf.for %{{.*}} step %c32_i32 iter_args
// CHECK: arith.maximumf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} step %c32_i32 iter_args
// CHECK: math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: scf.for %{{.*}} step %c32_i32
// CHECK: arith.divf
// CHECK: plan.store

// Doubles are shuffled in halves.

// CHECK: llvm.mlir.global internal @long_sum.shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i8>
// CHECK: gpu.func @long_sum(
// CHECK: %[[PART:.*]] = scf.for %{{.*}} step %c256_i32 iter_args
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} : f64, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f64
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: plan.store

// CHECK: gpu.func @moments(
// CHECK: scf.for %{{.*}} step %c32_i32 iter_args
// CHECK: scf.for %{{.*}} step %c32_i32 iter_args
// CHECK: scf.if
// CHECK-COUNT-3: plan.store
// CHECK-NOT: plan.store
