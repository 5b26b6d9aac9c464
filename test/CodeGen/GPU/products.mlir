// RUN: dovetail-opt %s --plan-generate-block-kernels | FileCheck %s

// A block computes 64 by 64 elements, and a thread 4 by 4 of them. 16 terms of both operands lie in shared memory at a time.

// CHECK-LABEL: plan.kernel @product
// CHECK-SAME: blocks = #plan.blocks<threads = 256, loops = [0, 1], steps = [64, 64], tiles = 1, shared = 8704>
plan.kernel @product(%a: tensor<6000x100xf32>, %b: tensor<100x4500xf32>) layouts [<[0, 1], [?, 100]>, <[0, 1], [100, 4500]>] -> [<[0, 1], [?, 4500]>]
    attributes {static_loops = array<i64: 1, 2>} {
  %0 = dovetail.matmul %a, %b : (tensor<6000x100xf32>, tensor<100x4500xf32>) -> tensor<6000x4500xf32>
  plan.yield %0 : tensor<6000x4500xf32>
}

// Where there would be few blocks, they compute 32 by 32 elements. Each of the batches that both operands have is
// divided on its own; those of the first operand alone are rows like others.

// CHECK-LABEL: plan.kernel @batches
// CHECK-SAME: loops = [1, 0, 2, 3], steps = [1, 1, 32, 32], tiles = 1, shared = 2560
plan.kernel @batches(%a: tensor<3x2x80x40xf16>, %b: tensor<2x40x64xf16>) layouts [<[0, 1, 2, 3], [3, 2, 80, 40]>, <[0, 1, 2], [2, 40, 64]>]
    -> [<[0, 1, 2, 3], [3, 2, 80, 64]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.matmul %a, %b : (tensor<3x2x80x40xf16>, tensor<2x40x64xf16>) -> tensor<3x2x80x64xf16>
  plan.yield %0 : tensor<3x2x80x64xf16>
}

// A convolution is a product of positions and channels; its taps are terms. The positions of all images are one side of
// the tiles: 2 rows of 14 are 28 of 32.

// CHECK-LABEL: plan.kernel @taps
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 2, 14, 32], tiles = 1, shared = 4608
plan.kernel @taps(%x: tensor<5x64x14x14xf32>, %w: tensor<64x64x1x1xf32>)
    layouts [<[0, 2, 3, 1], [?, 64, 14, 14]>, <[0, 1, 2, 3], [64, 64, 1, 1]>] -> [<[0, 2, 3, 1], [?, 64, 14, 14]>]
    attributes {static_loops = array<i64: 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, groups = 1 : i64}
      : (tensor<5x64x14x14xf32>, tensor<64x64x1x1xf32>) -> tensor<5x64x14x14xf32>
  plan.yield %0 : tensor<5x64x14x14xf32>
}

// With padding, a byte for each factor of the image says whether it is there, and one whether there is an infinite weight.

// CHECK-LABEL: plan.kernel @convolution
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 1, 32, 32], tiles = 1, shared = 5377
plan.kernel @convolution(%x: tensor<1x48x40x40xf32>, %w: tensor<64x48x3x3xf32>)
    layouts [<[0, 2, 3, 1], [1, 48, ?, 40]>, <[0, 1, 2, 3], [64, 48, 3, 3]>] -> [<[0, 2, 3, 1], [1, 64, ?, 40]>]
    attributes {static_loops = array<i64: 0, 1, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x48x40x40xf32>, tensor<64x48x3x3xf32>) -> tensor<1x64x40x40xf32>
  plan.yield %0 : tensor<1x64x40x40xf32>
}

// Zero times an integer is zero.

// CHECK-LABEL: plan.kernel @integers
// CHECK-SAME: shared = 4608
plan.kernel @integers(%x: tensor<1x16x40x40xi32>, %w: tensor<32x16x3x3xi32>)
    layouts [<[0, 2, 3, 1], [1, 16, 40, 40]>, <[0, 1, 2, 3], [32, 16, 3, 3]>] -> [<[0, 2, 3, 1], [1, 32, 40, 40]>]
    attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
  %0 = dovetail.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, groups = 1 : i64}
      : (tensor<1x16x40x40xi32>, tensor<32x16x3x3xi32>) -> tensor<1x32x40x40xi32>
  plan.yield %0 : tensor<1x32x40x40xi32>
}

// The channels of a group share factors: tiles lie inside of a group.

