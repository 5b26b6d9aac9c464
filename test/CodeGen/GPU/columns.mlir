// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// The mean over H and W of a tensor with channels last: neighbouring terms are 64 elements apart, neighbouring channels
// are neighbours. A block has 32 channels and 8 threads for each of them.

// CHECK-LABEL: plan.kernel @pool
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 2, 3, 1], steps = [1, 1, 1, 1], tiles = 32, shared = 1024>
plan.kernel @pool(%x: tensor<2x64x30x40xf32>) layouts [<[0, 2, 3, 1], [2, 64, ?, 40]>] -> [<[0, 2, 3, 1], [2, 64, 1, 1]>]
    attributes {static_loops = array<i64: 0, 1, 5>} {
  %0 = dovetail.reduce %x {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x64x30x40xf32>) -> tensor<2x64x1x1xf32>
  plan.yield %0 : tensor<2x64x1x1xf32>
}

// The same in row-major order: terms are neighbours, and a block shares one row.

// CHECK-LABEL: plan.kernel @rows
// CHECK-SAME: loops = [0, 1, 2, 3], steps = [1, 1, 1, 1], tiles = 1, shared = 32
plan.kernel @rows(%x: tensor<2x64x30x40xf32>) layouts [<[0, 1, 2, 3], [2, 64, ?, 40]>] -> [<[0, 1, 2, 3], [2, 64, 1, 1]>]
    attributes {static_loops = array<i64: 0, 1, 5>} {
  %0 = dovetail.reduce %x {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x64x30x40xf32>) -> tensor<2x64x1x1xf32>
  plan.yield %0 : tensor<2x64x1x1xf32>
}

// Three channels are no run worth a warp's while.

// CHECK-LABEL: plan.kernel @narrow
// CHECK-SAME: tiles = 1, shared = 32
plan.kernel @narrow(%x: tensor<2x3x30x40xf32>) layouts [<[0, 2, 3, 1], [2, 3, 30, 40]>] -> [<[0, 2, 3, 1], [2, 3, 1, 1]>]
    attributes {static_loops = array<i64: 0, 1, 4, 5>} {
  %0 = dovetail.reduce %x {axes = array<i64: 2, 3>, kind = #dovetail.reduce_kind<sum>} : (tensor<2x3x30x40xf32>) -> tensor<2x3x1x1xf32>
  plan.yield %0 : tensor<2x3x1x1xf32>
}

// Few columns leave more threads for each.

// CHECK-LABEL: plan.kernel @few
// CHECK-SAME: loops = [0, 1], steps = [1, 1], tiles = 8, shared = 2048
plan.kernel @few(%x: tensor<5000x10xf64>) layouts [<[0, 1], [?, 10]>] -> [<[0, 1], [1, 10]>] attributes {static_loops = array<i64: 1>} {
  %0 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<max>} : (tensor<5000x10xf64>) -> tensor<1x10xf64>
  plan.yield %0 : tensor<1x10xf64>
}

// Softmax over channels: the threads of a column also divide its elements.

// CHECK-LABEL: plan.kernel @softmax
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [1], steps = [1], tiles = 32, shared = 1024>
plan.kernel @softmax(%x: tensor<50x600xf32>) layouts [<[0, 1], [50, ?]>] -> [<[0, 1], [50, ?]>]
    attributes {static_loops = array<i64: 0, 2, 3>} {
  %0 = dovetail.reduce %x {axes = array<i64: 0>, kind = #dovetail.reduce_kind<max>} : (tensor<50x600xf32>) -> tensor<1x600xf32>
  %1 = dovetail.sub %x, %0 : (tensor<50x600xf32>, tensor<1x600xf32>) -> tensor<50x600xf32>
  %2 = dovetail.exp %1 : (tensor<50x600xf32>) -> tensor<50x600xf32>
  %3 = dovetail.reduce %2 {axes = array<i64: 0>, kind = #dovetail.reduce_kind<sum>} : (tensor<50x600xf32>) -> tensor<1x600xf32>
  %4 = dovetail.div %2, %3 : (tensor<50x600xf32>, tensor<1x600xf32>) -> tensor<50x600xf32>
  plan.yield %4 : tensor<50x600xf32>
}

// CHECK: llvm.mlir.global internal @pool.shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
// CHECK: gpu.func @pool(%[[X:arg[0-9]+]]
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG: %[[LANE:.*]] = arith.divui %[[THREAD]], %c32
// CHECK-DAG: %[[COLUMN:.*]] = arith.remui %[[THREAD]], %c32
// Neighbouring threads write, and then read, neighbouring words.
// CHECK: %[[THREAD64:.*]] = arith.index_cast %[[THREAD]] : index to i64
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %{{.*}}[%[[THREAD64]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
// CHECK: %[[COLUMN64:.*]] = arith.index_cast %[[COLUMN]] : index to i64
// CHECK: %[[PART0:.*]] = llvm.getelementptr %{{.*}}[%[[COLUMN64]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
// CHECK: arith.addi %[[COLUMN]], %c32
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK: %[[TILE:.*]] = arith.addi %[[FIRST]], %{{.*}} : i32
// CHECK: %[[IS_TILE:.*]] = arith.cmpi sle, %[[TILE]], %[[LAST:.*]] : i32
// CHECK: %[[MINE:.*]] = arith.minsi %[[TILE]], %[[LAST]] : i32
// The channel is the fastest coordinate of a tile.
// CHECK: %[[CHANNEL:.*]] = arith.remui %[[MINE]], %c64_i32
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8_i32 iter_args
// CHECK: plan.load %[[X]]
// CHECK-NOT: gpu.shuffle
// CHECK: llvm.store %[[PART]], %[[SLOT]]
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: llvm.load %[[PART0]]
// CHECK-COUNT-7: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: gpu.barrier
// CHECK: %[[STORES:.*]] = arith.andi %{{.*}}, %[[IS_TILE]]
// CHECK: scf.if %[[STORES]] {
// CHECK-NEXT: plan.store

// CHECK: gpu.func @rows(
// CHECK: gpu.shuffle

// CHECK: gpu.func @softmax(
// CHECK: scf.for %{{.*}} step %c8_i32 iter_args
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} step %c8_i32 iter_args
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} step %c8_i32
// CHECK: scf.if
// CHECK-NEXT: plan.store
