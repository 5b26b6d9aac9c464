// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// CHECK: #[[NEVER:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[ONCE:.*]] = #llvm.loop_annotation<unroll = #[[NEVER]]>

// A block computes 128 by 128 elements, and a thread 8 by 8 of them. 16 terms of both operands lie in shared memory at a
// time, and there is room for the next ones.

// CHECK-LABEL: plan.kernel @product
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1], steps = [128, 128], tiles = 1, shared = 33792>
plan.kernel @product(%a: tensor<6000x100xf32>, %b: tensor<100x4500xf32>) layouts [<[0, 1], [?, 100]>, <[0, 1], [100, 4500]>] -> [<[0, 1], [?, 4500]>]
    attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<6000x100xf32>, tensor<100x4500xf32>) -> tensor<6000x4500xf32>
  plan.yield %0 : tensor<6000x4500xf32>
}

// Where there would be few blocks, they compute 32 by 32 elements. Each of the batches that both operands have is
// divided on its own; those of the first operand alone are rows like others.

// CHECK-LABEL: plan.kernel @batches
// CHECK-SAME: loops = [1, 0, 2, 3], steps = [1, 1, 32, 32], tiles = 1, shared = 5120
plan.kernel @batches(%a: tensor<3x2x80x40xf16>, %b: tensor<2x40x64xf16>) layouts [<[0, 1, 2, 3], [3, 2, 80, 40]>, <[0, 1, 2], [2, 40, 64]>]
    -> [<[0, 1, 2, 3], [3, 2, 80, 64]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.matmul %a, %b : (tensor<3x2x80x40xf16>, tensor<2x40x64xf16>) -> tensor<3x2x80x64xf16>
  plan.yield %0 : tensor<3x2x80x64xf16>
}

// A convolution is a product of positions and channels; its taps are terms. The positions of all images are one side of
// the tiles: 2 rows of 14 are 28 of 32.

// CHECK-LABEL: plan.kernel @taps
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 2, 14, 32], tiles = 1, shared = 9216
plan.kernel @taps(%x: tensor<5x64x14x14xf32>, %w: tensor<64x64x1x1xf32>)
    layouts [<[0, 2, 3, 1], [?, 64, 14, 14]>, <[0, 1, 2, 3], [64, 64, 1, 1]>] -> [<[0, 2, 3, 1], [?, 64, 14, 14]>]
    attributes {static_loops = array<i64: 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<5x64x14x14xf32>, tensor<64x64x1x1xf32>) -> tensor<5x64x14x14xf32>
  plan.yield %0 : tensor<5x64x14x14xf32>
}

// With padding, a byte for each position says whether its factors are there, and one whether there is an infinite weight.

// CHECK-LABEL: plan.kernel @convolution
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 1, 32, 32], tiles = 1, shared = 9314
plan.kernel @convolution(%x: tensor<1x48x40x40xf32>, %w: tensor<64x48x3x3xf32>)
    layouts [<[0, 2, 3, 1], [1, 48, ?, 40]>, <[0, 1, 2, 3], [64, 48, 3, 3]>] -> [<[0, 2, 3, 1], [1, 64, ?, 40]>]
    attributes {static_loops = array<i64: 0, 1, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x48x40x40xf32>, tensor<64x48x3x3xf32>) -> tensor<1x64x40x40xf32>
  plan.yield %0 : tensor<1x64x40x40xf32>
}

// Zero times an integer is zero.

// CHECK-LABEL: plan.kernel @integers
// CHECK-SAME: shared = 9216
plan.kernel @integers(%x: tensor<1x16x40x40xi32>, %w: tensor<32x16x3x3xi32>)
    layouts [<[0, 2, 3, 1], [1, 16, 40, 40]>, <[0, 1, 2, 3], [32, 16, 3, 3]>] -> [<[0, 2, 3, 1], [1, 32, 40, 40]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x16x40x40xi32>, tensor<32x16x3x3xi32>) -> tensor<1x32x40x40xi32>
  plan.yield %0 : tensor<1x32x40x40xi32>
}

// The channels of a group share factors: tiles lie inside of a group.