// CHECK-LABEL: plan.kernel @groups
// CHECK-SAME: loops = [0, 2, 3, 1], steps = [1, 1, 32, 20], tiles = 1, shared = 4608
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
// Neighbouring threads read eight neighbouring terms of the first operand, in 68 words from one another.
// CHECK: %[[TERM:.*]] = arith.remui %[[THREAD]], %c8
// CHECK: %[[ROW:.*]] = arith.divui %[[THREAD]], %c8
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c68
// CHECK: arith.addi %[[PLACE]], %[[ROW]]
// Of the second one, they read neighbouring columns, to neighbouring words.
// CHECK: %[[COLUMN:.*]] = arith.remui %[[THREAD]], %c64
// CHECK: %[[TERM:.*]] = arith.divui %[[THREAD]], %c64
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c68
// CHECK: arith.addi %[[PLACE]], %[[COLUMN]]
// CHECK: scf.for %{{.*}} : i32 {
// CHECK: scf.for %{{.*}} = %c0 to %c7 step %c1 iter_args
// CHECK: gpu.barrier
// CHECK: %[[IS_TERM:.*]] = arith.cmpi slt, %{{.*}}, %c100
// CHECK: %[[READ:.*]] = plan.load %[[A]]
// CHECK: %[[VALUE:.*]] = arith.select %[[IS_TERM]], %[[READ]], %cst
// CHECK-COUNT-3: plan.load %[[A]]
// CHECK: llvm.store %[[VALUE]], %{{.*}} !llvm.ptr<3>
// CHECK-COUNT-3: llvm.store
// CHECK-COUNT-4: plan.load %[[B]]
// CHECK-COUNT-4: llvm.store
// CHECK-NOT: llvm.store
// CHECK: gpu.barrier
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT: llvm.load
// CHECK-COUNT-16: arith.mulf
// CHECK: scf.yield
// CHECK-COUNT-16: plan.store %{{.*}}, %[[C]]
// CHECK-NOT: plan.store
// CHECK: gpu.return

// CHECK: gpu.func @convolution(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[W:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %arg3
// All of the taps of 16 channels, then of the next ones.
// Parts of the sums are added on their own.
// CHECK: scf.for %[[PART:[a-z0-9]+]] = %c0 to %c2 step %c1 iter_args(%[[SUM:[a-z0-9]+]] = %cst
// CHECK: %[[BEGIN:[a-z0-9]+]] = arith.muli %[[PART]], %c16
// CHECK: %[[END:[a-z0-9]+]] = arith.minsi %{{.*}}, %c27
// CHECK: scf.for %[[CHUNK:[a-z0-9]+]] = %[[BEGIN]] to %[[END]] step %c1 iter_args(%{{[a-z0-9]+}} = %cst
// CHECK: %[[COUNTER:.*]] = arith.index_cast %[[CHUNK]] : index to i32
// CHECK: arith.divui %[[COUNTER]], %c9_i32
// CHECK: arith.remui %[[COUNTER]], %c9_i32
// CHECK: gpu.barrier
// CHECK: %[[LOW:.*]] = arith.cmpi sge, %{{.*}}, %c0
// CHECK: %[[HIGH:.*]] = arith.cmpi slt, %{{.*}}, %c40
// CHECK: %[[IS_ROW:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// CHECK: %[[IS_COLUMN:.*]] = arith.andi
// CHECK: %[[IS_INSIDE:.*]] = arith.andi %[[IS_ROW]], %[[IS_COLUMN]]
// CHECK: %[[FACTOR:.*]] = scf.if %[[IS_INSIDE]] -> (f32) {
// CHECK:   plan.load %[[X]]
// CHECK: } else {
// CHECK:   scf.yield %cst
// CHECK: llvm.store %[[FACTOR]], %{{.*}} !llvm.ptr<3>
// CHECK: arith.extui %[[IS_INSIDE]] : i1 to i8
// CHECK: plan.load %[[W]]
// CHECK: arith.cmpf olt
// CHECK: %[[NOT_FINITE:.*]] = arith.xori
// CHECK: scf.if %[[NOT_FINITE]] {
// CHECK: llvm.store %c1_i8
// CHECK: gpu.barrier
// Products are chosen one by one if there is a weight that is no number.
// CHECK: %[[GUARDED:.*]] = arith.trunci %{{.*}} : i8 to i1
// CHECK: scf.if %[[GUARDED]]
// CHECK-COUNT-4: arith.mulf
// CHECK: arith.select
// CHECK: } else {
// CHECK-NOT: arith.select
// CHECK: arith.addf %[[SUM]], %{{.*}}
// CHECK: gpu.return

// The channels of a group are neighbours in memory, too.
// CHECK: gpu.func @groups(
// CHECK: %[[TERM:.*]] = arith.remui %{{.*}}, %c8
// CHECK: %[[PLACE:.*]] = arith.muli %[[TERM]], %c36
// CHECK: scf.for
// CHECK: %[[GROUP:.*]] = arith.divui %{{.*}}, %c20
// CHECK: gpu.return