// CHECK-LABEL: plan.kernel @groups
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 1, 32, 20], tiles = 1, shared = 9216
plan.kernel @groups(%x: tensor<1x64x44x44xf32>, %w: tensor<40x32x3x3xf32>)
    layouts [<[0, 2, 3, 1], [1, 64, 44, 44]>, <[0, 1, 2, 3], [40, 32, 3, 3]>] -> [<[0, 2, 3, 1], [1, 40, 40, 42]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 2, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 2 : i64}
      : (tensor<1x64x44x44xf32>, tensor<40x32x3x3xf32>) -> tensor<1x40x40x42xf32>
  plan.yield %0 : tensor<1x40x40x42xf32>
}

// With few channels in a group, tiles would be nearly empty.

// CHECK-LABEL: plan.kernel @depthwise
// CHECK-SAME: steps = [1, 1, 1, 1]
plan.kernel @depthwise(%x: tensor<1x64x40x40xf32>, %w: tensor<64x1x5x5xf32>)
    layouts [<[0, 2, 3, 1], [1, 64, 40, 40]>, <[0, 1, 2, 3], [64, 1, 5, 5]>] -> [<[0, 2, 3, 1], [1, 64, 36, 36]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 64 : i64}
      : (tensor<1x64x40x40xf32>, tensor<64x1x5x5xf32>) -> tensor<1x64x36x36xf32>
  plan.yield %0 : tensor<1x64x36x36xf32>
}

// A vector times a matrix fills no tile: 32 columns for a block instead.

// CHECK-LABEL: plan.kernel @vector
// CHECK-SAME: tiles = 32
plan.kernel @vector(%a: tensor<1x900xf32>, %b: tensor<900x130xf32>) layouts [<[0, 1], [1, 900]>, <[0, 1], [900, 130]>] -> [<[0, 1], [1, 130]>]
    attributes {static_loops = array<i64: 0, 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<1x900xf32>, tensor<900x130xf32>) -> tensor<1x130xf32>
  plan.yield %0 : tensor<1x130xf32>
}

// CHECK: gpu.func @product(%[[A:.*]]: !llvm.ptr {llvm.noalias}, %[[B:.*]]: !llvm.ptr {llvm.noalias}, %[[C:.*]]: !llvm.ptr {llvm.noalias}, %arg3
// CHECK: %[[THREAD:.*]] = gpu.thread_id
// A warp has 4 rows of 8 threads.
// CHECK: %[[WARP:.*]] = arith.divui %[[THREAD]], %c32
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %c32
// CHECK: arith.divui %[[LANE]], %c8
// CHECK: arith.remui %[[LANE]], %c8
// Neighbouring threads read eight neighbouring terms of the first operand, four each, in 132 words from one another.
// CHECK: %[[PAIR:.*]] = arith.remui %[[THREAD]], %c2
// CHECK: %[[TERM:.*]] = arith.muli %[[PAIR]], %c4
// CHECK: %[[ROW:.*]] = arith.divui %[[THREAD]], %c2
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c132
// CHECK: arith.addi %[[PLACE]], %[[ROW]]
// CHECK: scf.for %{{.*}} : i32 {
// The first terms, and those of the second operand by four columns.
// CHECK: plan.load %[[A]][%{{.*}}] {alignment = 16 : i64}
// CHECK-COUNT-3: plan.load %[[A]][%{{.*}}] :
// CHECK: plan.load %[[A]][%{{.*}}] {alignment = 16 : i64}
// CHECK: plan.load %[[B]][%{{.*}}] {alignment = 16 : i64}
// CHECK-COUNT-8: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CHECK: gpu.barrier
// The next ones are read before the present ones are added, and are brought to the other half.
// CHECK: scf.for %[[CHUNK:.*]] = %c0 to %c7 step %c1 iter_args
// CHECK: %[[NEXT:.*]] = arith.addi %[[CHUNK]], %c1
// CHECK: arith.minsi %[[NEXT]], %c6
// CHECK: %[[IS_TERM:.*]] = arith.cmpi slt, %{{.*}}, %c100
// CHECK: scf.if %[[IS_TERM]]
// CHECK: plan.load %[[A]]
// CHECK: arith.remui %[[CHUNK]], %c2
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-64: arith.mulf
// CHECK-COUNT-28: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: scf.yield
// CHECK: arith.remui %[[NEXT]], %c2
// CHECK: llvm.store
// CHECK: gpu.barrier
// CHECK-NEXT: scf.yield
// CHECK-NOT: gpu.barrier
// CHECK: plan.store %{{.*}}, %[[C]][%{{.*}}] {alignment = 16 : i64}
// CHECK-COUNT-3: plan.store %{{.*}}, %[[C]][%{{.*}}] :
// CHECK: gpu.return

// CHECK: gpu.func @convolution(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[W:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %arg3
// The first tap of positions that have one.
// CHECK: %[[IS_ROW:.*]] = arith.cmpi sge, %{{.*}}, %c0
// CHECK: %[[IS_COLUMN:.*]] = arith.cmpi sge, %{{.*}}, %c0
// CHECK: %[[IS_INSIDE:.*]] = arith.andi %[[IS_ROW]], %[[IS_COLUMN]]
// CHECK: %[[FACTOR:.*]]:2 = scf.if %[[IS_INSIDE]] -> (f32, f32) {
// CHECK:   plan.load %[[X]]
// CHECK: } else {
// CHECK:   scf.yield %cst
// CHECK: plan.load %[[W]]
// CHECK: llvm.store %[[FACTOR]]#0, %{{.*}} !llvm.ptr<3>
// CHECK: arith.extui %[[IS_INSIDE]] : i1 to i8
// Numbers times zero are zero.
// CHECK: %[[NOT_FINITE:.*]] = arith.cmpf une, %{{.*}}, %cst
// CHECK: scf.if %[[NOT_FINITE]] {
// CHECK: llvm.store %c1_i8
// CHECK: gpu.barrier
// All of the taps of 16 channels, then of the next ones.
// Parts of the sums are added on their own.
// CHECK: scf.for %[[PART:[a-z0-9]+]] = %c0 to %c2 step %c1 iter_args(%[[SUM:[a-z0-9]+]] = %cst
// CHECK: %[[BEGIN:[a-z0-9]+]] = arith.muli %[[PART]], %c16
// CHECK: %[[REACH:[a-z0-9]+]] = arith.addi %[[BEGIN]], %c16
// CHECK: %[[END:[a-z0-9]+]] = arith.minsi %[[REACH]], %c27
// CHECK: scf.for %[[CHUNK:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %c1 iter_args(%{{[a-z0-9]+}} = %cst
// CHECK: %[[AFTER:.*]] = arith.addi %[[CHUNK]], %c1
// CHECK: %[[NEXT:.*]] = arith.minsi %[[AFTER]], %c26
// CHECK: %[[COUNTER:.*]] = arith.index_cast %[[NEXT]] : index to i32
// CHECK: arith.divui %[[COUNTER]], %c9_i32
// CHECK: arith.remui %[[COUNTER]], %c9_i32
// Products are chosen one by one if there is a weight that is no number.
// CHECK: %[[GUARDED:.*]] = arith.trunci %{{.*}} : i8 to i1
// CHECK: scf.if %[[GUARDED]]
// CHECK-COUNT-4: arith.mulf
// CHECK: arith.select
// CHECK: } {loop_annotation = #[[ONCE]]}
// CHECK: } else {
// CHECK-NOT: arith.select
// CHECK: arith.addf %[[SUM]], %{{.*}}
// CHECK: gpu.return

// The channels of a group are neighbours in memory, too.
// CHECK: gpu.func @groups(
// CHECK: %[[PAIR:.*]] = arith.remui %{{.*}}, %c4
// CHECK: %[[TERM:.*]] = arith.muli %[[PAIR]], %c2
// CHECK: arith.addi %{{.*}}, %[[TERM]]
// CHECK: scf.for
// CHECK: %[[GROUP:.*]] = arith.divui %{{.*}}, %c20
// CHECK: gpu.return
